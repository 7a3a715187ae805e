"""Host keys as text for whoever decides whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.report.failures import error_lines
from remedy.report.folding import Fold, Specimen, alike, own_words
from remedy.text import fold
from remedy.trust import HostKeys, KeyState

COMPARED = (KeyState.NEW, KeyState.CHANGED, KeyState.REVOKED)
"""States in which somebody compares the fingerprints, host by host."""
STYLES = {
    KeyState.CHANGED: "red",
    KeyState.NEW: "yellow",
    KeyState.REVOKED: "red",
    KeyState.SILENT: "red",
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
