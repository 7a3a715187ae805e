"""Rails: which hosts are touched, and which only named."""

from __future__ import annotations

import pytest

from remedy.deploys.rails import RailsSpec
from remedy.plan import FindingKind, Plan
from remedy.probe import Interface
from tests.unit.deploys.rails_bench import plan_of, rail, settings


def kinds(plan: Plan) -> set[FindingKind]:
    return {finding.kind for finding in plan.findings}


def test_a_host_with_flux_gets_what_it_lacks_and_nothing_else() -> None:
    plan = plan_of(live=settings(b_rp_filter="1"))
    file, command = plan.changes
    assert "net.ipv4.conf.b.rp_filter = 2" in str(file) + str(command)
    assert "conf.a.rp_filter" not in str(command)
    assert "all.rp_filter" not in str(command)
    assert command.guarded


@pytest.mark.parametrize(
    "rails",
    [
        (rail("a", "10.0.0.1"), rail("b", "10.0.1.2")),
        (rail("a", "10.0.0.1"), rail("b", "10.0.0.2", prefix=32)),
        (rail("a", "10.0.0.1"),),
    ],
)
def test_a_host_without_rails_is_left_alone(rails: tuple[Interface, ...]) -> None:
    plan = plan_of(*rails, live=settings(all_rp_filter="1"))
    assert plan.changes == ()
    assert plan.findings == ()


def test_source_routing_with_arp_filter_needs_nothing() -> None:
    live = settings(all_rp_filter="1", all_arp_filter="1")
    plan = plan_of(live=live, rules=("all", "10.0.0.2"))
    assert plan.changes == ()
    assert plan.findings == ()


def test_arp_filter_without_source_routing_is_named() -> None:
    plan = plan_of(live=settings(all_arp_filter="1"))
    assert kinds(plan) == {FindingKind.BLOCKED, FindingKind.DRIFT}


def test_an_arp_ignore_that_somebody_chose_is_named() -> None:
    plan = plan_of(live=settings(a_arp_ignore="8"))
    assert FindingKind.BLOCKED in kinds(plan)
    assert "a.arp_ignore" not in str(plan.changes)


def test_a_rail_without_a_carrier_keeps_its_flux() -> None:
    rails = (rail("a", "10.0.0.1", running=False), rail("b", "10.0.0.2"))
    plan = plan_of(*rails, live=settings())
    assert plan.changes == ()
    assert kinds(plan) == {FindingKind.BLOCKED}


def test_what_is_not_managed_is_reported() -> None:
    plan = plan_of(live=settings(), spec=RailsSpec(manage=False))
    assert plan.changes == ()
    assert kinds(plan) == {FindingKind.REPORT}


def test_a_setting_that_was_not_read_is_unknown() -> None:
    live = settings()
    del live["net.ipv4.conf.b.arp_filter"]
    plan = plan_of(live=live)
    assert plan.changes == ()
    assert kinds(plan) == {FindingKind.UNKNOWN}
