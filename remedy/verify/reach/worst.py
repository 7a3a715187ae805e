"""Dead ways where there are too many to keep each: whole hosts are blamed by counting, the rest is kept. Pure.

2,048 hosts have four million ordered pairs. What is held of them here grows with the hosts, and as bits with
the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from remedy.values import Record
from remedy.verify.reach.explain import FEWEST, SHARE

if TYPE_CHECKING:
    from remedy.verify.reach.result import DeadWay


class Blamed(Record):
    """A host that most ways fail to ("in") or from ("out").

    Args:
        ways: how many others.
        kinds: how these ways ended.
        ports: on which; 0 is all.
    """

    kind: Literal["in", "out"]
    host: str
    ways: int
    kinds: tuple[str, ...]
    ports: tuple[int, ...]


class _Side:
    """The dead ways to, or from, one host."""

    def __init__(self) -> None:
        self.others = 0  # a bit a host
        self.seen: dict[tuple[str, int], None] = {}

    def add(self, bit: int, way: DeadWay) -> None:
        self.others |= bit
        self.seen.setdefault((way.outcome, way.port))

    def blamed(self, kind: Literal["in", "out"], host: str, others: int) -> Blamed:
        return Blamed(
            kind=kind,
            host=host,
            ways=others.bit_count(),
            kinds=tuple(dict.fromkeys(outcome for outcome, _ in self.seen)),
            ports=tuple(sorted({port for _, port in self.seen})),
        )


def thinned(
    ways: Callable[[], Iterable[DeadWay]], hosts: Sequence[str], most: int
) -> tuple[tuple[Blamed, ...], tuple[DeadWay, ...]]:
    """Blame the hosts that most ways fail to or from, and keep some of the ways that no such host explains.

    Args:
        ways: gives all dead ways, anew each time.
        hosts: all hosts.
        most: how many ways are kept.
    """
    bit = {host: 1 << number for number, host in enumerate(hosts)}
    into, out = ({host: _Side() for host in hosts} for _ in range(2))
    for way in ways():
        into[way.target].add(bit[way.source], way)
        out[way.source].add(bit[way.target], way)
    enough = max(FEWEST, SHARE * (len(hosts) - 1))
    found = [
        side.blamed("in", host, side.others)
        for host, side in into.items()
        if side.others.bit_count() >= enough
    ]
    closed = {one.host for one in found}
    gone = sum(bit[host] for host in closed)
    # As many ways from each host are left as there are hosts that are not blamed already.
    enough = max(FEWEST, SHARE * (len(hosts) - len(closed) - 1))
    found += [
        side.blamed("out", host, side.others & ~gone)
        for host, side in out.items()
        if (side.others & ~gone).bit_count() >= enough
    ]
    mute = {one.host for one in found if one.kind == "out"}
    kept: list[DeadWay] = []
    for way in _unexplained(ways(), closed, mute):
        if len(kept) == most:
            break
        kept.append(way)
    return tuple(found), tuple(kept)


def _unexplained(ways: Iterable[DeadWay], closed: set[str], mute: set[str]) -> Iterator[DeadWay]:
    return (way for way in ways if way.target not in closed and way.source not in mute)
