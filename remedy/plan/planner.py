"""The planner: (fleet) -> plan, without reading or asking anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from remedy import __version__
from remedy.bounds import TooMuchError, work
from remedy.plan.change import Change, Finding, FindingKind
from remedy.plan.fleet import Fleet
from remedy.plan.plan import Plan
from remedy.plan.registry import Remedy, remedies
from remedy.plan.shared import Pool, format_for
from remedy.plan.splice import spliced
from remedy.plan.workbench import Workbench
from remedy.probe import HostState
from remedy.text import quoted

SECONDS = 20.0
"""What the decisions about one host may take; usually it is some milliseconds."""

MOST_CONTENTS = 64 << 20
"""Bytes of whole files that a plan keeps for whoever shows it."""

UNREADABLE = (ValueError, RecursionError, MemoryError)
"""How a decision ends by what hosts say: ``int`` takes 4,300 digits at most; ``TooMuchError`` is one, too."""


@dataclass(frozen=True)
class Origin:
    """Who makes a plan, and when.

    Args:
        created: RFC 3339 in UTC.
        author: user@machine.
    """

    created: str
    author: str


def make_plan(fleet: Fleet, origin: Origin, *, only: str | None = None) -> Plan:
    """Decide what has to be changed on the fleet.

    Args:
        fleet: the states and the spec.
        origin: who asks, and when; goes into the plan as it is.
        only: the name of one remedy; None: all that the fleet's choice has.

    Returns:
        the plan; it has no changes when nothing is to do.
    """
    findings: Pool[Finding] = Pool()
    changes: Pool[Change] = Pool()
    contents: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}
    room = MOST_CONTENTS
    chosen = [r for r in remedies() if r.name in fleet.choice and only in (None, r.name)]
    sections = {remedy.name: fleet.spec.section(remedy.name, remedy.settings) for remedy in chosen}
    for remedy in chosen:
        findings.take(_compare(remedy, fleet, sections[remedy.name]))
    for host in fleet.inventory.names:
        state = fleet.states.get(host)
        if state is None:
            continue
        of_host: list[Change] = []
        whole: dict[str, bytes] = {}
        for bench in _judge(chosen, fleet, state, sections):
            if isinstance(bench, Finding):
                findings.take([bench])
                continue
            findings.take(bench.findings)
            of_host += bench.changes
            whole.update(bench.contents)
        lean, parts = spliced(_numbered(of_host), whole)
        changes.take(lean)
        blobs.update(parts)
        # Of a large fleet not all are kept: what is shown of a change are mostly its first host's.
        if room > 0:
            contents.update(whole)
            room -= sum(map(len, whole.values()))
    return Plan(
        format_version=format_for(len(changes.hosts | findings.hosts)),
        tool_version=__version__,
        created=origin.created,
        author=origin.author,
        inventory=fleet.inventory.path.name,
        inventory_digest=fleet.inventory.digest,
        spec_digest=fleet.spec.digest,
        changes=tuple(changes.items),
        findings=tuple(findings.items),
        blobs=blobs,
        contents=contents,
        addresses=fleet.own_addresses,
        inventory_argument=quoted(fleet.inventory.path),
        only=fleet.choice.only,
        skip=fleet.choice.skip,
    )


def _numbered(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes of a host with their ids."""
    for number, change in enumerate(changes, 1):
        yield change.model_copy(update={"id": f"{number:02d}-{change.remedy}"})


def _compare(remedy: Remedy[Any], fleet: Fleet, settings: Any) -> tuple[Finding, ...]:
    """Return what a remedy decides about all hosts together, or that they say too much to be compared."""
    try:
        with work(SECONDS):
            return remedy.assess_fleet(fleet, settings)
    except UNREADABLE as error:
        return (_not_judged(remedy.name, None, error),)


def _judge(
    chosen: Sequence[Remedy[Any]], fleet: Fleet, host: HostState, sections: Mapping[str, Any]
) -> list[Workbench[Any] | Finding]:
    """Return what each remedy decides about a host; a finding where the host says too much to be judged."""
    benches: list[Workbench[Any] | Finding] = []
    while len(benches) < len(
        chosen
    ):  # an end that comes between two remedies is no reason to leave one out
        with suppress(TooMuchError), work(SECONDS):
            for remedy in chosen[len(benches) :]:
                try:
                    benches.append(remedy.assess(fleet, host, sections[remedy.name]))
                except UNREADABLE as error:
                    benches.append(_not_judged(remedy.name, host.host, error))
    return benches


def _not_judged(remedy: str, host: str | None, error: Exception) -> Finding:
    """Return the finding about a host that says more than a remedy can judge; None: all hosts together."""
    much = isinstance(error, (TooMuchError, MemoryError, RecursionError))
    return Finding(
        host=host,
        remedy=remedy,
        kind=FindingKind.UNKNOWN,
        label="",
        title=f"{remedy} could not be judged: what {'the host says' if host else 'hosts say'} "
        f"{'is too much' if much else 'cannot be read'}",
        evidence=(str(error) or type(error).__name__,),
        fix="Check the host itself: it may be broken or compromised."
        if host
        else "Leave hosts out (--limit) until it can: one of them may be broken or compromised.",
    )
