"""Who is named where a run failed: the strongest witness first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.allreduce.blame import swap_ports
from remedy.verify.allreduce.judge import judge
from tests.unit.verify.proof_bench import answers, failed_records, make_plan, outcomes, peer_error


def test_a_killed_worker_is_named_before_those_who_lost_it() -> None:
    plan = make_plan()
    records = failed_records(plan, "group")
    lost = "Connection closed by peer [10.0.0.2]:40001"
    for name in ("gpu01", "gpu03"):
        records[name][0]["error"] = peer_error(lost, "group")
    records["gpu02"][0]["exit_code"] = -9
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason == "a rank on gpu02 was killed by SIGKILL after the phase 'group'"


def test_a_fault_of_its_own_is_named_before_a_missing_peer() -> None:
    plan = make_plan()
    records = failed_records(plan, "started")
    records["gpu03"][0]["error"] = peer_error(
        "OSError: libcudart.so.12: cannot open shared object", "started"
    )
    records["gpu01"][0]["missing"] = [2]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu03 failed by itself: OSError: libcudart")


def test_one_dropped_way_names_the_pair_and_its_direction() -> None:
    plan = make_plan()
    records = failed_records(plan, "rendezvous")
    records["gpu01"][-1]["unanswered"] = [["10.0.0.3", 40001, 12.5]]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu01 -> gpu03 port 40001: no answer")
    assert outcomes(verdict) == {"gpu01": "fail", "gpu02": "not-tested", "gpu03": "fail"}
    assert "gpu01: no answer from 10.0.0.3 port 40001 for 12.5 s" in verdict.evidence


def test_a_host_that_nobody_reaches_is_named_alone() -> None:
    plan = make_plan(hosts=4)
    records = failed_records(plan, "rendezvous")
    for name in ("gpu01", "gpu02", "gpu04"):
        records[name][-1]["unanswered"] = [["10.0.0.3", 40001, 12.5]]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu03 is cut off")
    assert outcomes(verdict)["gpu03"] == "fail"
    assert outcomes(verdict)["gpu01"] == "not-tested"


def test_a_refusal_names_the_pair_with_the_port_put_right() -> None:
    plan = make_plan()
    records = failed_records(plan, "rendezvous")
    # 14766 is 0x39AE; swapped it is 0xAE39 = 44601.
    text = "Gloo connectFullMesh failed with no route to host, remote=[10.0.0.3]:14766, local=[10.0.0.1]:1"
    records["gpu01"][0]["error"] = peer_error(text)
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu01 -> gpu03 port 44601: refused")


def test_ranks_that_did_not_join_are_named_by_host() -> None:
    plan = make_plan(ranks_per_host=2)
    records = failed_records(plan, "rendezvous")
    records["gpu01"][0]["missing"] = [4, 5]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason == "gpu03 did not join the others"


@pytest.mark.parametrize("phase", ["", "started"])
def test_a_host_that_only_starts_slowly_is_told_as_such(phase: str) -> None:
    """On a cold file system torch takes longer to import than a run may last."""
    plan = make_plan()
    records = failed_records(plan, "rendezvous", seconds=92.4)
    records["gpu03"][0]["phase"] = phase
    slow = "torch had not started there after 92 s (where that is just slow, give it more time:"
    assert slow in judge(plan, answers(plan, records)).reason
    records["gpu01"][0]["missing"] = [2]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith(f"gpu03 did not join the others: {slow}")
    assert outcomes(verdict)["gpu02"] == "not-tested"


def test_who_hangs_while_meeting_others_is_not_said_to_be_starting() -> None:
    """Engines other than torch leave no word between their start and the group."""
    plan = make_plan(engine="mpi")
    records = failed_records(plan, "started")
    records["gpu01"][0]["missing"] = [2]
    reason = judge(plan, answers(plan, records)).reason
    assert reason == "gpu03 did not join the others"
    records = failed_records(plan, "started")
    assert "had not started" not in judge(plan, answers(plan, records)).reason


def test_a_monitored_barrier_names_hosts() -> None:
    plan = make_plan()
    records = failed_records(plan, "group")
    text = "[Rank 0]: Ranks 1 failed to pass monitoredBarrier in 5000 ms"
    records["gpu01"][0]["error"] = peer_error(text, "group")
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason == "gpu02 did not join the others"


def test_a_name_that_leads_to_loopback_is_named() -> None:
    plan = make_plan()
    records = failed_records(plan, "rendezvous")
    records["gpu02"][-1]["name_address"] = "127.0.1.1"
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith("gpu02: the host's own name resolves to 127.0.1.1 on gpu02")


def test_who_is_farthest_behind_is_the_last_resort() -> None:
    plan = make_plan()
    records = failed_records(plan, "barrier")
    records["gpu03"][0]["phase"] = "group"
    assert (
        judge(plan, answers(plan, records)).reason == "gpu03 came no farther than the phase 'group'"
    )
    verdict = judge(plan, answers(plan, failed_records(plan, "barrier")))
    assert verdict.reason == "all hosts came as far as the phase 'barrier', and none any farther"
    assert set(outcomes(verdict).values()) == {"fail"}


def test_what_all_ranks_say_alike_is_told() -> None:
    plan = make_plan()
    records = failed_records(plan, "paired")
    text = "the rendezvous was lost: AttributeError: 'PrefixStore' object has no attribute 'check'"
    for lines in records.values():
        for line in lines:
            if line["kind"] == "rank":
                line["error"] = peer_error(text, "paired")
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.endswith(f"'paired', and none any farther; each reports: {text}")


@given(st.integers(0, 65535))
def test_swapping_a_port_twice_gives_it_back(port: int) -> None:
    text = f"remote=[10.0.0.1]:{port}"
    assert swap_ports(swap_ports(text)) == text
