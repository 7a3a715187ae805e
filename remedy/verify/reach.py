"""Reachability: every ordered pair of hosts, on ports that training would use there.

One command a host; all run at the same time, each listening and calling all others. Which ports: two of the
range from which the target's kernel really takes them, and the launcher's. A pair ends as ok or as one of
``Outcome``; what is not known is a failure.
"""

from __future__ import annotations

import base64
import json
import secrets
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from remedy.values import Record
from remedy.verify.crowd import Blamed, thinned
from remedy.verify.isolate.explain import Cause, explain_ways
from remedy.verify.knock import MARK
from remedy.verify.launch import INTERPRETERS, PORTS, given

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
# The kernel's own default: ip(7), ip_local_port_range.
USUAL_RANGE = (32768, 60999)
# Dead ways that are kept one by one: eighty hosts that reach nobody, or three of 2,048 that nobody reaches.
MOST_DEAD = 20_000
# Above this many hosts they call each other group by group, each group called by one other at a time.
GROUP = 128
# Seconds: interpreters start, the last SYN is lost, and a few hundred calls a second are made.
BASE, PER_HOST, MOST = 9.0, 0.08, 120.0
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


class Door(Record):
    """A host as its peers see it: name, cluster address, and the ports to try there.

    Args:
        python: an interpreter that the inventory names, tried first; any Python >= 3.8 will do.
    """

    name: str
    address: str
    ports: tuple[int, ...]
    python: str | None = None


class ReachPlan(Record):
    """Who calls whom.

    Args:
        nonce: 16 hexadecimal digits, new for each run.
        doors: all hosts.
        seconds: how long each host goes on at most.
        launcher: the port among each host's that the launcher would use.
    """

    nonce: str
    doors: tuple[Door, ...]
    seconds: float
    launcher: int

    def order(self, me: int) -> list[int]:
        """Whom a host calls, in which order: its own group from the next one on, then group by group."""
        count = len(self.doors)
        groups = max(1, -(-count // GROUP))
        size = -(-count // groups)
        members = [range(at, min(at + size, count)) for at in range(0, count, size)]
        own = me // size
        turn = [one for wave in range(len(members)) for one in self._turned(members, own, wave, me)]
        return [one for one in turn if one != me]

    @staticmethod
    def _turned(members: Sequence[range], own: int, wave: int, me: int) -> list[int]:
        group = members[(own + wave) % len(members)]
        start = (me - members[own].start + 1) % len(group)
        return [*group[start:], *group[:start]]


def draw_ports(
    between: tuple[int, int], taken: Collection[int], launcher: int, random: Random
) -> tuple[int, ...]:
    """Draw the ports to try on a host: one of each half of its range, and the launcher's.

    Args:
        between: the first and the last port that its kernel gives out.
        taken: ports that are listened on, or reserved.
        launcher: the launcher's port.
        random: draws.
    """
    low, high = between
    middle = (low + high) // 2
    drawn = []
    for first, last in ((low, middle), (middle + 1, high)):
        free = [port for port in range(first, last + 1) if port not in taken and port != launcher]
        drawn += [random.choice(free)] if free else []
    return (*drawn, launcher)


def plan_reach(doors: Sequence[Door], launcher: int = PORTS[0]) -> ReachPlan:
    """Plan to try all ways between hosts."""
    seconds = min(BASE + PER_HOST * len(doors), MOST)
    return ReachPlan(
        nonce=secrets.token_hex(8), doors=tuple(doors), seconds=seconds, launcher=launcher
    )


@cache
def _cargo() -> str:
    source = (resources.files("remedy.verify") / "knock.py").read_text("utf-8")
    return base64.encodebytes(zlib.compress(source.encode(), 9)).decode("ascii")


_START = """\
import base64, json, zlib
space = {{"__name__": "knock"}}
exec(compile(zlib.decompress(base64.b64decode('''
{cargo}''')), "remedy/verify/knock.py", "exec"), space)
space["main"](json.loads({config!r}))
"""


def script(plan: ReachPlan, me: int) -> str:
    """The POSIX sh text of one host."""
    config = {
        "nonce": plan.nonce,
        "me": me,
        "seconds": plan.seconds,
        "hosts": [[door.address, list(door.ports)] for door in plan.doors],
        "order": plan.order(me),
    }
    own = plan.doors[me].python
    choices = " ".join(([given(own)] if own else []) + list(INTERPRETERS))
    end = f"REMEDY_{plan.nonce}"
    return "\n".join(
        (
            f"for python in {choices}; do",
            '  command -v "$python" >/dev/null 2>&1 && break',
            "done",
            f"exec \"$python\" -I -S - <<'{end}'",
            f"{_START.format(cargo=_cargo(), config=json.dumps(config))}{end}",
            "",
        )
    )


def script_deadline(plan: ReachPlan) -> float:
    """Seconds after which the host ends the whole script."""
    return plan.seconds + 12


class _Said(BaseModel):
    """What one host printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    good: int
    bad: tuple[tuple[int, int, str, str], ...]
    listening: tuple[int, ...]
    busy: tuple[tuple[int, str], ...]
    ended: Literal["answered", "time"]
    seconds: float


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
        seconds: wall clock.
    """

    hosts: tuple[str, ...]
    tried: int = 0
    dead: tuple[DeadWay, ...] = ()
    count: int = 0
    crowd: tuple[Blamed, ...] = ()
    lost: Mapping[str, str] = Field(default_factory=dict)
    waited: tuple[str, ...] = ()
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
        waited=tuple(
            name
            for name, said in heard.items()
            if not isinstance(said, str) and said.ended == "time"
        ),
        seconds=seconds,
    )


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
