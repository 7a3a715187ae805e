"""Hosts of which one part could not be read: no remedy falls over it, or does more then."""

from __future__ import annotations

import pytest

from remedy.plan import FindingKind, Fleet, Plan, make_plan, remedies
from remedy.probe import HostState
from remedy.values import Unknown
from tests.unit.build import WHEN
from tests.unit.deploys import broken  # noqa: F401 - hosts that the program's own remedies change
from tests.unit.deploys.fleets import NAMES, Damage, FleetCase, damage
from tests.unit.deploys.values import values_of

REASON = "it did not answer in time"
# Known or not file by file, and never as a whole.
BY_PATH = ("files", "unsearched")
PARTS = sorted(
    name
    for name, field in HostState.model_fields.items()
    if "Unknown" in str(field.annotation) and name not in BY_PATH
)
RECORDING = "lab-busy"


def ill() -> Fleet:
    """Return a fleet in which there is something to do for most remedies."""
    breakable = frozenset(remedy.name for remedy in remedies() if remedy.broken is not None)
    files = {path: contents[0] for path, contents in damage.items()}
    one = Damage(RECORDING, b"127.0.1.1\tnode\n", files, "node", "node", {}, broken=breakable)
    switches = {
        remedy.name: {key: values[-1] for key, values in values_of(remedy.settings).items()}
        for remedy in remedies()
    }
    return FleetCase(tuple(one for _ in NAMES), switches).fleet()


def titles(plan: Plan, host: str) -> set[str]:
    return {change.title for change in plan.for_host(host)}


@pytest.fixture(scope="module")
def known() -> tuple[Fleet, dict[str, Plan]]:
    fleet = ill()
    plans = {remedy.name: make_plan(fleet, WHEN, only=remedy.name) for remedy in remedies()}
    assert len([plan for plan in plans.values() if plan.changes]) >= 8
    return fleet, plans


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_not_known_leads_to_nothing_that_knowing_it_would_not(
    known: tuple[Fleet, dict[str, Plan]], part: str
) -> None:
    fleet, plans = known
    host = NAMES[0]
    blind = fleet.states[host].model_copy(update={part: Unknown(reason=REASON)})
    dim = Fleet(fleet.inventory, {**fleet.states, host: blind}, fleet.spec)
    for name, whole in plans.items():
        plan = make_plan(dim, WHEN, only=name)
        assert titles(plan, host) <= titles(whole, host), name
        for finding in plan.findings:
            if finding.kind is FindingKind.UNKNOWN and finding not in whole.findings:
                assert any(REASON in line for line in finding.evidence), (name, finding)
