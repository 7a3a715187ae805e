"""The planner: (fleet) -> plan, without reading or asking anything."""

from __future__ import annotations

from dataclasses import dataclass

from remedy import __version__
from remedy.plan.change import Change, Finding
from remedy.plan.fleet import Fleet
from remedy.plan.plan import Plan
from remedy.plan.registry import remedies
from remedy.plan.splice import spliced


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
        only: the name of one remedy; None: all of them.

    Returns:
        the plan; it has no changes when nothing is to do.
    """
    findings: list[Finding] = []
    changes: list[Change] = []
    contents: dict[str, bytes] = {}
    chosen = [remedy for remedy in remedies() if only in (None, remedy.name)]
    sections = {remedy.name: fleet.spec.section(remedy.name, remedy.settings) for remedy in chosen}
    for remedy in chosen:
        findings += remedy.assess_fleet(fleet, sections[remedy.name])
    for host in fleet.inventory.names:
        state = fleet.states.get(host)
        if state is None:
            continue
        of_host: list[Change] = []
        for remedy in chosen:
            bench = remedy.assess(fleet, state, sections[remedy.name])
            findings += bench.findings
            of_host += bench.changes
            contents.update(bench.contents)
        changes += [
            change.model_copy(update={"id": f"{number:02d}-{change.remedy}"})
            for number, change in enumerate(of_host, 1)
        ]
    lean, blobs = spliced(changes, contents)
    return Plan(
        tool_version=__version__,
        created=origin.created,
        author=origin.author,
        inventory=fleet.inventory.path.name,
        inventory_digest=fleet.inventory.digest,
        spec_digest=fleet.spec.digest,
        changes=lean,
        findings=tuple(findings),
        blobs=blobs,
        contents=contents,
    )
