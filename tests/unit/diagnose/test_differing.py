"""Ranks that wait in different collectives: the program's own disorder, where the lines show one group."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

WAIT = (
    "[rank{rank}]:[E521 10:12:41.301 ProcessGroupNCCL.cpp:683] {group}[Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn={size}, NumelOut=64, "
    "Timeout(ms)=120000) ran for 120003 milliseconds before timing out."
)


PLACE = (
    "[rank{rank}]:[E521 10:12:41.301 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID {group} Rank {rank}]  failure "
    "detected by watchdog at work sequence id: {number} PG status: last enqueued work: {number}"
)


def _wait(rank: int, operation: str, number: int = 41, group: str = "", size: int = 8) -> str:
    return WAIT.format(rank=rank, operation=operation, number=number, group=group, size=size)


def _in_group(group: str, *waits: tuple[int, str, int, int]) -> list[str]:
    """Return the two lines of each wait: the second names the group."""
    return [
        line
        for rank, operation, number, size in waits
        for line in (
            _wait(rank, operation, number, size=size),
            PLACE.format(rank=rank, number=number, group=group),
        )
    ]


def test_different_collectives_under_one_number_are_the_programs_own() -> None:
    found = diagnose_lines({"log": [_wait(0, "ALLGATHER"), _wait(1, "ALLREDUCE")]})
    assert found.label == "application-error"
    assert "peer-died-timeout" in [candidate.label for candidate in found.candidates]
    assert any("different collectives" in note for note in found.notes)


@pytest.mark.parametrize(
    "lines",
    [
        [_wait(0, "ALLREDUCE"), _wait(1, "ALLREDUCE")],
        [_wait(0, "ALLREDUCE", 41), _wait(1, "ALLREDUCE", 42)],
        [_wait(0, "BROADCAST", 41), _wait(1, "ALLREDUCE", 42)],
        [_wait(0, "ALLREDUCE", 41), _wait(2, "ALLGATHER", 42)],
        [_wait(0, "ALLREDUCE", size=8), _wait(1, "ALLREDUCE", size=16), _wait(2, "ALLREDUCE")],
        [_wait(0, "ALLTOALL", size=8), _wait(1, "ALLTOALL", size=16)],
        [_wait(0, "SEND"), _wait(1, "ALLREDUCE")],
        [
            _wait(0, "ALLREDUCE", group="[PG ID 0 PG GUID 0] "),
            _wait(1, "ALLGATHER", group="[PG ID 2 PG GUID 9] "),
        ],
    ],
    ids=[
        *("the same", "one is behind", "a root is done before the others", "a rank is missing"),
        *("groups unknown", "each its own size", "numbered apart", "other groups"),
    ],
)
def test_a_rank_that_waits_alone_suffers_from_another(lines: list[str]) -> None:
    assert diagnose_lines({"log": lines}).label == "peer-died-timeout"


@pytest.mark.parametrize(
    ("waits", "note"),
    [
        ([(0, "ALLREDUCE", 16, 1024), (1, "ALLREDUCE", 16, 2048)], "different sizes"),
        ([(0, "ALLGATHER", 16, 8), (1, "ALLREDUCE", 17, 8)], "none is gone"),
        ([(0, "ALLGATHER", 16, 8), (1, "ALLREDUCE", 16, 8)], "under one number"),
        ([(0, "ALLREDUCE", 16, 8), (1, "ALLREDUCE", 16, 8), (2, "ALLREDUCE", 16, 9)], "sizes"),
    ],
    ids=["sizes", "numbers", "operations", "one of three"],
)
def test_collectives_of_one_group_that_differ_are_the_programs_own(
    waits: list[tuple[int, str, int, int]], note: str
) -> None:
    found = diagnose_lines({"log": _in_group("0(default_pg)", *waits)})
    assert (found.label, found.confidence) == ("application-error", "likely")
    assert any(note in text for text in found.notes)


def test_two_ranks_that_are_all_of_a_job_are_in_one_group() -> None:
    waits = [_wait(0, "ALLGATHER", 16), _wait(1, "ALLREDUCE", 17)]
    found = diagnose_lines({"log": waits})
    assert (found.label, found.confidence) == ("application-error", "possible")


def test_sizes_of_groups_with_one_number_of_their_own_are_not_compared() -> None:
    lines = [
        *_in_group("3(data_parallel)", (0, "ALLREDUCE", 16, 8)),
        *_in_group("5(data_parallel)", (1, "ALLREDUCE", 16, 16)),
    ]
    assert diagnose_lines({"log": lines}).label == "peer-died-timeout"


def test_a_log_without_a_wait_beside_others_is_shown_with_its_end() -> None:
    found = diagnose_lines(
        {
            "gpu01.log": [_wait(0, "ALLREDUCE")],
            "gpu02.log": [_wait(1, "ALLREDUCE")],
            "gpu03.log": ["step 10 loss 2.0", "Saving checkpoint"],
        }
    )
    assert found.label == "peer-died-timeout"
    assert (
        "what reports no wait comes first: gpu03.log ends with 'Saving checkpoint'" in found.notes
    )
