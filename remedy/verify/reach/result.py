"""What reachability showed: which ways do not work, how each ended, and the hosts that explain them. Pure.

A pair ends as ok or as one of ``Outcome``; what is not known is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from remedy.values import Record
from remedy.verify.onhost.knock import MARK
from remedy.verify.onhost.mtu import PEERS
from remedy.verify.reach.explain import Cause, explain_ways
from remedy.verify.reach.plan import ReachPlan
from remedy.verify.reach.worst import Blamed, thinned

if TYPE_CHECKING:
    from remedy.transport import Output

Outcome = Literal[
    "refused",
    "rejected",
    "dropped",
    "stalled",
    "no listener",
    "no name",
    "foreign",
    "mute",
    "not tested",
]
# Dead ways that are kept one by one: eighty hosts that reach nobody, or three of 2,048 that nobody reaches.
MOST_DEAD = 20_000
WORDS: Mapping[str, str] = {
    "refused": "is refused (a firewall that resets)",
    "rejected": "is rejected (a firewall that rejects, or no route)",
    "dropped": "is not answered (a firewall that drops)",
    "stalled": "lets small messages through and no large ones (MTU)",
    "no listener": "has nobody listening",
    "no name": "has no right name there",
    "foreign": "is answered by another program or host",
    "mute": "is opened and never answered",
    "not tested": "was not tested",
}


class _Whole(BaseModel):
    """What came of the packets that must not be cut: peers and sizes, peers who answer none, why not asked."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    narrow: tuple[tuple[int, int], ...]
    mute: tuple[int, ...]
    reason: str


class _Said(BaseModel):
    """What one host printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    good: int
    bad: tuple[tuple[int, int, str, str], ...]
    listening: tuple[int, ...]
    busy: tuple[tuple[int, str], ...]
    ended: Literal["answered", "time"]
    whole: _Whole
    seconds: float


class NarrowWay(Record):
    """A way on which small packets come through and whole ones of ``size`` bytes do not (RFC 1191, DF set)."""

    source: str
    target: str
    size: int


class DeadWay(Record):
    """A way that does not work: from, to, on which port (0: all), how it ended, and what was seen."""

    source: str
    target: str
    port: int
    outcome: Outcome
    detail: str = ""


class Reach(Record):
    """Which hosts reach which.

    Args:
        hosts: those that were tested.
        tried: how many calls were made.
        dead: the ways that do not work; a way that was not tested is one of them. Where there are too many,
            some of those that ``crowd`` does not explain.
        count: how many there are in all, a port each.
        crowd: hosts that most ways fail to or from, where there are too many to keep each.
        lost: hosts that told nothing, and why.
        waited: hosts that went on until their time was up, because calls or callers were missing.
        narrow: the ways of ``asked`` that have a smaller MTU than the interface they begin at.
        asked: on how many ways echo requests were sent that must not be cut, and answered if small ones.
        seconds: wall clock.
    """

    hosts: tuple[str, ...]
    tried: int = 0
    dead: tuple[DeadWay, ...] = ()
    count: int = 0
    crowd: tuple[Blamed, ...] = ()
    lost: Mapping[str, str] = Field(default_factory=dict)
    waited: tuple[str, ...] = ()
    narrow: tuple[NarrowWay, ...] = ()
    asked: int = 0
    seconds: float = 0.0

    @property
    def silent(self) -> bool:
        """Whether no host said anything."""
        return self.tried == 0 and len(self.lost) == len(self.hosts)

    @property
    def passed(self) -> bool:
        """Whether every way of every pair works."""
        return not (self.count or self.dead or self.crowd)

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The fewest hosts and ways that explain what does not work."""
        others = len(self.hosts) - 1
        return (
            *(Cause(one.kind, one.host) for one in self.crowd),
            *explain_ways({(d.source, d.target) for d in self.dead}, others),
        )

    @cached_property
    def _by_way(self) -> Mapping[tuple[str, str], Sequence[DeadWay]]:
        found: dict[tuple[str, str], list[DeadWay]] = {}
        for one in self.dead:
            found.setdefault((one.source, one.target), []).append(one)
        return found

    @property
    def cut(self) -> str:
        """What packets that must not be cut showed, in a sentence; "" when all of them came through."""
        if self.narrow:
            ways = [f"{one.source} -> {one.target} ({one.size} bytes)" for one in self.narrow[:3]]
            more = f" and {len(self.narrow) - 3} more" if len(self.narrow) > 3 else ""
            where = ", ".join(ways) + more
            return f"MTU: packets as large as the sender's interface takes do not arrive: {where}"
        if self.tried and not self.asked:
            return "MTU not known: no echo request is answered"
        return ""

    def told(self, cause: Cause) -> str:
        """A cause in a sentence: who, how, on which ports, and how many ways it explains."""
        count = len(cause.ways)
        if cause.ways:
            # In the order in which they were found, as all that is told of them.
            dead = [one for way, ones in self._by_way.items() if way in cause.ways for one in ones]
            kinds = list(dict.fromkeys(str(one.outcome) for one in dead))
            ports = sorted({one.port for one in dead if one.port})
        else:
            (blamed,) = (b for b in self.crowd if (b.kind, b.host) == (cause.kind, cause.host))
            count, kinds = blamed.ways, list(blamed.kinds)
            ports = [port for port in blamed.ports if port]
        where = f" port {', '.join(map(str, ports[:4]))}{', ...' * (len(ports) > 4)}" * bool(ports)
        how = " and ".join(WORDS[kind] for kind in kinds)
        if cause.kind == "way":
            return f"{cause.host} -> {cause.target}{where} {how}"
        share = f"{count} of {len(self.hosts) - 1}"
        if cause.kind == "in":
            return f"{cause.host}: the way there from {share} hosts{where} {how}"
        return f"{cause.host}: the way from there to {share} hosts{where} {how}"


def judge(
    plan: ReachPlan,
    outputs: Mapping[str, Output],
    nameless: Mapping[tuple[str, str], str] | None = None,
    seconds: float = 0.0,
) -> Reach:
    """Say what the outputs show; pure.

    Args:
        plan: what was run.
        outputs: by host; one that is missing here told nothing.
        nameless: ways whose source does not resolve the target's name rightly, and what it resolves to.
        seconds: wall clock.
    """
    # Without what went wrong: that is read again, host by host, and never held for all of them at once.
    heard = {
        door.name: said if isinstance(said, str) else said.model_copy(update={"bad": ()})
        for me, door in enumerate(plan.doors)
        for said in (_read(plan, me, outputs),)
    }
    hosts = tuple(door.name for door in plan.doors)
    crowd: tuple[Blamed, ...] = ()
    dead = tuple(islice(_dead(plan, outputs, heard, nameless or {}), MOST_DEAD + 1))
    count = len(dead)
    if count > MOST_DEAD:
        count = sum(1 for _ in _dead(plan, outputs, heard, nameless or {}))
        crowd, dead = thinned(lambda: _dead(plan, outputs, heard, nameless or {}), hosts, MOST_DEAD)
    return Reach(
        hosts=hosts,
        tried=sum(
            len(plan.doors[other].ports)
            for me, door in enumerate(plan.doors)
            if not isinstance(heard[door.name], str)
            for other in plan.order(me)
        ),
        dead=dead,
        count=count,
        crowd=crowd,
        lost={name: said for name, said in heard.items() if isinstance(said, str)},
        **_uncut(plan, heard),
        waited=tuple(
            name
            for name, said in heard.items()
            if not isinstance(said, str) and said.ended == "time"
        ),
        seconds=seconds,
    )


class _Uncut(TypedDict):
    narrow: tuple[NarrowWay, ...]
    asked: int


def _uncut(plan: ReachPlan, heard: Mapping[str, _Said | str]) -> _Uncut:
    """What the packets that must not be cut showed, over all hosts."""
    narrow, asked = [], 0
    for me, door in enumerate(plan.doors):
        said = heard[door.name]
        if isinstance(said, str) or said.whole.reason:
            continue
        asked += min(len(plan.order(me)), PEERS) - len(said.whole.mute)
        narrow += [
            NarrowWay(source=door.name, target=plan.doors[number].name, size=size)
            for number, size in said.whole.narrow
        ]
    return {"narrow": tuple(narrow), "asked": asked}


def _dead(
    plan: ReachPlan,
    outputs: Mapping[str, Output],
    heard: Mapping[str, _Said | str],
    nameless: Mapping[tuple[str, str], str],
) -> Iterator[DeadWay]:
    """All dead ways, source by source."""
    for (source, target), detail in nameless.items():
        yield DeadWay(source=source, target=target, port=0, outcome="no name", detail=detail)
    for me, door in enumerate(plan.doors):
        said = _read(plan, me, outputs)
        if not isinstance(said, str):
            yield from _dead_of(plan, door.name, said, heard)
            continue
        for other in plan.order(me):
            target = plan.doors[other].name
            yield DeadWay(
                source=door.name, target=target, port=0, outcome="not tested", detail=said
            )


def _read(plan: ReachPlan, me: int, outputs: Mapping[str, Output]) -> _Said | str:
    """What a host said, or why it said nothing that counts."""
    name = plan.doors[me].name
    output = outputs.get(name)
    if output is None:
        return "nothing came back"
    for line in output.stdout.splitlines():
        mark, _, rest = line.partition(" ")
        nonce, _, text = rest.partition(" ")
        if mark != MARK or nonce != plan.nonce:
            continue
        try:
            said = _Said.model_validate_json(text)
        except ValueError:
            return "its report cannot be read"
        expected = {(o, port) for o in plan.order(me) for port in plan.doors[o].ports}
        bad = {(target, port) for target, port, _, _ in said.bad}
        if len(bad) != len(said.bad) or not bad <= expected:
            return "its report is not about what was asked"
        if said.good + len(bad) != len(expected):
            return "its report does not add up"
        asked = set(plan.order(me)[:PEERS])
        if not {*said.whole.mute, *(number for number, _ in said.whole.narrow)} <= asked:
            return "its report is not about what was asked"
        return said
    last = output.stderr.strip().splitlines()[-1:]
    return output.error.message if output.error else (last or ["it ended without a report"])[0]


def _dead_of(
    plan: ReachPlan, source: str, said: _Said, heard: Mapping[str, _Said | str]
) -> Iterator[DeadWay]:
    """What one host saw, joined with what the other side knows."""
    for number, port, seen, detail in said.bad:
        target = plan.doors[number].name
        other = heard[target]
        silent = isinstance(other, str)
        listening = not silent and port in other.listening  # type: ignore[union-attr]
        outcome = _outcome(seen, listening=listening, silent=silent)
        if outcome is not None:
            why = detail if listening or not silent else f"{detail}; {target}: {other}"
            yield DeadWay(source=source, target=target, port=port, outcome=outcome, detail=why)


def _outcome(seen: str, *, listening: bool, silent: bool) -> Outcome | None:
    """What a call's end means; None where the way is good after all.

    Where something else on the target holds the port, its answer, or that it only took the connection, shows
    that packets come through.
    """
    if seen in ("dropped", "rejected", "stalled"):
        return seen  # type: ignore[return-value]
    if seen == "refused":
        return "refused" if listening else "no listener"
    if seen in ("foreign", "mute"):
        return seen if listening or silent else None  # type: ignore[return-value]
    return "not tested"
