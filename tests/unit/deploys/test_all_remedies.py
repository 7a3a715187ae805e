"""What holds for every remedy there is: names, specs, words, and plans that keep their promise.

The hosts are those of the recorded probes, whole, with generated damage: a remedy that is added is tested here
without a word about it. So is the worked example of docs/writing-a-remedy.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from remedy.plan import (
    FileAction,
    FindingKind,
    Plan,
    Remedy,
    all_causes,
    make_plan,
    promised,
    remedies,
    remedy_of,
    section_models,
)
from remedy.plan.registry import also
from remedy.plan.splice import join
from remedy.spec import SECTIONS, SpecSection, load_spec
from remedy.yaml_text import parse_yaml
from tests.unit.build import WHEN
from tests.unit.deploys import broken  # noqa: F401 - hosts that the program's own remedies change
from tests.unit.deploys.example import EXAMPLE
from tests.unit.deploys.fleets import NAMES, FleetCase, cases, fleet_of, host, with_absent
from tests.unit.deploys.promises import sweep
from tests.unit.plans import check_commands, check_converged, check_way_back, summary

with also(EXAMPLE):
    REMEDIES = remedies()
    CASES = cases()
by_name = pytest.mark.parametrize("remedy", REMEDIES, ids=lambda remedy: remedy.name)


@pytest.fixture(autouse=True)
def _with_the_example() -> Iterator[None]:
    with also(EXAMPLE):
        yield


# ---- every remedy by itself


def test_no_two_remedies_have_one_name() -> None:
    names = [remedy.name for remedy in remedies()]
    assert len(set(names)) == len(names)
    assert not set(names) & set(SECTIONS), "a section of the spec has that name"
    assert not set(names) & set(all_causes()), "a cause has that name"


@by_name
def test_a_remedy_has_a_legal_name_and_words(remedy: Remedy[Any]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,30}", remedy.name)
    module = sys.modules[remedy.module]
    assert remedy_of(module) is remedy
    assert remedy.title
    assert remedy.text is module.__doc__
    assert remedy.text is not None
    first, _, rest = remedy.text.strip().partition("\n")
    assert first.endswith("."), "the first line is one sentence: `remedy explain` lists it"
    assert len(rest) > 100
    assert remedy.cures or remedy.finds
    assert {*remedy.cures, *remedy.finds} <= set(all_causes())


@by_name
def test_a_remedy_is_a_deploy_of_pyinfra_by_its_name(remedy: Remedy[Any]) -> None:
    module = sys.modules[remedy.module]
    assert callable(getattr(module, remedy.name))
    assert remedy.__name__ == remedy.name, "pyinfra shows it"


@by_name
def test_its_section_of_the_spec_loads_with_defaults(remedy: Remedy[Any], tmp_path: Path) -> None:
    (tmp_path / "remedy.yaml").write_text(f"{remedy.name}: {{}}\n")
    section = load_spec(tmp_path / "remedy.yaml", section_models()).sections[remedy.name]
    assert section == remedy.settings()
    assert remedy.settings.model_validate(section.model_dump(mode="json")) == section
    assert remedy.settings.__doc__ != SpecSection.__doc__
    for name in remedy.settings.model_fields:
        assert parse_yaml(f"{name}: 0") == {name: 0}, (
            f"{remedy.name}.{name}: YAML reads this word as true or false; give the setting another name"
        )


@by_name
def test_a_healthy_host_has_no_finding_and_no_change(remedy: Remedy[Any]) -> None:
    before = fleet_of(with_absent(host(name, "lab-idle")) for name in NAMES)
    healthy = promised(before, make_plan(before, WHEN))
    plan = make_plan(healthy, WHEN, only=remedy.name)
    assert plan.changes == ()
    assert plan.findings == ()


def test_finding_the_remedies_asks_nobody_and_connects_to_nothing() -> None:
    code = (
        "import socket\n"
        "def no(*a, **k): raise SystemExit('a connection while importing')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = no\n"
        "from remedy.plan import remedies\n"
        "assert remedies()\n"
        "import sys; assert 'pyinfra' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- plans of generated fleets


@by_name
def test_a_remedy_is_switched_on_and_does_what_it_says(remedy: Remedy[Any]) -> None:
    sweep(remedy)


@given(CASES)
def test_what_a_plan_promises_needs_no_plan(case: FleetCase) -> None:
    fleet = case.fleet()
    check_converged(fleet, make_plan(fleet, WHEN))


@given(CASES)
def test_a_command_knows_what_is_there_and_what_will_be(case: FleetCase) -> None:
    fleet = case.fleet()
    check_commands(fleet, make_plan(fleet, WHEN))


@given(CASES)
def test_taking_a_plan_back_brings_the_state_before(case: FleetCase) -> None:
    fleet = case.fleet()
    check_way_back(fleet, make_plan(fleet, WHEN))


@given(CASES)
def test_no_change_without_a_finding_and_all_of_both_is_whole(case: FleetCase) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    found = {(f.remedy, f.host) for f in plan.findings if f.kind is not FindingKind.REPORT}
    named = {remedy.name: {*remedy.cures, *remedy.finds} for remedy in remedies()}
    for change in plan.changes:
        assert (change.remedy, change.host) in found, summary(change)
        assert change.label in named[change.remedy], summary(change)
        assert change.title
        assert change.reason
        assert change.reversible or change.disrupts, "what cannot be taken back is said"
        assert bool(change.undoes) == (bool(change.does) and change.reversible)
        if isinstance(change.action, FileAction):
            for digest in (change.action.before, change.action.after):
                assert digest is None or digest in plan.contents
            assert change.action.before != change.action.after
    for finding in plan.findings:
        assert finding.host in (None, *fleet.inventory.names)
        assert finding.label in all_causes()
        assert "\n" not in finding.title
        if finding.kind in (FindingKind.BLOCKED, FindingKind.UNKNOWN):
            assert finding.evidence or finding.fix, finding.title
    assert not {c.remedy for c in plan.changes} & {r.name for r in REMEDIES if r.only_reports}


@settings(max_examples=20)
@given(CASES)
def test_a_plan_is_made_the_same_way_twice_and_survives_its_file(case: FleetCase) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    assert make_plan(fleet, WHEN) == plan
    again = Plan.model_validate_json(plan.model_dump_json())
    of_this_run = {"contents": {}, "addresses": {}, "inventory_argument": ""}
    assert again == plan.model_copy(update=of_this_run)
    assert again.digest == plan.digest
    for change in plan.changes:
        action = change.action
        if isinstance(action, FileAction) and action.after is not None:
            made = (
                again.blobs[action.after]
                if action.before is None
                else join(plan.contents[action.before], action.splices or (), again.blobs)
            )
            assert made == plan.contents[action.after]
