"""Trying one remedy in many cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import settings

from remedy.plan import Plan, Remedy
from tests.unit.deploys.fleets import FleetCase, pair_cases, single_cases
from tests.unit.deploys.values import untried, values_of
from tests.unit.plans import plan_of, settled


def sweep(remedy: Remedy[Any]) -> None:
    """Check a remedy in many cases: it does something in one of them, and so does each of its settings."""
    alone, pairs = list(single_cases(remedy)), list(pair_cases(remedy))
    cases = [*alone, *pairs]
    # Of the pairs of settings a fourth of the examples that a property has.
    tried = [*alone, *pairs[:: 1 + 4 * len(pairs) // settings().max_examples]]
    plans = [_plan(case, remedy) for case in tried]
    changes = [change for plan in plans for change in plan.changes]
    if remedy.only_reports:
        assert not changes, (
            f"{remedy.name} has no `cures`, and planned a change: {changes[0].title!r}"
        )
        assert any(plan.findings for plan in plans), (
            f"{remedy.name} never found anything in any of these cases, so nothing of it was tried: say with "
            f"@{remedy.name}.breaks how a host is broken"
        )
    assert changes or remedy.only_reports, (
        f"{remedy.name} never planned a change in any of these cases, so nothing of it was tried: say with "
        f"@{remedy.name}.breaks how a host is broken, or give its settings Field(examples=[...])"
    )
    for setting in sorted(set(remedy.settings.model_fields) - untried(remedy.settings)):
        assert _is_read(remedy, setting, cases), (
            f"{remedy.settings.__name__}.{setting} altered no plan and no finding: say with "
            f"@{remedy.name}.breaks on which host it does, give it Field(examples=[...]), or say why no "
            'test can have such a host: Field(json_schema_extra={"untried": "..."})'
        )


def _plan(case: FleetCase, remedy: Remedy[Any]) -> Plan:
    try:
        return settled(case.fleet(), remedy.name)
    except KeyError as error:
        raise AssertionError(
            f"{remedy.name} expects {error} of every host, and this one lacks it: ask whether it is there first"
        ) from error


def _is_read(remedy: Remedy[Any], setting: str, cases: Sequence[FleetCase]) -> bool:
    """Return whether a setting alters what this remedy plans or finds, or what another does that reads it."""
    with_it = [case for case in cases if setting in case.switches[remedy.name]]
    damaged = [
        FleetCase(case.damages, {remedy.name: {setting: value}})
        for case in cases
        for value in values_of(remedy.settings)[setting]
        if not case.switches[remedy.name]
    ]
    known: dict[str, tuple[object, ...]] = {}

    def outcome(case: FleetCase, only: str | None) -> tuple[object, ...]:
        key = f"{only} {case!r}"
        if key not in known:
            known[key] = _outcome(case, only)
        return known[key]

    return any(
        outcome(case, only) != outcome(_without(case, remedy.name, setting), only)
        for only, candidates in ((remedy.name, with_it), (None, with_it), (remedy.name, damaged))
        for case in candidates
    )


def _outcome(case: FleetCase, only: str | None) -> tuple[object, ...]:
    plan = plan_of(case.fleet(), only)
    return plan.changes, plan.findings


def _without(case: FleetCase, remedy: str, setting: str) -> FleetCase:
    rest = {name: value for name, value in case.switches[remedy].items() if name != setting}
    return FleetCase(case.damages, {remedy: rest})
