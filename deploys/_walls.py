"""What is said of the firewalls of a host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from remedy.firewall import iptables, spans
from remedy.firewall.ports import Need
from remedy.firewall.step import Amendment, FileStep, Opening, Way
from remedy.firewall.traffic import Doubt, Dropped
from remedy.firewall.walls import AT_BOOT, Wall
from remedy.plan import FindingKind, Workbench
from remedy.probe import Firewalls
from remedy.text import counted
from remedy.values import Unknown

Bench: TypeAlias = Workbench[Any]

MOST_DOUBTS = 20
"""Rules of a firewall that are shown one by one; more are counted."""


@dataclass(frozen=True)
class Reasons:
    """What ports are needed for, and whether a firewall that closes them is only reported.

    Args:
        at_this_host: on this host.
        in_fleet: on any host of the fleet.
        leaves: whether the spec says ``mode: leave``.
    """

    at_this_host: Sequence[Need]
    in_fleet: Sequence[Need]
    leaves: bool

    @property
    def without_services(self) -> Reasons:
        """The needs of what a job starts by itself, without those that a service of the host serves."""
        here = tuple(need for need in self.at_this_host if not need.standing)
        anywhere = tuple(need for need in self.in_fleet if not need.standing)
        return Reasons(here, anywhere, self.leaves)


def without_doubts_of_services(walls: Sequence[Wall], for_jobs: Sequence[Wall]) -> tuple[Wall, ...]:
    """Return walls without the doubts that are about services of the host alone.

    How often somebody may call sshd (`ufw limit ssh`, fail2ban) is the site's choice, and no doubt.

    Args:
        walls: what they do with all packets of the cluster.
        for_jobs: what they do with those of what a job starts by itself.
    """
    doubts = {doubt for wall in for_jobs for doubt in wall.doubts}
    return tuple(replace(w, doubts=tuple(d for d in w.doubts if d in doubts)) for w in walls)


def alike(wall: Wall, walls: Sequence[Wall]) -> tuple[Wall, ...]:
    """Return the firewalls that let the same through: the tables of iptables have one file of saved rules."""
    if wall.name not in iptables.NAMES:
        return (wall,)
    return tuple(other for other in walls if other.name in iptables.NAMES)


def present_of(wall: Wall) -> Opening | None:
    """Return what remedy's own rules in a firewall let through; None where there are none."""
    return None if wall.propose is None else wall.propose(Opening()).present


def shared_ways(walls: Sequence[Wall]) -> tuple[Way, ...]:
    """Return the directions in which remedy has to have rules in firewalls that are alike."""
    needed = {way for wall in walls for way in ways_of(wall, present_of(wall))}
    both: tuple[Way, ...] = ("in", "out")
    return tuple(way for way in both if way in needed)


def ways_of(wall: Wall, now: Opening | None) -> tuple[Way, ...]:
    """Return the directions in which remedy has to have rules in a firewall."""
    if wall.name == AT_BOOT:
        return ("in", "out")
    has_out = now is not None and bool(now.targets)
    has_in = now is not None and (bool(now.sources) or not has_out)
    ways: list[Way] = ["in"] if wall.incoming or has_in else []
    return (*ways, "out") if wall.outgoing or has_out else tuple(ways)


def explain(bench: Bench, wall: Wall, proposal: Amendment, reasons: Reasons) -> None:
    """Say what is wrong with a firewall, in words."""
    for dropped, title, needs_there, behind in (
        (
            wall.incoming,
            f"{wall.name} keeps the cluster's hosts out of ports that training needs",
            reasons.at_this_host,
            f"{wall.name} keeps the cluster's hosts out, by a rule that comes before remedy's",
        ),
        (
            wall.outgoing,
            f"{wall.name} keeps this host from connecting to the cluster's hosts, or from answering them",
            reasons.in_fleet,
            f"{wall.name} drops what this host sends to the cluster's, by a rule that comes before remedy's",
        ),
    ):
        if not dropped:
            continue
        evidence = evidence_of(dropped, needs_there)
        if reasons.leaves:
            fix = "Let the cluster's addresses through on these ports, or take firewall.mode: leave out."
            bench.report(title, evidence, fix)
        elif proposal.steps:
            bench.drift(title, evidence)
        elif all(note.kind is FindingKind.REPORT for note in proposal.notes):
            fix = "Remove that rule, or let the cluster's addresses through ahead of it."
            bench.blocked(behind, evidence, fix)
    if not wall.drops and proposal.steps and not reasons.leaves:
        title = f"remedy's rules in {wall.name} are not those that the cluster needs now"
        if wall.name == AT_BOOT:
            title = f"{AT_BOOT} does not let in whom the cluster needs now"
        bench.drift(title, (step.path for step in proposal.steps if isinstance(step, FileStep)))


def evidence_of(dropped: Dropped, needed: Iterable[Need]) -> tuple[str, ...]:
    """Return the rules that drop, and what is needed of the ports that they close."""
    closed = [n for n in needed if spans.meet(((n.low, n.high),), dropped.ports)]
    return (*dropped.words[:3], *(f"needed: {need}" for need in closed))


def note_stuck(bench: Bench, wall: Wall, reasons: Reasons) -> None:
    """Say what a table drops that remedy does not change."""
    fix = f"Remove that rule, or let the cluster's addresses through ahead of it. To see all: {wall.show}"
    for dropped, what, closed in (
        (wall.incoming, "what the cluster's hosts send to this host", reasons.at_this_host),
        (wall.outgoing, "what this host sends to the cluster's", reasons.in_fleet),
        (wall.arp, "ARP, without which this host and the cluster's find no way to each other", ()),
    ):
        if dropped:
            title = f"{wall.name} drops {what}; remedy does not change this table"
            note = bench.report if reasons.leaves else bench.blocked
            note(title, evidence_of(dropped, closed), fix)


def accept(doubt: Doubt) -> str:
    """Return how a rule is accepted by its text."""
    text = json.dumps(doubt.words, ensure_ascii=False)
    return f"If it drops none of them, accept it in remedy.yaml: firewall: {{accepted_rules: [{text}]}}"


def look(wall: Wall) -> str:
    """Return how the rules of a firewall are looked at by hand."""
    return f"See whether they let the cluster's hosts through: {wall.show or 'nft list ruleset'}"


def note_doubts(bench: Bench, wall: Wall) -> None:
    """Say which rules of a firewall may drop packets of the cluster, without a way to know."""
    if wall.exhausted:
        bench.unknown(
            f"{wall.name} has more rules than can be judged",
            fix=look(wall),
        )
    for doubt in wall.doubts[:MOST_DOUBTS]:
        reasons = [f"depends on: {', '.join(doubt.unread)}"] if doubt.unread else []
        outcome = [f"then: {doubt.outcome}"] if doubt.outcome else []
        bench.unknown(
            f"{wall.name}: a rule may drop packets between this host and the cluster's",
            (doubt.words, *reasons, *outcome),
            accept(doubt),
        )
    if len(wall.doubts) > MOST_DOUBTS:
        more = counted(len(wall.doubts) - MOST_DOUBTS, "rule")
        bench.unknown(
            f"{wall.name}: {more} more may drop packets between this host and the cluster's"
        )


def report_powerless(bench: Bench, firewalls: Firewalls, walls: Sequence[Wall]) -> None:
    """Report that firewalld runs and holds nothing back: a reload that failed leaves it so."""
    if (
        isinstance(firewalls.firewalld, str)
        and not isinstance(firewalls.nft, Unknown)
        and not any(wall.name == "firewalld" for wall in walls)
    ):
        bench.report(
            "firewalld runs, but none of its rules is in force: every port is open to everybody",
            fix="See why: journalctl -u firewalld; its rules come back with: firewall-cmd --reload",
        )


def note_leftover(bench: Bench, wall: Wall) -> None:
    """Say that a firewall drops packets although it is off."""
    words = (*wall.incoming.words, *wall.outgoing.words)
    if words:
        bench.blocked(
            f"{wall.name} is off, but its rules are in force and keep the cluster's hosts out",
            words[:3],
            f"Start {wall.name} and run the command again, or stop it in good order to have its rules removed.",
        )
