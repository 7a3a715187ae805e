"""Fleets in which several things are wrong at once, and what a verification of them finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from remedy.diagnose.verification import explain_verdict
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.ladder import render_rung
from remedy.report.outcome import render_outcome
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.verify.accusations import names_of, summary
from remedy.verify.hosts import Participant, Participants
from remedy.verify.reach.answers import MOST_DEAD
from remedy.verify.reach.explain import thin
from remedy.verify.reach.result import Reach
from remedy.verify.verdict import (
    Culprit,
    DeadLink,
    HostVerdict,
    LinkOutcome,
    Rung,
    Verdict,
    accused,
    because_of,
)
from tests.unit.build import host_state, record
from tests.unit.report.first import lines
from tests.unit.report.first import names_of as hosts_of

INVENTORY = "inventory.py"
ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
# What a probe shows of a host: a cause, and a title with words of the host itself in it.
CLOSED = ("firewall-ports", "firewall", "nftables on {host} keeps the cluster's hosts out")
NAMES = (
    "hostname-unresolvable",
    "hosts_file",
    "/etc/hosts lacks {n} hosts of the cluster ({host})",
)
TWINS = (
    "duplicate-hostname",
    "hostname",
    "the running host name 'node' is used by other hosts too",
)
NOTHING = ("", "", "")


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with some hosts.

    Args:
        links: which links fail because of a host, its number among all.
        known: what a probe shows of it: cause, remedy, title.
        named: whom it makes a culprit before any link is tried.
    """

    links: Callable[[Sequence[str], int], Iterator[DeadLink]] = lambda _hosts, _place: iter(())
    known: tuple[str, str, str] = NOTHING
    named: Callable[[Sequence[str]], Iterator[Culprit]] = lambda _hosts: iter(())


def dead(source: str, target: str, port: int, outcome: LinkOutcome, detail: str = "") -> DeadLink:
    return DeadLink(source=source, target=target, port=port, outcome=outcome, detail=detail)


def ports_of(place: int) -> tuple[int, ...]:
    """The port of the rendezvous, and those that a system gave: no two hosts have the same."""
    return (29500, 32768 + 37 * place % 28000, 33000 + 91 * place % 28000)


def into(
    outcome: LinkOutcome, share: float = 1.0
) -> Callable[[Sequence[str], int], Iterator[DeadLink]]:
    """Nobody, or a share of the others, reaches a host."""

    def links(hosts: Sequence[str], place: int) -> Iterator[DeadLink]:
        others = [host for host in hosts if host != hosts[place]]
        for number, source in enumerate(others[: max(2, round(share * len(others)))]):
            for port in ports_of(place):
                yield dead(source, hosts[place], port, outcome, f"{3.5 + number % 5 / 10:g} s")

    return links


def out_of(outcome: LinkOutcome) -> Callable[[Sequence[str], int], Iterator[DeadLink]]:
    """A host reaches nobody."""

    def links(hosts: Sequence[str], place: int) -> Iterator[DeadLink]:
        for number, target in enumerate(hosts):
            if number != place:
                port = 0 if outcome == "no name" else ports_of(number)[1]
                yield dead(hosts[place], target, port, outcome, "does not resolve")

    return links


def half_and_half(hosts: Sequence[str], place: int) -> Iterator[DeadLink]:
    """Some of the others are rejected by a host, the rest get no answer from it."""
    for number, source in enumerate(hosts):
        if number != place:
            outcome: LinkOutcome = "rejected" if number % 2 else "dropped"
            yield dead(source, hosts[place], ports_of(place)[number % 3], outcome)


def one_link(outcome: LinkOutcome) -> Callable[[Sequence[str], int], Iterator[DeadLink]]:
    """A host does not reach one other."""

    def links(hosts: Sequence[str], place: int) -> Iterator[DeadLink]:
        target = hosts[(place + len(hosts) // 2) % len(hosts)]
        port = 0 if outcome == "no name" else ports_of(place)[1]
        yield dead(hosts[place], target, port, outcome, f"{target} is 10.9.9.{place % 250}")

    return links


def twins(hosts: Sequence[str]) -> Iterator[Culprit]:
    if len(hosts) > 1:
        text = f"{len(hosts)} hosts call themselves 'node'"
        yield Culprit(name=",".join(hosts), hosts=tuple(hosts), reason=text)


def late_clocks(hosts: Sequence[str]) -> Iterator[Culprit]:
    for number, host in enumerate(hosts):
        reason = f"the clock of {host} is {17 + 3 * number} s behind that of most hosts"
        yield Culprit(name=host, hosts=(host,), reason=reason)


FAULTS = {
    "drops": Fault(into("dropped"), CLOSED),
    "rejects": Fault(into("rejected"), CLOSED),
    "refuses most": Fault(into("refused", 0.7), CLOSED),
    "rejects or drops": Fault(half_and_half, CLOSED),
    "lets nothing out": Fault(out_of("dropped"), CLOSED),
    "knows no names": Fault(out_of("no name"), NAMES),
    "is known to nobody": Fault(into("no name"), NAMES),
    "has one old address": Fault(one_link("no name"), NAMES),
    "one way is closed": Fault(one_link("refused")),
    "small packets": Fault(into("stalled")),
    "twins": Fault(known=TWINS, named=twins),
    "late clocks": Fault(named=late_clocks),
}


@dataclass(frozen=True)
class Shape:
    """A fleet, and which hosts have which fault; a host may have several."""

    hosts: tuple[str, ...]
    faulty: dict[str, tuple[str, ...]]

    @property
    def links(self) -> tuple[DeadLink, ...]:
        """All dead links, a port each."""
        place = {host: number for number, host in enumerate(self.hosts)}
        return tuple(
            link
            for fault, hosts in self.faulty.items()
            for host in hosts
            for link in FAULTS[fault].links(self.hosts, place[host])
        )

    @property
    def plan(self) -> Plan:
        """What an apply would change."""
        known = [
            (host, *FAULTS[fault].known)
            for fault, hosts in self.faulty.items()
            for host in hosts
            if FAULTS[fault].known[0]
        ]
        titles = {
            (host, label, remedy): title.format(host=host, n=1 + len(host) % 7)
            for host, label, remedy, title in known
        }
        findings = tuple(
            record(Finding, host=h, remedy=r, label=c, kind=FindingKind.DRIFT, title=title)
            for (h, c, r), title in titles.items()
        )
        changes = tuple(
            record(
                Change, id=f"{n:02}-{r}", host=h, remedy=r, title="do", reason=title, action=ACTION
            )
            for n, ((h, _, r), title) in enumerate(titles.items())
        )
        return record(Plan, findings=findings, changes=changes)


def shape(number: int, *faults: str, share: float = 0.3) -> Shape:
    """Give each fault its share of the hosts; those of one overlap with those of the next."""
    hosts = hosts_of(number)
    count = max(2, round(share * number))
    step = max(1, count // 2)
    faulty = {
        fault: tuple(hosts[(place * step + n) % number] for n in range(min(count, number)))
        for place, fault in enumerate(faults)
    }
    return Shape(hosts, faulty)


def reach_of(given: Shape) -> Reach:
    """What the test of all links shows."""
    every = given.links
    if len(every) <= MOST_DEAD:
        return Reach(hosts=given.hosts, dead=every, count=len(every))
    worst, some = thin(lambda: every, given.hosts, len(given.hosts) - 1, MOST_DEAD)
    return Reach(hosts=given.hosts, dead=some, count=len(every), worst=worst)


def outcome_of(given: Shape) -> RunOutcome:
    """How ``remedy verify`` ends."""
    reach, plan = reach_of(given), given.plan
    known: dict[str, list[str]] = {}
    for finding in plan.findings:
        known.setdefault(finding.host or "", []).append(finding.title)
    curable = frozenset(known)
    sight = Participants(
        [Participant(name=host, address="10.0.0.1") for host in given.hosts],
        {host: host_state(host, "10.0.0.1") for host in given.hosts[:1]},
        known,
        curable,
        INVENTORY,
    )
    named = [c for fault, hosts in given.faulty.items() for c in FAULTS[fault].named(hosts)]
    culprits = tuple(sight.with_facts(each) for each in (*named, *reach.culprits))
    reasons, why = accused(culprits), because_of(names_of(culprits))
    verdict = Verdict(
        passed=False,
        expected_hosts=len(given.hosts),
        reason=summary(culprits),
        outcomes=tuple(
            HostVerdict(host=host, outcome="fail", reason=reasons[host])
            if host in reasons
            else HostVerdict(host=host, outcome="not-tested", reason=why)
            for host in given.hosts
        ),
        culprits=culprits,
        dead_links=reach.dead,
        dead_count=reach.count,
        evidence=reach.evidence,
        rungs=(
            Rung(name="facts", passed=not named, message=summary(named)),
            reach.rung,
            Rung(name="inside each host", passed=None, message=why),
            Rung(name="whole fleet", passed=None, message=why),
        ),
    )
    return RunOutcome(
        "verify",
        "20260131T120000Z-0a1b2c3d",
        INVENTORY,
        {
            host: HostOutcome(HostStatus.PENDING if host in curable else HostStatus.OK)
            for host in given.hosts
        },
        plan,
        verdict=verdict,
        explanation=explain_verdict(verdict, plan, given.hosts, INVENTORY),
    )


def printed(outcome: RunOutcome, width: int = 2000) -> list[str]:
    """All lines of ``remedy verify``, those of its progress as well."""
    assert outcome.verdict is not None
    reached = [rung for rung in outcome.verdict.rungs if rung.passed is not None]
    rungs = [line for rung in reached for line in lines(render_rung(rung), width)]
    progress = [f"Reading {len(outcome.hosts)} hosts ...", "Verifying ..."]
    return [*progress, *rungs, *lines(render_outcome(outcome), width)]
