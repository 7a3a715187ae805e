"""Host keys as text for whoever decides whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from remedy.report.failures import error_lines
from remedy.report.folding import Fold, Specimen, alike, own_words
from remedy.text import fold
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
    """Return each host with the state of its keys, and the fingerprints of those that are not on record.

    Hosts with nothing to compare are shown together, where they are in one state for one reason.
    """
    every = list(hosts)
    texts = {
        host.host: f"{host.state.value}{f' ({host.detail})' if host.detail else ''}"
        for host in every
    }
    lines: list[Text] = []
    for group in folds([host for host in every if host.state not in COMPARED], texts):
        first = group.items[0]
        style = STYLES.get(first.state, "green")
        lines.append(Text(f"{fold(group.hosts):<20} {texts[first.host]}", style=style))
        lines += error_lines({h.host: h.error for h in group.items if h.error is not None})
    for host in (host for host in every if host.state in COMPARED):
        lines.append(Text(f"{host.host:<20} {texts[host.host]}", style=STYLES[host.state]))
        lines += error_lines({} if host.error is None else {host.host: host.error})
        lines += [Text(f"    {line}", style="dim") for line in host.fingerprints]
    return Group(*lines)


def folds(hosts: Iterable[HostKeys], texts: Mapping[str, str]) -> list[Fold[HostKeys]]:
    """Return hosts together that are in one state for one reason."""
    specimens = (Specimen(host, host.host, (host.state,), (texts[host.host],)) for host in hosts)
    return alike(specimens, own_words(texts, {}))
