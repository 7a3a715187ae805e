"""Editing a JSON file: one key of the outermost object, everything else byte for byte as it was.

Format: RFC 8259, as Go's encoding/json reads it: of a key that is there twice the last counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")


class JsonTextError(ValueError):
    """The text is not JSON, or not an object; the message says where."""


@dataclass(frozen=True)
class Member:
    """A member of the outermost object: where its key and its value begin and end in the text."""

    key: str
    value: Any
    key_start: int
    key_end: int
    start: int
    end: int


def read_members(content: bytes) -> dict[str, Any]:
    """Return the outermost object; an empty file is an empty object, as dockerd reads it.

    Raises:
        JsonTextError: it is not JSON, or not an object.
    """
    return {member.key: member.value for member in _members(_text(content))}


def set_member(content: bytes, key: str, value: str) -> bytes:
    """Return the text with ``key`` of the outermost object set to ``value``.

    A key that is there keeps its place; a new one comes last, laid out like the one before it.

    Raises:
        JsonTextError: it is not JSON, or not an object; nothing is guessed.
    """
    text = _text(content)
    head = BOM if content.startswith(BOM) else b""
    member, written = f"{json.dumps(key)}: {json.dumps(value)}", json.dumps(value)
    if not text.strip(" \t\r\n"):
        return head + f"{{\n    {member}\n}}\n".encode()
    members = list(_members(text))
    same = [member for member in members if member.key == key]
    if same:
        return head + (text[: same[-1].start] + written + text[same[-1].end :]).encode()
    if not members:
        begin = text.index("{") + 1
        return head + f"{text[:begin]}\n    {member}\n{text[text.index('}', begin) :]}".encode()
    last = members[-1]
    between = _before(text, last)
    colon = text[last.key_end : last.start]
    added = f",{between}{json.dumps(key)}{colon}{written}"
    return head + (text[: last.end] + added + text[last.end :]).encode()


def _before(text: str, member: Member) -> str:
    """Return the white space in front of a member's key."""
    start = member.key_start
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start : member.key_start]


def _text(content: bytes) -> str:
    try:
        return content.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise JsonTextError(f"byte {error.start} is not UTF-8") from error


def _members(text: str) -> Iterator[Member]:
    if not text.strip(" \t\r\n"):
        return
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    try:
        whole = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError(f"line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise JsonTextError("it is nested too deeply") from error
    if not isinstance(whole, dict):
        raise JsonTextError(f"it is a {type(whole).__name__}, not an object")
    at = _skip(text, _skip(text, 0) + 1)
    # The text is known to be valid, so each step finds its token.
    while text[at] == '"':
        key, key_end = scanstring(text, at + 1)
        start = _skip(text, _skip(text, key_end) + 1)
        value, end = decoder.raw_decode(text, start)
        yield Member(key, value, at, key_end, start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _no_constant(word: str) -> None:
    raise JsonTextError(f"{word} is not JSON")
