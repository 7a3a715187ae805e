"""What a launch costs the controller is in proportion to its hosts: calls are counted, no seconds."""

from __future__ import annotations

from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.run import launch
from remedy.verify.allreduce.script import script, scripts
from tests.unit.growth import FEW, MANY, calls
from tests.unit.verify.proof_bench import answers, good_records, make_plan


def launched(plan: RankPlan) -> float:
    """Return the calls for a host when so many report, the making of their answers aside."""
    printed = answers(plan, good_records(plan))
    (group,) = launch([plan], lambda _: printed)  # what is imported and kept for all launches
    assert group.verdict.passed, group.verdict.reason
    return calls(lambda: launch([plan], lambda _: printed)) / len(plan.hosts)


def test_a_host_is_launched_and_judged_by_as_many_calls_among_many() -> None:
    few, many = launched(make_plan(FEW)), launched(make_plan(MANY))
    assert many < 1.1 * few


def test_texts_that_are_made_together_are_those_that_are_made_alone() -> None:
    plan = make_plan(3)
    alone = {host.name: script(plan, node) for node, host in enumerate(plan.hosts)}
    assert scripts(plan) == alone
