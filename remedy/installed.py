"""The entry points of all packages that are installed here, read once: that opens a file of every package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any

REMEDIES = "remedy.deploys"
"""The group in which packages name remedies of theirs."""


def points(*, group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, as ``importlib.metadata.entry_points`` does."""
    return tuple(_groups().get(group, ()))


@cache
def _groups() -> Mapping[str, list[EntryPoint]]:
    points: Any = entry_points()
    groups: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    # Before Python 3.12 they are a dict by group, whose own way to its values is deprecated.
    for point in chain.from_iterable(dict.values(points)) if isinstance(points, dict) else points:
        groups[point.group].append(point)
    return groups
