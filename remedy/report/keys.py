"""Host keys as text for whoever decides whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.trust import HostKeys, KeyState

STYLES = {KeyState.CHANGED: "red", KeyState.NEW: "yellow", KeyState.SILENT: "red"}


def render_keys(hosts: Iterable[HostKeys]) -> RenderableType:
    """Return each host with the state of its keys, and the fingerprints of those that are not on record."""
    lines = []
    for host in hosts:
        style = STYLES.get(host.state, "green")
        lines.append(Text(f"{host.host:<20}{host.state.value}", style=style))
        if host.state in (KeyState.NEW, KeyState.CHANGED):
            lines += [Text(f"    {line}", style="dim") for line in host.fingerprints]
    return Group(*lines)
