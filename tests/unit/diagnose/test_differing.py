"""Ranks that wait in different collectives: the program's own disorder, where the lines show one group."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

WAIT = (
    "[rank{rank}]:[E521 10:12:41.301 ProcessGroupNCCL.cpp:683] {group}[Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn=8, NumelOut=64, "
    "Timeout(ms)=120000) ran for 120003 milliseconds before timing out."
)


def _wait(rank: int, operation: str, number: int = 41, group: str = "") -> str:
    return WAIT.format(rank=rank, operation=operation, number=number, group=group)


def test_different_collectives_under_one_number_are_the_programs_own() -> None:
    found = diagnose_lines({"log": [_wait(0, "ALLGATHER"), _wait(1, "ALLREDUCE")]})
    assert found.label == "application-error"
    assert "peer-died-timeout" in [candidate.label for candidate in found.candidates]
    assert any("different collectives" in note for note in found.notes)


@pytest.mark.parametrize(
    "lines",
    [
        [_wait(0, "ALLREDUCE"), _wait(1, "ALLREDUCE")],
        [_wait(0, "ALLREDUCE", 41), _wait(1, "ALLGATHER", 42)],
        [_wait(0, "SEND"), _wait(1, "ALLREDUCE")],
        [
            _wait(0, "ALLREDUCE", group="[PG ID 0 PG GUID 0] "),
            _wait(1, "ALLGATHER", group="[PG ID 2 PG GUID 9] "),
        ],
    ],
    ids=["the same", "other numbers", "numbered apart", "other groups"],
)
def test_a_rank_that_waits_alone_suffers_from_another(lines: list[str]) -> None:
    assert diagnose_lines({"log": lines}).label == "peer-died-timeout"
