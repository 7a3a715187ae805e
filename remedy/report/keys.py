"""Host keys as text for whoever decides whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.trust import HostKeys, KeyState

STYLES = {
    KeyState.CHANGED: "red",
    KeyState.NEW: "yellow",
    KeyState.REVOKED: "red",
    KeyState.SILENT: "red",
}


def render_keys(hosts: Iterable[HostKeys]) -> RenderableType:
    """Return each host with the state of its keys, and the fingerprints of those that are not on record."""
    lines = []
    for host in hosts:
        style = STYLES.get(host.state, "green")
        said = f" ({host.detail})" if host.detail else ""
        lines.append(Text(f"{host.host:<20}{host.state.value}{said}", style=style))
        if host.error is not None:
            lines += [Text(f"    {line}", style="dim") for line in str(host.error).splitlines()]
        if host.state in (KeyState.NEW, KeyState.CHANGED, KeyState.REVOKED):
            lines += [Text(f"    {line}", style="dim") for line in host.fingerprints]
    return Group(*lines)
