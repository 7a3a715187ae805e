"""A close look at a few hosts as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

if TYPE_CHECKING:
    from remedy.verify.look.compare import HostView

NOTHING = (
    "nothing moved, nothing was logged and nothing differs: check what is between the hosts"
    " (switch, cable, VLAN)"
)


def render_views(views: Sequence[HostView]) -> RenderableType:
    """Return what a close look showed, host by host."""
    return Group(*(line for view in views for line in _view(view)))


def _view(view: HostView) -> Iterator[Text]:
    yield Text(f"closer       {view.host}", style="bold")
    if view.failure:
        yield Text(f"             not checked: {view.failure}", style="red")
    for title, lines in (
        ("moved while it was tried", view.moved),
        ("stands still", view.stopped),
        ("says", view.says),
        ("differs from the others", view.differs),
    ):
        if lines:
            yield Text(f"             {title}", style="default")
        for line in lines:
            yield Text(f"               {line}", style="dim")
    if view.empty:
        yield Text(f"             {NOTHING}", style="dim")
