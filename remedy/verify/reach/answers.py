"""From what the hosts printed of their calls to the links that do not work. Pure.

A link is ok, or ends as one of ``LinkOutcome``; what is not known is a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from remedy.transport import Output
from remedy.verify.onhost.mtu import PEERS
from remedy.verify.reach.explain import DeadEnd, thin
from remedy.verify.reach.plan import ReachPlan
from remedy.verify.reach.report import Call, ReachAnswer, Retried, outcome_of, read_report
from remedy.verify.reach.result import Reach
from remedy.verify.verdict import DeadLink, LateLink, NarrowLink

# Dead links that are kept one by one: eighty hosts that reach nobody, or three of 2,048 that nobody reaches.
MOST_DEAD = 20_000


class ReachAnswers:
    """What the hosts printed of a plan's calls, and of those that were made a second time.

    Args:
        plan: what was run.
        outputs: by host; one that is missing here reported nothing.
        nameless: links whose source resolves the target's name wrongly, and to what.

    Attributes:
        by_host: its answer without what went wrong, or why it gave none that counts. What went wrong is read
            again, host by host, and never held for all of them at once.
        attempts: how many calls were made.
        retried: how calls ended that were made a second time.
    """

    def __init__(
        self,
        plan: ReachPlan,
        outputs: Mapping[str, Output],
        nameless: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.plan = plan
        self.outputs = outputs
        self.nameless = nameless or {}
        self.attempts = 0
        self.retried: dict[Call, Retried] = {}
        self.by_host: dict[str, ReachAnswer | str] = {}
        for me, host in enumerate(plan.hosts):
            answer = self._read(me)
            if not isinstance(answer, str):
                self.attempts += answer.good + len(answer.bad)
                answer = answer.model_copy(update={"bad": ()})
            self.by_host[host.name] = answer

    @property
    def failures(self) -> dict[str, str]:
        """The hosts that reported nothing, also none of what was tried a second time, and why."""
        hosts = self.plan.hosts
        late = {hosts[end].name for call in self._late_calls() for end in call[:2]}
        return {
            name: answer
            for name, answer in self.by_host.items()
            if isinstance(answer, str) and name not in late
        }

    @property
    def reports(self) -> dict[str, ReachAnswer]:
        """What the others reported."""
        return {name: a for name, a in self.by_host.items() if not isinstance(a, str)}

    def dead(self) -> Iterator[DeadLink]:
        """Yield all dead links, source by source."""
        yield from _nameless(self.nameless)
        for me in range(len(self.plan.hosts)):
            answer = self._read(me)
            if isinstance(answer, str):
                yield from self._dead_of_silent(me, answer)
            else:
                yield from self._dead_from(me, answer)

    def late(self) -> Iterator[LateLink]:
        """Yield the links that only failed while all hosts called, one for all of its ports."""
        slowest: dict[tuple[int, int], Retried] = {}
        dead = {call[:2] for call, retried in self.retried.items() if retried.outcome}
        for source, target, port in self._late_calls():
            retried = self.retried[source, target, port]
            former = slowest.get((source, target))
            if (source, target) in dead or not retried.seconds:
                continue
            if former is None or former.seconds < retried.seconds:
                slowest[source, target] = retried
        hosts = self.plan.hosts
        for (source, target), retried in slowest.items():
            yield LateLink(
                source=hosts[source].name,
                target=hosts[target].name,
                first=retried.detail,
                seconds=retried.seconds,
            )

    def _late_calls(self) -> Iterator[Call]:
        return (call for call, retried in self.retried.items() if retried.outcome is None)

    def _read(self, me: int) -> ReachAnswer | str:
        """What a host printed, or why that counts for nothing."""
        name = self.plan.hosts[me].name
        answer = read_report(self.plan.nonce, self.outputs.get(name))
        return (
            answer if isinstance(answer, str) else _contradiction(self.plan, me, answer) or answer
        )

    def _dead_of_silent(self, me: int, why: str) -> Iterator[DeadLink]:
        """The links from a host that reported nothing, without those that worked when tried again."""
        source = self.plan.hosts[me].name
        for peer in self.plan.order(me):
            target = self.plan.hosts[peer]
            ends = [self.retried.get((me, peer, port)) for port in target.ports]
            if not any(ends):
                yield DeadLink(
                    source=source, target=target.name, port=0, outcome="not tested", detail=why
                )
                continue
            for port, retried in zip(target.ports, ends, strict=True):
                outcome, detail = (
                    (retried.outcome, retried.detail) if retried else ("not tested", why)
                )
                if outcome is not None:
                    yield DeadLink(
                        source=source,
                        target=target.name,
                        port=port,
                        outcome=outcome,
                        detail=detail,
                    )

    def _dead_from(self, me: int, answer: ReachAnswer) -> Iterator[DeadLink]:
        """What one host saw, joined with what the other side knows."""
        source = self.plan.hosts[me].name
        for number, port, ending, detail in answer.bad:
            target = self.plan.hosts[number].name
            report = self.by_host[target]
            silent = isinstance(report, str)
            listening = not isinstance(report, str) and port in report.listening
            outcome = outcome_of(ending, listening=listening, silent=silent)
            why = f"{detail}; {target}: {report}" if silent else detail
            if (me, number, port) in self.retried:
                outcome, why, _ = self.retried[me, number, port]
            if outcome is not None:
                yield DeadLink(source=source, target=target, port=port, outcome=outcome, detail=why)


def judge_links(
    plan: ReachPlan,
    outputs: Mapping[str, Output],
    nameless: Mapping[tuple[str, str], str] | None = None,
    seconds: float = 0.0,
) -> Reach:
    """Work out which links do not work, where each was tried once.

    Args:
        plan, outputs, nameless: as for ``ReachAnswers``.
        seconds: wall clock.
    """
    return judge(ReachAnswers(plan, outputs, nameless), seconds)


def judge(answers: ReachAnswers, seconds: float = 0.0) -> Reach:
    """Work out which links do not work.

    Args:
        answers: of the hosts.
        seconds: wall clock.
    """
    plan, hosts = answers.plan, tuple(answers.by_host)
    worst: tuple[DeadEnd, ...] = ()
    dead = tuple(islice(answers.dead(), MOST_DEAD + 1))
    count = len(dead)
    if count > MOST_DEAD:
        count = sum(1 for _ in answers.dead())
        worst, dead = thin(answers.dead, hosts, plan.calls.peers, MOST_DEAD)
    reports = answers.reports
    return Reach(
        hosts=hosts,
        attempts=answers.attempts,
        links=plan.calls.links,
        peers=plan.calls.peers,
        missing=plan.calls.missing,
        dead=dead,
        count=count,
        worst=worst,
        late=tuple(answers.late()),
        failures=answers.failures,
        narrow=tuple(_narrow(plan, reports)),
        echo_links=sum(
            min(plan.calls.peers, PEERS) - len(report.mtu.mute)
            for report in reports.values()
            if not report.mtu.reason
        ),
        waited=tuple(name for name, answer in reports.items() if answer.ended == "time"),
        seconds=seconds,
    )


def links_without_names(hosts: Iterable[str], nameless: Mapping[tuple[str, str], str]) -> Reach:
    """Show names that resolve wrongly as links that do not work, where no connection was tried.

    Args:
        hosts: the names of all hosts.
        nameless: as for ``ReachAnswers``.
    """
    return Reach(hosts=tuple(hosts), dead=tuple(_nameless(nameless)))


def _narrow(plan: ReachPlan, reports: Mapping[str, ReachAnswer]) -> Iterator[NarrowLink]:
    """The links that packets which must not be cut did not pass."""
    for host in plan.hosts:
        if host.name in reports and not reports[host.name].mtu.reason:
            for number, size in reports[host.name].mtu.narrow:
                target = plan.hosts[number].name
                yield NarrowLink(source=host.name, target=target, size=size)


def _nameless(nameless: Mapping[tuple[str, str], str]) -> Iterator[DeadLink]:
    for (source, target), detail in nameless.items():
        yield DeadLink(source=source, target=target, port=0, outcome="no name", detail=detail)


def _contradiction(plan: ReachPlan, me: int, answer: ReachAnswer) -> str:
    """Why an answer cannot be one to this plan, or an empty text."""
    order = plan.order(me)
    peers = set(order)
    bad = {(target, port) for target, port, _, _ in answer.bad}
    asked = all(peer in peers and port in plan.hosts[peer].ports for peer, port in bad)
    echo_peers = set(order[:PEERS])
    probed = {*answer.mtu.mute, *(number for number, _ in answer.mtu.narrow)}
    if len(bad) != len(answer.bad) or not asked:
        return "its report is not about what was asked"
    if answer.good + len(bad) != sum(len(plan.hosts[peer].ports) for peer in order):
        return "its report does not add up"
    return "" if probed <= echo_peers else "its report is not about what was asked"
