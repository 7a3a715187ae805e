"""Host keys as text for whoever decides whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from remedy.report.failures import error_lines
from remedy.sentences import Sentence, as_one, host_names, in_groups
from remedy.text import folded
from remedy.trust import HostKeys, KeyState
from remedy.values import Document, Headed

COMPARED = (KeyState.NEW, KeyState.CHANGED, KeyState.REVOKED)
"""States in which somebody compares the fingerprints, host by host."""
STYLES = {
    KeyState.CHANGED: "red",
    KeyState.NEW: "yellow",
    KeyState.REVOKED: "red",
    KeyState.SILENT: "red",
}


class KeysOfHost(Document):
    """The ssh host keys of one host, and what was done about them.

    Args:
        state: how they compare with what is known: `known`, `new`, `changed`, `revoked`, or `no answer`.
        detail: where the known key is, or what else there is to say; None for nothing.
        fingerprints: type and SHA-256 fingerprint of each key that it has shown.
        recorded: whether they were recorded by this command.
        error: why it showed none; None where it did.
        next_step: what to do about the error.
    """

    state: str
    detail: str | None
    fingerprints: tuple[str, ...]
    recorded: bool
    error: str | None
    next_step: str | None


class TrustDocument(Headed):
    """What ``trust`` prints with ``--json``.

    Args:
        hosts: by name; jump hosts on the way are among them.
        files: where keys were recorded.
        error: why the command went no further, such as a consent that is missing; None where it did.
        next_step: what to do about the error.
        exit_code: of the command.
    """

    schema_: Literal["remedy.trust/1"] = Field(default="remedy.trust/1", alias="schema")
    hosts: Mapping[str, KeysOfHost]
    files: tuple[str, ...]
    error: str | None
    next_step: str | None
    exit_code: int


def trust_body(
    hosts: Iterable[HostKeys], recorded: Sequence[str], files: Sequence[str]
) -> dict[str, Any]:
    """Return what a ``TrustDocument`` holds of hosts.

    Args:
        hosts: with the keys that they have shown.
        recorded: the names of those whose keys were recorded.
        files: where.
    """
    return {
        "hosts": {
            host.host: {
                "state": host.state.value,
                "detail": host.detail or None,
                "fingerprints": list(host.fingerprints),
                "recorded": host.host in recorded,
                "error": None if host.error is None else host.error.message,
                "next_step": None if host.error is None else host.error.next_step or None,
            }
            for host in hosts
        },
        "files": list(files),
    }


def render_keys(hosts: Iterable[HostKeys]) -> RenderableType:
    """Return the hosts by the state of their keys, and the fingerprints of those that are not on record.

    Somebody compares these host by host, so each has its own lines; what is said of several stands once.
    """
    every = list(hosts)
    names = host_names(host.host for host in every)
    groups: dict[KeyState, list[HostKeys]] = {}
    for host in sorted(every, key=lambda host: host.state in COMPARED):
        groups.setdefault(host.state, []).append(host)
    lines: list[Text] = []
    for state, members in groups.items():
        for alike in in_groups(Sentence.of(h.host, h.detail, names) for h in members):
            own = {sentence.host for sentence in alike}
            detail = as_one(alike)
            words = f"{state.value}{f' ({detail})' if detail else ''}"
            text = f"{folded(sentence.host for sentence in alike):<20} {words}"
            lines.append(Text(text, style=STYLES.get(state, "green")))
            lines += error_lines({h.host: h.error for h in members if h.host in own and h.error})
            if state in COMPARED:
                lines += _fingerprints([host for host in members if host.host in own])
    return Group(*lines)


def _fingerprints(hosts: Sequence[HostKeys]) -> Iterator[Text]:
    """Yield the keys that hosts have shown, those of several hosts beside their names."""
    width = max((len(host.host) for host in hosts), default=0) + 2
    for host in hosts:
        for number, line in enumerate(host.fingerprints):
            name = (host.host if number == 0 else "") if len(hosts) > 1 else None
            yield Text("    " + ("" if name is None else f"{name:<{width}}") + line, style="dim")
