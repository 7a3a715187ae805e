"""The JSON documents of ``--json``: what all of them begin with, and what an error is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

from remedy import __version__
from remedy.cli.next_step import note_inventory
from remedy.cli.plain import as_text, print_text
from remedy.files import full_path

AGAIN = "Run the command again."
# What the command is about, as far as it is known: what a document has in its head.
_subject: dict[str, str | None] = {"inventory": None, "run": None}
_state = {"began": time.time(), "wanted": False, "printed": False}


def begin(arguments: Sequence[str]) -> None:
    """Note that a command begins, and whether its end is one JSON document.

    Args:
        arguments: of the command line; it may be one that cannot be parsed.
    """
    _subject.update(inventory=None, run=None)
    note_inventory(None)
    _state.update(began=time.time(), wanted=_wants_json(arguments), printed=False)


def _wants_json(arguments: Sequence[str]) -> bool:
    words = [*arguments]
    words = words[: words.index("--")] if "--" in words else words
    pairs = pairwise(words)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairs


def about(*, inventory: Path | None = None, run: str | None = None) -> None:
    """Note what the command is about, for the head of its document."""
    if inventory is not None:
        _subject["inventory"] = full_path(inventory)
        note_inventory(inventory)
    if run:
        _subject["run"] = run


def began() -> str:
    """Return when the command began, RFC 3339 in UTC."""
    return _rfc3339(float(_state["began"]))


def head(kind: str) -> dict[str, Any]:
    """Return what every document begins with: its kind, the tool, the times, the run and the inventory."""
    return {
        "schema": f"remedy.{kind}/1",
        "tool_version": __version__,
        "began": began(),
        "ended": _rfc3339(time.time()),
        **_subject,
    }


def print_document(kind: str, body: Mapping[str, Any]) -> None:
    """Print the one document of a command.

    Args:
        kind: as ``remedy schema`` has it.
        body: without the head; an inventory or a run that it names itself stays.
    """
    text = as_text({**head(kind), **{k: v for k, v in body.items() if k != "schema"}})
    _state["printed"] = True  # a signal until here has a document of its own
    print_text(text)


def print_error(
    message: str,
    code: int,
    next_step: str = "",
    *,
    facts: Iterable[str] = (),
    commands: Iterable[tuple[str, str]] = (),
) -> None:
    """Print the document of a command that ended with an error, where a document is wanted and none is there.

    Args:
        message: what went wrong.
        code: the exit code.
        next_step: what to do about it; where it is "", the first of ``commands``, or to run the command again.
        facts: what is known of hosts, a sentence each.
        commands: how to go on: what for, and the command.
    """
    if not _state["wanted"] or _state["printed"]:
        return
    steps = [{"purpose": purpose, "command": command} for purpose, command in commands]
    first = f"{steps[0]['purpose']}: {steps[0]['command']}" if steps else AGAIN
    body = {
        "error": message,
        "next_step": next_step or first,
        "known": list(facts),
        "commands": steps,
        "exit_code": code,
    }
    with suppress(
        Exception
    ):  # nobody reads it, or the disk is full: the error itself goes to standard error
        print_document("error", body)
        sys.stdout.flush()


def _rfc3339(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
