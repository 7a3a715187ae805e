"""Deciding something for a whole fleet once, although every host asks for it. Not a remedy."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from remedy.plan import Fleet

T = TypeVar("T")


class _Same:
    """A fleet as the object that it is: comparing two by content would cost more than deciding again."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def __hash__(self) -> int:
        return id(self.fleet)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.fleet is self.fleet


def once_a_fleet(decide: Callable[[Fleet], T]) -> Callable[[Fleet], T]:
    """Keep the answer of a pure function for the fleet that it was asked about last."""

    @lru_cache(maxsize=1)
    def kept(same: _Same) -> T:
        return decide(same.fleet)

    @wraps(decide)
    def ask(fleet: Fleet) -> T:
        return kept(_Same(fleet))

    return ask
