"""All that the probe knows of hosts, as a document and as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from remedy.errors import RemedyError, UsageError, raise_together
from remedy.plan.change import sha256
from remedy.probe import File, HostState
from remedy.probe.processes import Process
from remedy.secret import looks_secret
from remedy.text import fold
from remedy.values import Document, Fact, Headed, Record, Unknown

_URL_LOGIN = re.compile(r"(://[^/@\s:]*:)[^/@\s]+@")
HIDDEN = "<redacted>"


class FileFact(Record):
    """A file as the probe found it, without its content: that may hold secrets.

    Args:
        size: of the content, in bytes.
        sha256: of the content; "" where the file does not exist.
        kind: what a device is that is no device but a file; "" otherwise.
    """

    path: str
    real_path: str
    exists: bool
    size: int
    sha256: str
    mode: int
    uid: int
    gid: int
    immutable: bool
    read_only: bool
    kind: str


_FIELDS: dict[str, Any] = {
    name: (Mapping[str, Fact[FileFact]] if name == "files" else field.annotation, ...)
    for name, field in HostState.model_fields.items()
}
HostFacts = create_model("HostFacts", __base__=Document, __doc__=HostState.__doc__, **_FIELDS)


class UnreadHost(Document):
    """Why a host could not be read."""

    error: str
    next_step: str


class FactsDocument(Headed):
    """What ``facts`` prints with ``--json``: by host what the probe read, or why it could not.

    A fact that could not be read is ``{"kind": "unknown", "reason": ...}``.
    """

    schema_: Literal["remedy.facts/1"] = Field(default="remedy.facts/1", alias="schema")
    hosts: Mapping[str, HostFacts]
    unread: Mapping[str, UnreadHost]
    exit_code: int


def facts_body(
    states: Mapping[str, HostState], errors: Mapping[str, RemedyError], code: int
) -> dict[str, Any]:
    """Return what a ``FactsDocument`` holds.

    Args:
        states: of the hosts that were read.
        errors: why others were not.
        code: the exit code of the command.
    """
    return {
        "hosts": {name: host_facts(state) for name, state in states.items()},
        "unread": {
            name: {"error": error.message, "next_step": error.next_step}
            for name, error in errors.items()
        },
        "exit_code": code,
    }


def host_facts(state: HostState) -> dict[str, Any]:
    """Return the facts of a host as plain values, without contents of files and secrets in arguments."""
    safe = state
    if not isinstance(state.processes, Unknown):
        processes = tuple(process._replace(arguments=_safe(process)) for process in state.processes)
        safe = state.model_copy(update={"processes": processes})
    if not isinstance(safe.names, Unknown):
        # What many hosts answer alike is one object for all of them, of which pydantic knows nothing.
        names = safe.names.model_copy(update={"peers": dict(safe.names.peers)})
        safe = safe.model_copy(update={"names": names})
    facts: dict[str, Any] = _named(safe, safe.model_dump(mode="json", exclude={"files"}))
    facts["files"] = {
        path: file.model_dump(mode="json") if isinstance(file, Unknown) else _file(file)
        for path, file in state.files.items()
    }
    return facts


def _named(value: object, plain: Any) -> Any:
    """Return what pydantic made of a value, with the fields of each named tuple by their names.

    In memory a row of a table is a tuple, since a fleet has millions; a reader wants to know what its third is.

    Args:
        value: any part of a state.
        plain: the same as plain values, in the same order.
    """
    if isinstance(plain, dict):
        if isinstance(value, BaseModel):
            return {name: _named(getattr(value, name), part) for name, part in plain.items()}
        assert isinstance(value, Mapping)
        parts = zip(value.values(), plain.items(), strict=True)
        return {name: _named(part, other) for part, (name, other) in parts}
    if isinstance(plain, list):
        assert isinstance(value, (tuple, list, Set))
        items = [_named(part, other) for part, other in zip(value, plain, strict=True)]
        names: tuple[str, ...] = getattr(value, "_fields", ())
        return dict(zip(names, items, strict=True)) if names else items
    return plain


def check_groups(groups: Sequence[str]) -> None:
    """Refuse names that are no facts.

    Raises:
        UsageError: one of them is none.
    """
    raise_together(_unknown(group) for group in groups if group not in HostState.model_fields)


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, HostState.model_fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(
        f"there is no fact {name!r}{hint}",
        next_step=f"Facts: {', '.join(sorted(HostState.model_fields))}.",
    )


def render_facts(states: Mapping[str, HostState], groups: Sequence[str]) -> Iterator[str]:
    """Yield a line for each value of each fact, with the hosts that have it.

    Args:
        states: by host.
        groups: names of facts, such as ``kernel``; empty for all.
    """
    hosts: dict[tuple[str, str], list[str]] = {}
    for name, state in states.items():
        for group, value in host_facts(state).items():
            if group in (groups or HostState.model_fields):
                for place, text in _flat(group, value):
                    hosts.setdefault((place, text), []).append(name)
    for (place, text), names in sorted(hosts.items()):
        yield f"{place} = {text}  ({fold(names)})"


def _flat(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each value with its place, such as ``kernel.release``."""
    if isinstance(value, dict) and value.get("kind") == "unknown" and "reason" in value:
        yield place, f"unknown: {value['reason']}"
    elif isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _flat(f"{place}.{key}", item)
    else:
        yield place, "none" if value in (None, [], {}) else str(value)


def _file(file: File) -> dict[str, Any]:
    facts = file.model_dump(mode="json", exclude={"content"})
    digest = sha256(file.content) if file.exists else ""
    return {**facts, "size": len(file.content), "sha256": digest}


def _safe(process: Process) -> tuple[str, ...] | None:
    """Return the arguments of a process without what looks like a secret."""
    if process.arguments is None:
        return None
    safe: list[str] = []
    hide = False
    for word in process.arguments:
        name, sign, _ = word.partition("=")
        secret = looks_secret(name.lstrip("-").replace("-", "_"))
        if hide and not word.startswith("-"):
            safe.append(HIDDEN)
        elif secret and sign:
            safe.append(f"{name}={HIDDEN}")
        else:
            safe.append(_URL_LOGIN.sub(rf"\1{HIDDEN}@", word))
        hide = secret and not sign and word.startswith("-")
    return tuple(safe)
