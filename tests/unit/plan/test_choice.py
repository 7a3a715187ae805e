"""``--only`` and ``--skip``: which remedies decide, and that a plan says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from remedy.errors import PlanFileError, UsageError
from remedy.plan import Choice, Plan, choose, make_plan, read_plan, remedies, write_plan
from tests.unit.build import WHEN, fleet, host_state

NAMES = [remedy.name for remedy in remedies()]


def plan_of(choice: Choice) -> Plan:
    """Plan for a host that has a different name, and no entry for its peer."""
    hosts = fleet(
        host_state("gpu01", "10.0.0.1", running="localhost"), host_state("gpu02", "10.0.0.2")
    )
    return make_plan(replace(hosts, choice=choice), WHEN)


def test_all_remedies_decide_unless_some_are_named() -> None:
    assert not choose((), (), NAMES)
    assert all(name in choose((), (), NAMES) for name in NAMES)


@pytest.mark.parametrize(
    ("only", "skip", "left"),
    [
        (("hostname,limits",), (), {"hostname", "limits"}),
        (("hostname", "limits, clock"), ("clock",), {"hostname", "limits"}),
        ((), ("hostname",), {*NAMES} - {"hostname"}),
    ],
)
def test_lists_with_commas_and_repeated_options(
    only: tuple[str, ...], skip: tuple[str, ...], left: set[str]
) -> None:
    choice = choose(only, skip, NAMES)
    assert {name for name in NAMES if name in choice} == left
    assert choose(choice.only, choice.skip, NAMES) == choice


@pytest.mark.parametrize(
    ("only", "skip", "words"),
    [
        (("hostnme",), (), "Did you mean hostname?"),
        ((), ("dev-shm",), "Did you mean dev_shm?"),
        (("hostname,",), (), "Remedies: "),
        (("xyzzyx",), (), "Remedies: "),
        (("hostname",), ("hostname",), "Leave --skip out."),
    ],
)
def test_a_name_that_is_no_remedy_is_refused(
    only: tuple[str, ...], skip: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError) as error:
        choose(only, skip, NAMES)
    assert words in error.value.next_step


def test_a_plan_has_changes_and_findings_of_the_chosen_alone_and_names_them() -> None:
    whole, part = plan_of(Choice()), plan_of(Choice(only=("hostname",)))
    rest = plan_of(Choice(skip=("hostname",)))

    def of(plan: Plan) -> set[str]:
        return {change.remedy for change in plan.changes}

    assert of(part) == {"hostname"}
    assert of(rest) == of(whole) - {"hostname"} != set()
    assert {finding.remedy for finding in part.findings} <= {"hostname"}
    assert (part.only, rest.skip) == (("hostname",), ("hostname",))


def test_a_plan_file_keeps_the_choice_and_its_digest_covers_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    made = plan_of(Choice(only=("hostname",)))
    write_plan(made, path)
    assert read_plan(path).choice == made.choice
    document = json.loads(path.read_text())
    del document["plan"]["only"]
    path.write_text(json.dumps(document))
    with pytest.raises(PlanFileError, match="digest does not match"):
        read_plan(path)


def test_a_plan_of_all_remedies_is_written_as_before(tmp_path: Path) -> None:
    write_plan(plan_of(Choice()), tmp_path / "plan.json")
    assert not {"only", "skip"} & set(json.loads((tmp_path / "plan.json").read_text())["plan"])


def test_a_file_that_names_no_remedy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan_of(Choice()).model_copy(update={"only": ("x; reboot",)}), path)
    with pytest.raises(PlanFileError, match="`only` or `skip`"):
        read_plan(path)
