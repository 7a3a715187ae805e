"""Which hosts of a failed group were only slow, and which were not."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.verify.allreduce.answers import read_reports
from remedy.verify.allreduce.blame import FailedRun
from remedy.verify.allreduce.late import late_hosts
from remedy.verify.allreduce.plan import RankPlan
from tests.unit.verify.proof_bench import (
    Records,
    answers,
    end_record,
    failed_records,
    make_plan,
    peer_error,
    rank_record,
)

PLAN = make_plan(3, deadline=20.0)
STOPPED = "gpu03"


def late(records: Records, plan: RankPlan = PLAN) -> frozenset[str]:
    return late_hosts(FailedRun(plan, read_reports(plan, answers(plan, records))))


def group(phase: str, *, how: str = "deadline", code: int | None = None, **rank: Any) -> Records:
    """Return a group of which the third host has stopped, and the second ended like this."""
    records = failed_records(PLAN, "rendezvous")
    for lines in records.values():
        lines[0]["times"] = {"inside": 4.0}
    records[STOPPED][0] = rank_record(0, "started", state="T")
    records["gpu02"] = [
        rank_record(0, phase, **rank),
        {"kind": "launcher", "exit_code": code, "log": []},
        end_record(how),
    ]
    return records


@pytest.mark.parametrize(
    ("phase", "rank"),
    [
        ("", {}),
        ("started", {}),
        ("started", {"state": "R"}),
        ("started", {"state": "S"}),
        # It was ready when the others, who wait ten seconds, had left.
        ("inside", {"times": {"inside": 10.5}, "error": peer_error("Connection reset", "inside")}),
        ("inside", {"times": {"inside": 10.5}, "exit_code": 1}),
        ("rendezvous", {"times": {"inside": 10.5}}),
    ],
)
@pytest.mark.parametrize("how", ["deadline", "exited"])
def test_a_host_that_was_not_ready_in_time_is_late(
    phase: str, rank: dict[str, Any], how: str
) -> None:
    assert late(group(phase, how=how, **rank)) == {"gpu02"}


@pytest.mark.parametrize(
    ("phase", "rank"),
    [
        ("started", {"state": "T"}),
        ("started", {"state": "D"}),
        ("", {"exit_code": -9}),
        ("started", {"exit_code": 1}),
        ("started", {"error": peer_error("RuntimeError: inside this host: no", "started")}),
        ("inside", {"times": {"inside": 10.5}, "exit_code": -9}),
        ("inside", {"times": {"inside": 9.5}}),
        ("rendezvous", {"times": {"inside": 4.0}}),
        ("done", {"times": {"inside": 4.0}}),
    ],
)
def test_a_host_that_has_stopped_died_or_failed_is_not_late(
    phase: str, rank: dict[str, Any]
) -> None:
    assert late(group(phase, **rank)) == frozenset()


@pytest.mark.parametrize("engine", ["mpi", "paddle", "mindspore", "nccl-tests"])
def test_where_one_launcher_starts_all_ranks_nobody_is_late_by_itself(engine: str) -> None:
    other = make_plan(3, deadline=20.0, engine=engine).model_copy(update={"nonce": PLAN.nonce})
    assert late(group("started")) == {"gpu02"}
    assert late(group("started"), other) == frozenset()


def test_a_launcher_that_gave_up_waiting_for_others_is_not_late() -> None:
    assert late(group("", how="exited", code=1)) == frozenset()
    # With a rank that runs it is what ended the rank.
    assert late(group("started", how="exited", code=1)) == {"gpu02"}


@pytest.mark.parametrize("how", ["no-torch", "port-in-use", "orphaned", "terminated"])
def test_a_host_that_never_took_part_or_was_ended_is_not_late(how: str) -> None:
    assert late(group("", how=how)) == frozenset()
    silent = group("")
    silent["gpu02"] = []
    assert late(silent) == frozenset()
