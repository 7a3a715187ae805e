"""Plans in tests: how one is made, and what it and the remedies that made it have to hold.

The decision of a remedy says what is now and what will be; its ``promises`` and ``observes`` say the same a
second time, from the state. Here the two are held against each other.
"""

from __future__ import annotations

from remedy.plan import (
    Change,
    CommandAction,
    Finding,
    Fleet,
    find_remedy,
    inverse,
    make_plan,
    promised,
)
from remedy.plan.plan import Plan
from remedy.plan.promise import after
from remedy.probe import File, HostState
from tests.unit.build import WHEN

LOOKED_AT = (
    "identity",
    "sysctls",
    "firewalls",
    "units",
    "limits",
    "shared_memory",
    "routing",
    "queueing",
)


def plan_of(fleet: Fleet, only: str | None = None) -> Plan:
    """Return the plan of one remedy, or of all."""
    return make_plan(fleet, WHEN, only=only)


def plan_with(*findings: Finding) -> Plan:
    """Return a plan that has findings and changes nothing."""
    return Plan(
        tool_version="0",
        created="2026-01-01T00:00:00Z",
        author="me@here",
        inventory="inventory.py",
        inventory_digest="0",
        spec_digest="0",
        findings=findings,
    )


def taken_back(plan: Plan) -> Plan:
    """Return the plan that takes a plan back."""
    steps = (step for host in plan.hosts for step in inverse(plan.for_host(host)))
    return plan.model_copy(update={"changes": tuple(steps)})


def settled(fleet: Fleet, only: str | None = None) -> Plan:
    """Check a fleet's plan in every way; return it."""
    plan = plan_of(fleet, only)
    check_commands(fleet, plan)
    check_converged(fleet, plan, only)
    check_way_back(fleet, plan)
    return plan


def check_converged(fleet: Fleet, plan: Plan, only: str | None = None) -> None:
    """Check that what a plan promises needs no plan."""
    again = plan_of(promised(fleet, plan), only)
    changes = [summary(change) for change in again.changes]
    assert changes == [], (
        f"planned again, so `promises` of the remedy does not say what becomes: {changes}"
    )


def check_commands(fleet: Fleet, plan: Plan) -> None:
    """Check that each command's ``before`` is what the host is now, and ``after`` what it will be."""
    for host in plan.hosts:
        state = fleet.states[host]
        for change in plan.for_host(host):
            then = after(state, change, plan)
            if isinstance(change.action, CommandAction):
                observe = find_remedy(change.remedy).observation
                where = f"{change.remedy}: {change.title!r}"
                assert observe is not None, (
                    f"{where} runs a command: say with @{change.remedy}.observes what its `observe` prints"
                )
                now = observe(state, change)
                assert change.action.before == now, (
                    f"{where}: `before` is not what is there now: {now!r}"
                )
                new = observe(then, change)
                assert change.action.after == new, (
                    f"{where}: `after` is not what is promised: {new!r}"
                )
            state = then


def check_way_back(fleet: Fleet, plan: Plan) -> None:
    """Check that taking a plan back brings the state before."""
    done = promised(fleet, plan)
    back = promised(done, taken_back(plan))
    for host in fleet.states:
        was, now = fleet.states[host], back.states[host]
        assert contents(now) == contents(was), f"{host}: a file is not what it was"
        if all(change.reversible for change in plan.for_host(host)):
            # The recorded answers of the resolver are the files', so they come back with these.
            for group in LOOKED_AT:
                text = f"{host}: {group} is not what it was, taken back"
                assert getattr(now, group) == getattr(was, group), text


def contents(state: HostState) -> dict[str, bytes]:
    """Return the files that are there, with their bytes."""
    return {p: f.content for p, f in state.files.items() if isinstance(f, File) and f.exists}


def summary(change: Change) -> tuple[str, ...]:
    """Return what says which change it is."""
    return (change.host, change.remedy, change.title, change.reason)
