"""A verification says how long its verdict can hold."""

from __future__ import annotations

from pathlib import Path

from deploys.schedule import CAUSE, the_firewall_is_to_be_taken_back
from remedy.plan import FindingKind
from remedy.runs.verify import SCHEDULED, passing
from tests.unit.deploys.fleets import fleet_of
from tests.unit.plans import plan_of
from tests.unit.probe_data import state


def test_hosts_that_something_is_to_change_are_named_with_what_it_is() -> None:
    assert CAUSE.name == SCHEDULED
    states = [state("lab-idle").model_copy(update={"host": f"gpu0{n}"}) for n in (1, 2, 3)]
    states[::2] = map(the_firewall_is_to_be_taken_back, states[::2])
    plan = plan_of(fleet_of(states))
    assert any(f.kind is FindingKind.UNKNOWN and f.label == SCHEDULED for f in plan.findings)
    (sentence,) = passing(plan, Path("my hosts.py"))
    assert sentence.startswith("gpu[01,03]: undo.timer is to run: /usr/sbin/nft flush ruleset")
    assert "the verdict holds until then" in sentence
    assert sentence.endswith("remedy check 'my hosts.py' --limit 'gpu[01,03]'")
