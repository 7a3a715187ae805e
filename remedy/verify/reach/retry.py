"""Links that failed while all hosts called each other, tried again a few at a time: late is not dead. Pure.

Of a host to or from which most links fail, some are tried first: where these fail again, so would the others.
Where one of them works, all of them are tried.
"""

from __future__ import annotations

import heapq
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from random import Random
from typing import Literal

from remedy.errors import UnreachableError
from remedy.transport import Output
from remedy.values import Record
from remedy.verify.reach.answers import ReachAnswers
from remedy.verify.reach.plan import ANSWER, CONNECT, MOST, STARTING, ReachPlan, knock_text
from remedy.verify.reach.report import (
    NO_PYTHON,
    Call,
    ReachAnswer,
    Retried,
    outcome_of,
    read_report,
)
from remedy.verify.reach.result import Reach
from remedy.verify.scripts import NO_ANSWER
from remedy.verify.verdict import LinkOutcome

ROUNDS = 2
# Links of a host that are tried before the rest, in each direction.
SAMPLE = 3
# Calls of a host that are under way at a time.
FLIGHT = 8
# Links that are tried again in one round, at most.
MOST_AGAIN = 20_000
# Seconds for hosts that start at different moments, and what a quiet fleet takes for an answer and for a start.
SKEW, USUAL_ANSWER, USUAL_START = 2.0, 0.5, 3.0
# A port in the place of another is at most so far from it: rules are about ranges.
NEAR = 100
# Seconds that the whole script may take longer: the interpreter is looked for.
STARTING_PYTHON = 12.0
# A busy fleet gets so many times as long, at most.
MOST_PATIENCE = 4.0

# By the kind of a dead end, which links it explains: to the host, from it, or both.
_SIDES: Mapping[str, tuple[Literal["in", "out"], ...]] = {
    "in": ("in",),
    "out": ("out",),
    "host": ("in", "out"),
}
# How the first try of a link ended that may only be late; a late host listens too late, or reports nothing.
_FIRST: Mapping[LinkOutcome, str] = {
    "dropped": "no connection",
    "stalled": "no answer",
    "mute": "no answer",
    "refused": "refused",
    "no listener": "refused",
    "not tested": "not tried in time",
}

Pair = tuple[int, int]
Side = tuple[Literal["in", "out"], int]
# What was seen on each port of a link.
Ends = Mapping[int, str]


class RetryPlan(Record):
    """Which calls are made again.

    Args:
        nonce: 16 hexadecimal digits, new for each run.
        calls: the ports by target, by source.
        instead: by target, ports that are tried in the place of others that something on it holds.
        seconds: how long each host goes on at most.
        patience: how many times as long as usual a call may take.
    """

    nonce: str
    calls: Mapping[int, Mapping[int, tuple[int, ...]]]
    instead: Mapping[int, Mapping[int, int]]
    seconds: float
    patience: float

    @cached_property
    def hosts(self) -> list[int]:
        """The numbers of the hosts that take part."""
        targets = (target for calls in self.calls.values() for target in calls)
        return sorted({*self.calls, *targets})

    def port(self, target: int, port: int) -> int:
        """Return the port that is tried on a host for one of the first pass."""
        return self.instead.get(target, {}).get(port, port)

    @property
    def deadline(self) -> float:
        """Seconds after which a host ends the whole script."""
        return self.seconds + STARTING_PYTHON * self.patience


def patience_of(answers: ReachAnswers, seconds: float) -> float:
    """Return how many times as long as in a quiet fleet things took.

    Args:
        answers: of the pass in which all hosts called.
        seconds: that it took, wall clock.
    """
    reports = answers.reports.values()
    slowest = max((report.slowest for report in reports), default=0.0)
    inner = max((report.seconds for report in reports), default=seconds)
    start = (seconds - inner) / (USUAL_START + STARTING * len(answers.plan.hosts))
    return min(max(1.0, slowest / USUAL_ANSWER, start), MOST_PATIENCE)


class Retries:
    """The second tries of one plan, in at most two rounds.

    Args:
        answers: of the pass in which all hosts called; takes what the second tries show.
        seconds: that it took.
    """

    def __init__(self, answers: ReachAnswers, seconds: float) -> None:
        self.answers = answers
        self.patience = patience_of(answers, seconds)
        self.number = {host.name: number for number, host in enumerate(answers.plan.hosts)}
        self.samples: dict[Side, tuple[Pair, ...]] = {}
        self.first: dict[Call, str] = {}
        self.rounds = 0

    def next_plan(self, reach: Reach) -> RetryPlan | None:
        """Plan the next round; None where all that failed has been tried again, as far as it has to be.

        Args:
            reach: what is known by now.
        """
        self.rounds += 1
        if reach.silent or reach.passed or self.rounds > ROUNDS:
            return None
        pairs = self._samples(reach) if self.rounds == 1 else self._rest()
        if not pairs:
            return None
        calls: dict[int, dict[int, tuple[int, ...]]] = {}
        for (source, target), ends in pairs.items():
            calls.setdefault(source, {})[target] = tuple(ends)
            self.first |= {(source, target, port): ending for port, ending in ends.items()}
        busiest = max(sum(map(len, by_target.values())) for by_target in calls.values())
        turns = -(-busiest // FLIGHT)
        seconds = (SKEW + ANSWER + CONNECT * (turns - 1)) * self.patience
        return RetryPlan(
            nonce=secrets.token_hex(8),
            calls=calls,
            instead={me: self._instead(me) for by_target in calls.values() for me in by_target},
            seconds=min(seconds, MOST),
            patience=self.patience,
        )

    def take(self, plan: RetryPlan, outputs: Mapping[str, Output]) -> None:
        """Take what a round showed; a host that reports nothing shows nothing new.

        Args:
            plan: from ``next_plan``.
            outputs: by host name.
        """
        names = {number: self.answers.plan.hosts[number].name for number in plan.hosts}
        reports = {
            number: read_report(plan.nonce, outputs.get(name)) for number, name in names.items()
        }
        for source, calls in plan.calls.items():
            report = reports[source]
            first = {(t, plan.port(t, port)): port for t, ports in calls.items() for port in ports}
            if isinstance(report, str) or not _is_about(report, first):
                continue
            for target, tried, seconds in report.times:
                call = (source, target, first[target, tried])
                # Over another port it shows that packets come through, and not how fast over the first.
                same_port = tried == call[2]
                self.answers.retried[call] = (
                    Retried(None, self.first[call], seconds) if same_port else Retried(None)
                )
            for target, tried, ending, detail in report.bad:
                end = _end(ending, f"{detail}, tried again", tried, reports[target])
                self.answers.retried[source, target, first[target, tried]] = end

    def _instead(self, me: int) -> dict[int, int]:
        """Draw ports near to those that something else on a host holds, such as a connection to elsewhere.

        The launcher's port is the one that will be used: nothing else says as much.
        """
        host, launcher = self.answers.plan.hosts[me], self.answers.plan.launcher
        report = self.answers.by_host[host.name]
        busy = () if isinstance(report, str) else (port for port, _ in report.busy)
        taken, drawn = {*host.ports}, {}
        for port in busy:
            near = [
                p for p in range(port - NEAR, port + NEAR) if 1024 <= p <= 65535 and p not in taken
            ]
            if port in host.ports and port != launcher:
                drawn[port] = secrets.choice(near)
                taken.add(drawn[port])
        return drawn

    def _samples(self, reach: Reach) -> dict[Pair, Ends]:
        """Return the links to try first: some of each host that is to be named, and all others."""
        sides: set[Side] = {
            (side, self.number[end.host])
            for end in reach.dead_ends
            for side in _SIDES.get(end.kind, ())
        }
        random = Random(self.answers.plan.nonce)  # noqa: S311  (which are tried is no secret)
        drawn: dict[Side, list[tuple[float, Pair]]] = {side: [] for side in sides}
        pairs: dict[Pair, Ends] = {}
        for pair, ends in self._hopeful():
            named = _sides_of(pair) & sides
            if not named and len(pairs) < MOST_AGAIN:
                pairs[pair] = ends
            # A link both of whose ends are named says less of each.
            rank = random.random() + len(named)
            for side in named:
                heapq.heappush(drawn[side], (-rank, pair))
                if len(drawn[side]) > SAMPLE:
                    heapq.heappop(drawn[side])
        self.samples = {side: tuple(pair for _, pair in links) for side, links in drawn.items()}
        chosen = {pair for links in self.samples.values() for pair in links}
        return pairs | {pair: ends for pair, ends in self._hopeful() if pair in chosen}

    def _rest(self) -> dict[Pair, Ends]:
        """Return the links, not tried again yet, of hosts that are not dead at either end."""
        working = {side for side, links in self.samples.items() if any(map(self._works, links))}
        dead = self.samples.keys() - working
        pairs: dict[Pair, Ends] = {}
        for pair, ends in self._hopeful() if working else ():
            sides = _sides_of(pair)
            new = not any((*pair, port) in self.answers.retried for port in ends)
            if new and sides & working and not sides & dead and len(pairs) < MOST_AGAIN:
                pairs[pair] = ends
        return pairs

    def _works(self, pair: Pair) -> bool:
        """Whether each call of a link that was made again was answered."""
        ports = self.answers.plan.hosts[pair[1]].ports
        ends = [self.answers.retried.get((*pair, port)) for port in ports]
        tried = [end for end in ends if end is not None]
        return bool(tried) and all(end.outcome is None for end in tried)

    def _hopeful(self) -> Iterator[tuple[Pair, Ends]]:
        """Yield the links that may only be late, with what was seen on each port."""
        lost = {name for name in self.answers.by_host if not self._is_hopeful(name)}
        for source, links in groupby(self.answers.dead(), key=lambda link: link.source):
            by_target: dict[str, dict[int, str]] = {}
            for link in links:
                if link.outcome in _FIRST and link.target not in lost and source not in lost:
                    ports = self.answers.plan.hosts[self.number[link.target]].ports
                    ending = f"{_FIRST[link.outcome]}: {link.detail}"
                    ends = by_target.setdefault(link.target, {})
                    ends |= dict.fromkeys((link.port,) if link.port else ports, ending)
            for target, ends in by_target.items():
                yield (self.number[source], self.number[target]), ends

    def _is_hopeful(self, name: str) -> bool:
        """Whether a host is connected, and has what it needs, or did not come as far as to say so."""
        answer = self.answers.by_host[name]
        if not isinstance(answer, str):
            return True
        output = self.answers.outputs.get(name)
        if output is None or isinstance(output.error, UnreachableError):
            return False
        return not answer.startswith(NO_PYTHON) or NO_ANSWER in answer


def retry_script(plan: ReachPlan, retry: RetryPlan, me: int) -> str:
    """Render the POSIX sh text of one host in a second try.

    Args:
        plan: of the first one; the ports are the same, because a rule may be about them.
        retry: which calls are made again.
        me: the number of the host.
    """
    host = plan.hosts[me]
    tried = (port for calls in retry.calls.values() for port in calls.get(me, ()))
    visits = Counter(retry.port(me, port) for port in tried)
    config: dict[str, object] = {
        "nonce": retry.nonce,
        "me": me,
        "seconds": retry.seconds,
        "address": host.address,
        "ports": list(visits),
        "calls": [
            [target, plan.hosts[target].address, [retry.port(target, port) for port in ports]]
            for target, ports in retry.calls.get(me, {}).items()
        ],
        "visits": {str(port): count for port, count in visits.items()},
        "connect": CONNECT * retry.patience,
        "answer": ANSWER * retry.patience,
        "flight": FLIGHT,
        "echo": 0,
        "timed": True,
    }
    return knock_text(config, host.python, retry.patience)


def _sides_of(pair: Pair) -> set[Side]:
    """The two ends of a link: what it says of the host that calls, and of the one that is called."""
    source, target = pair
    return {("in", target), ("out", source)}


def _is_about(report: ReachAnswer, asked: Collection[tuple[int, int]]) -> bool:
    """Whether a report is one of exactly these calls, each a target and a port."""
    good = [(target, port) for target, port, _ in report.times]
    bad = [(target, port) for target, port, _, _ in report.bad]
    return report.good == len(good) and sorted([*good, *bad]) == sorted(asked)


def _end(ending: str, detail: str, port: int, report: ReachAnswer | str) -> Retried:
    """How a call ended that failed again."""
    silent = isinstance(report, str)
    listening = not isinstance(report, str) and port in report.listening
    return Retried(outcome_of(ending, listening=listening, silent=silent), detail)
