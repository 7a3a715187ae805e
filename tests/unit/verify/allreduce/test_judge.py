"""The verdict: nothing but a whole and consistent set of facts of this very run may pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import UnreachableError
from remedy.spec import VerifySpec
from remedy.verify.allreduce.checks import expected_sum
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.plan import CPU_SIZES, GPU_SIZES, plan_ranks
from remedy.verify.allreduce.run import launch
from remedy.verify.hosts import Participant
from remedy.verify.onhost.agent import MARK
from tests.unit.verify.proof_bench import (
    SIZES,
    JudgedOutput,
    Records,
    answers,
    end_record,
    failed_records,
    good_records,
    make_plan,
    outcomes,
)


def test_ranks_that_slurm_was_to_start_have_to_be_in_a_step_of_its_job() -> None:
    plan = make_plan().model_copy(update={"job": "7"})
    records = good_records(plan)
    for number, name in enumerate(records):
        records[name][0]["result"]["identity"]["step"] = f"7.{number}"
    verdict = judge(plan, answers(plan, records), seconds=5.0)
    assert verdict.passed, verdict
    assert verdict.reason.endswith("started by Slurm in job 7")
    assert any(line.endswith("step 7.1") for line in verdict.evidence)
    for step, what in {"": "is in no step of Slurm", "8.1": "is in the step 8.1"}.items():
        records["gpu02"][0]["result"]["identity"]["step"] = step
        verdict = judge(plan, answers(plan, records), seconds=5.0)
        assert not verdict.passed
        assert verdict.reason == f"gpu02: local rank 0 {what}, expected one of job 7"
        assert outcomes(verdict)["gpu02"] == "fail"


def test_a_whole_proof_passes() -> None:
    plan = make_plan()
    verdict = judge(plan, answers(plan, good_records(plan)), seconds=5.0)
    assert verdict.passed, verdict
    assert verdict.sum_exact
    assert (verdict.world_size, verdict.hosts) == (3, 3)
    assert verdict.backend == "gloo"
    assert set(outcomes(verdict).values()) == {"pass"}
    # 2 MB in 1 ms is an algbw of 2 GB/s; 2(n-1)/n of it for n = 3 is 8/3.
    assert verdict.bandwidth[-1].algbw == pytest.approx(2.0)
    assert verdict.busbw_gbps == pytest.approx(8 / 3)


def test_the_sum_is_what_the_ranks_would_have() -> None:
    plan = make_plan(hosts=2).model_copy(update={"nonce": "0000000000000010"})
    numbers = [16 + 0, 16 + 1, 1 + 2]
    assert expected_sum(plan) == hashlib.sha256(",".join(map(str, numbers)).encode()).hexdigest()


def test_ranks_are_numbered_through_hosts_of_different_size() -> None:
    plan = plan_ranks(
        [
            Participant(name="a", address="10.0.0.1", gpus=2),
            Participant(name="b", address="10.0.0.2", gpus=3),
        ],
        VerifySpec(sizes=SIZES),
    )
    verdict = judge(plan, answers(plan, good_records(plan)))
    assert verdict.passed, verdict
    assert verdict.backend == "nccl"
    assert verdict.nccl == ("2.30.7",)
    assert verdict.world_size == 5


def lose_a_rank(records: Records, name: str) -> None:
    records[name] = [r for r in records[name] if r["kind"] != "rank"]


def lose_the_result(records: Records, name: str) -> None:
    records[name][0]["result"] = None


def lose_the_end(records: Records, name: str) -> None:
    records[name] = [r for r in records[name] if r["kind"] != "end"]


def lose_everything(records: Records, name: str) -> None:
    records[name] = []


def in_result(path: str, value: Any) -> Callable[[Records, str], None]:
    def change(records: Records, name: str) -> None:
        place = records[name][0]["result"]
        *way, last = path.split(".")
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        place[last] = value

    change.__name__ = path
    return change


def end_by_deadline(records: Records, name: str) -> None:
    records[name][-1]["how"] = "deadline"


DAMAGE = [
    lose_a_rank,
    lose_the_result,
    lose_the_end,
    lose_everything,
    end_by_deadline,
    in_result("world", 1),
    in_result("rank", 7),
    in_result("nonce", "0123456789abcdef"),
    in_result("sum.digest", "0" * 64),
    in_result("sum.missing", [1]),
    in_result("members_digest", "0" * 64),
    in_result("identity.boot_id", "boot-of-another"),
    in_result("identity.hostname", "somebody-else"),
    in_result("sweep", []),
    in_result("sweep.0.exact", False),
    in_result("sweep.0.seconds", 0.0),
    in_result("sweep.0.seconds", float("nan")),
    in_result("sweep.0.bytes", 4),
    in_result("backend", "nccl"),
    in_result("backend", "mpi"),
    in_result("unheard_of", 1),
    in_result("identity", None),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_each_damage_fails(damage: Callable[[Records, str], None]) -> None:
    plan = make_plan()
    records = good_records(plan)
    damage(records, "gpu02")
    verdict = judge(plan, answers(plan, records))
    assert not verdict.passed
    assert verdict.reason
    assert len(verdict.outcomes) == 3


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_each_damage_fails_also_where_all_hosts_have_it(
    damage: Callable[[Records, str], None],
) -> None:
    plan = make_plan()
    records = good_records(plan)
    for name in records:
        damage(records, name)
    verdict = judge(plan, answers(plan, records))
    assert not verdict.passed
    assert verdict.reason


def test_a_sweep_may_stop_early_but_measures_what_was_asked_for() -> None:
    plan = make_plan()
    records = good_records(plan)
    for lines in records.values():
        del lines[0]["result"]["sweep"][1]
    assert judge(plan, answers(plan, records)).passed
    for lines in records.values():
        lines[0]["result"]["sweep"][0]["bytes"] = SIZES[1]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu01 measured [2000000], not the beginning of [8, 2000000]")


def test_the_sizes_are_those_of_the_backend_that_was_used() -> None:
    """Where nobody names sizes the fleet's backend decides, whatever it was hoped to be."""
    plan = make_plan(hosts=2, gpus=1, sizes=None)
    records = good_records(plan)
    assert plan.sizes_on("nccl") == GPU_SIZES
    assert judge(plan, answers(plan, records)).passed
    for lines in records.values():
        lines[0]["result"]["sweep"][1]["bytes"] = CPU_SIZES[1]
    assert "not the beginning of" in judge(plan, answers(plan, records)).reason


@given(data=st.data())
def test_no_damaged_set_ever_passes(data: st.DataObject) -> None:
    plan = make_plan(
        hosts=data.draw(st.integers(2, 6)), ranks_per_host=data.draw(st.integers(1, 3))
    )
    records = good_records(plan)
    names = sorted(records)
    hurt = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    for name in hurt:
        data.draw(st.sampled_from(DAMAGE))(records, name)
    outputs = answers(plan, records)
    for name in data.draw(st.lists(st.sampled_from(names), unique=True)):
        if data.draw(st.booleans()):
            del outputs[name]
        else:
            outputs[name] = JudgedOutput(name, error=UnreachableError(f"{name}: no connection"))
    verdict = judge(plan, outputs)
    assert not verdict.passed
    assert {outcome.host for outcome in verdict.outcomes} == set(names)
    assert not verdict.bandwidth
    assert verdict.busbw_gbps is None


@given(st.binary(max_size=400), st.booleans())
def test_no_output_can_make_the_judge_raise(noise: bytes, framed: bool) -> None:
    plan = make_plan()
    outputs = answers(plan, good_records(plan))
    text = noise.decode("utf-8", "replace")
    line = f"{MARK} {plan.nonce} {text}\n" if framed else text
    outputs["gpu01"] = JudgedOutput("gpu01", stdout=line)
    assert not judge(plan, outputs).passed


@pytest.mark.parametrize(
    "value", [[], 1, None, "x", {}, {"kind": 3}, {"kind": "rank"}, {"kind": "end", "how": 3}]
)
def test_json_of_another_shape_is_a_failure(value: Any) -> None:
    plan = make_plan()
    outputs = answers(plan, good_records(plan))
    outputs["gpu01"] = JudgedOutput("gpu01", f"{MARK} {plan.nonce} {json.dumps(value)}\n")
    assert not judge(plan, outputs).passed


def test_results_of_another_run_are_not_taken() -> None:
    plan = make_plan()
    verdict = judge(plan, answers(plan, good_records(plan), nonce="0123456789abcdef"))
    assert not verdict.passed
    assert not verdict.possible


def test_an_exit_code_proves_nothing() -> None:
    plan = make_plan()
    assert not judge(plan, {h.name: JudgedOutput(h.name, exit_code=0) for h in plan.hosts}).passed  # type: ignore[misc]


def test_equal_boot_ids_are_one_host() -> None:
    plan = make_plan(hosts=2)
    records = good_records(plan)
    members = [[0, "gpu01", "same"], [1, "gpu02", "same"]]
    for lines in records.values():
        lines[0]["result"]["identity"]["boot_id"] = "same"
        digest = hashlib.sha256(json.dumps(members).encode()).hexdigest()
        lines[0]["result"]["members_digest"] = digest
    verdict = judge(plan, answers(plan, records))
    assert not verdict.passed
    assert verdict.hosts == 1
    assert (
        verdict.reason
        == "gpu[01-02] run on one machine (same boot-id): no network between them was tested"
    )
    assert [culprit.next_step for culprit in verdict.culprits] == [
        "Give the inventory one host of each machine."
    ]


def test_mixed_nccl_versions_are_named() -> None:
    plan = make_plan(hosts=3, gpus=1)
    records = good_records(plan)
    records["gpu03"][0]["result"]["identity"]["nccl"] = "2.27.3"
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason == "mixed NCCL versions: gpu03 2.27.3, others 2.30.7"
    assert outcomes(verdict) == {"gpu01": "not-tested", "gpu02": "not-tested", "gpu03": "fail"}


def test_gpus_that_ended_up_on_gloo_fail_with_the_reason() -> None:
    plan = make_plan(hosts=2, gpus=1)
    records = good_records(plan)
    for lines in records.values():
        lines[0]["result"].update(backend="gloo", unusable={"1": "torch.cuda is not available"})
        lines[0]["result"]["identity"]["nccl"] = ""
    verdict = judge(plan, answers(plan, records))
    assert not verdict.passed
    assert verdict.sum_exact
    assert "gpu02: torch.cuda is not available" in verdict.reason
    assert outcomes(verdict)["gpu02"] == "fail"


def test_too_slow_fails_when_a_mark_is_set() -> None:
    plan = make_plan(min_busbw=100.0)
    verdict = judge(plan, answers(plan, good_records(plan)))
    assert verdict.reason == "bus bandwidth 2.67 GB/s is below 100 GB/s"
    assert verdict.bandwidth


def test_an_unreachable_host_is_named() -> None:
    plan = make_plan()
    outputs = answers(plan, failed_records(plan, "started"))
    outputs["gpu02"] = JudgedOutput("gpu02", error=UnreachableError("gpu02: no connection"))
    verdict = judge(plan, outputs)
    assert verdict.reason == "gpu02 did not take part: gpu02: no connection"
    assert outcomes(verdict) == {"gpu01": "not-tested", "gpu02": "fail", "gpu03": "not-tested"}


def test_fewer_than_two_hosts_is_not_possible() -> None:
    plan = make_plan()
    outputs = answers(plan, {"gpu01": failed_records(plan, "started")["gpu01"]})
    verdict = judge(plan, outputs)
    assert not verdict.possible
    assert verdict.reason.startswith("not possible: only gpu01 reported; gpu[02-03] did not")
    assert outcomes(verdict) == {"gpu01": "not-tested", "gpu02": "fail", "gpu03": "fail"}


def test_no_torch_anywhere_is_not_possible_but_on_one_host_is_a_failure() -> None:
    plan = make_plan()
    none: Records = {h.name: [end_record("no-torch")] for h in plan.hosts}
    assert not judge(plan, answers(plan, none)).possible
    one = failed_records(plan, "started")
    one["gpu03"] = [end_record("no-torch", detail="/usr/bin/python3 has no torch")]
    verdict = judge(plan, answers(plan, one))
    assert verdict.possible
    assert verdict.reason == "gpu03 has no torch: /usr/bin/python3 has no torch"


def test_when_a_host_could_meet_others_is_known_where_all_its_ranks_say_so() -> None:
    plan = make_plan(ranks_per_host=2)
    records = failed_records(plan, "rendezvous")
    for number, line in enumerate(records["gpu01"][:2]):
        line["times"] = {"started": 2.0, "inside": 11.0 + number}
    records["gpu02"][0]["times"] = {"started": 2.0, "inside": 9.0}
    records["gpu02"][1]["times"] = {"started": 2.0}
    (group,) = launch([plan], lambda _: answers(plan, records))
    assert group.ready == {"gpu01": 12.0}


def test_hosts_left_out_are_told() -> None:
    plan = make_plan()
    verdict = judge(plan, answers(plan, good_records(plan)))
    assert verdict.excusing({}) == verdict
    excused = verdict.excusing({"gpu09": "gpu09: no connection"})
    assert excused.passed
    assert excused.reason.endswith("; not tested: gpu09 (no connection)")
    assert outcomes(excused)["gpu09"] == "not-tested"


def test_hosts_left_out_are_named_by_their_reasons_and_not_by_the_first_alone() -> None:
    plan = make_plan()
    verdict = judge(plan, answers(plan, good_records(plan)))
    down = {name: f"{name} (10.0.0.{name[-1]}:22): no connection" for name in ("gpu07", "gpu08")}
    excused = verdict.excusing({**down, "gpu09": "gpu09 (10.0.0.9:22): the key has CHANGED"})
    left_out = "not tested: gpu[07-08] (no connection), gpu09 (the key has CHANGED)"
    assert excused.reason.endswith(left_out)
    four = verdict.excusing({f"gpu1{n}": f"gpu1{n}: reason {n}" for n in range(5)})
    assert four.reason.endswith("gpu12 (reason 2) and 2 more hosts")


def test_a_plan_without_hosts_is_not_possible() -> None:
    from remedy.verify.allreduce.run import verify

    verdict = verify(lambda _: {}, plan_ranks([]))
    assert not verdict.possible
    assert not verdict.passed
