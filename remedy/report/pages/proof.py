"""What the page of a run shows of its verdict: whom it names, how the hosts ended, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remedy.report.culprits import Fact, accused_of, facts_of, steps
from remedy.report.pages.bandwidth import Pace, Plot, pace_of, plot_of
from remedy.report.pages.map import Map, map_of
from remedy.sentences import Sentence, as_one, host_names, in_groups
from remedy.text import counted, fold
from remedy.verify.verdict import Verdict


def ground(verdict: Verdict) -> Iterator[str]:
    """Yield what was tested, as far as it is known."""
    if verdict.backend:
        yield f"{verdict.world_size} of {counted(verdict.expected_world_size, 'rank')}"
        yield f"{verdict.hosts} of {counted(verdict.expected_hosts, 'host')}"
        yield verdict.backend
    else:
        yield f"{counted(verdict.expected_hosts, 'host')}, no all-reduce"
    yield from (f"torch {version}" for version in verdict.torch)
    yield from (f"NCCL {version}" for version in verdict.nccl)
    yield from verdict.software
    if verdict.seconds:
        yield f"{verdict.seconds:.1f} s"


@dataclass(frozen=True)
class CulpritBlock:
    """Hosts or links that are named for one reason.

    Args:
        names: whom; "" where nobody can be named.
        reason: what follows the names in the sentence.
        also: further reasons of some of the hosts, a line each.
        facts: what was seen of them, a line each.
        each: every culprit by itself, where these are several.
    """

    names: str
    reason: str
    also: tuple[str, ...]
    facts: tuple[str, ...]
    each: tuple[str, ...]


def culprits_of(verdict: Verdict) -> tuple[CulpritBlock, ...]:
    """Return whom the verdict names, those with one reason together, and nothing left out."""
    return tuple(
        CulpritBlock(
            group.name,
            group.sentence.removeprefix(group.name) if group.name else f": {group.sentence}",
            tuple(f"{fold(reason.hosts)}: {reason.text}" for reason in group.also.values()),
            tuple(_of_hosts(fact, group.hosts) for fact in facts_of(group)),
            tuple(culprit.reason for culprit in group.culprits) if group.culprits[1:] else (),
        )
        for group in accused_of(verdict)
    )


def _of_hosts(fact: Fact, of: Sequence[str]) -> str:
    """Return what was seen, with the hosts where these are not all of them."""
    is_of_all = not fact.hosts or set(fact.hosts) == set(of)
    return fact.text if is_of_all else f"{fold(fact.hosts)}: {fact.text}"


@dataclass(frozen=True)
class GroupRow:
    """A group that was tested, its hosts folded."""

    round: int
    purpose: str
    hosts: str
    passed: bool


def tests_of(verdict: Verdict) -> tuple[GroupRow, ...]:
    """Return what the search for culprits tested."""
    return tuple(
        GroupRow(test.round, test.purpose, fold(test.hosts), test.passed) for test in verdict.tests
    )


@dataclass(frozen=True)
class HostRow:
    """Hosts that ended alike, folded."""

    names: str
    outcome: str
    reason: str
    look: str


def hosts_of(verdict: Verdict) -> tuple[HostRow, ...]:
    """Return how the hosts ended, those that ended alike together."""
    names = host_names(entry.host for entry in verdict.outcomes)
    ended: dict[str, list[Sentence]] = {}
    for entry in verdict.outcomes:
        reason = entry.reason.removeprefix(f"{entry.host}: ")
        ended.setdefault(entry.outcome, []).append(Sentence.of(entry.host, reason, names))
    looks = {"pass": "good", "fail": "bad"}
    return tuple(
        HostRow(fold(s.host for s in group), outcome, as_one(group), looks.get(outcome, "dim"))
        for outcome, sentences in ended.items()
        for group in in_groups(sentences)
    )


@dataclass(frozen=True)
class ProofSection:
    """What a page shows of a verdict.

    Args:
        verdict: itself, with the ladder, the groups and the sizes.
        culprits: whom it names.
        steps: the commands to run next.
        plot: bus bandwidth over size; None where none was measured.
        pace: of the hosts; None where it was not measured.
        map: of the links; None where none was tried by itself.
        tests: of the search for culprits.
        hosts: how they ended.
    """

    verdict: Verdict
    culprits: tuple[CulpritBlock, ...]
    steps: tuple[str, ...]
    plot: Plot | None
    pace: Pace | None
    map: Map | None
    tests: tuple[GroupRow, ...]
    hosts: tuple[HostRow, ...]


def proof_of(verdict: Verdict) -> ProofSection:
    """Return what a page shows of a verdict."""
    return ProofSection(
        verdict,
        culprits_of(verdict),
        tuple(steps(verdict.culprits)),
        plot_of(verdict),
        pace_of(verdict),
        map_of(verdict),
        tests_of(verdict),
        hosts_of(verdict),
    )
