"""The success of some ranks is not that of a rank whose log is empty, stops early, or is not there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.diagnose.logs import diagnose_lines


def _rank(steps: int, *, world: int = 3, ends: bool = True) -> list[str]:
    lines = [f"init world_size={world}"]
    lines += [f"step {step} loss 2.{step}" for step in range(0, steps + 1, 100)]
    return [*lines, "training finished"] if ends else lines


WHOLE = {f"rank{rank}.log": _rank(1000) for rank in range(3)}


def test_a_job_of_which_every_rank_ended_well_is_healthy() -> None:
    found = diagnose_lines(WHOLE)
    assert (found.label, found.is_open) == ("healthy", False)


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        (
            {**WHOLE, "rank2.log": _rank(500, ends=False)},
            "rank2.log: its steps end at 500, those of another log at 1000",
        ),
        ({name: _rank(1000, world=4) for name in WHOLE}, "no log of rank 3 (of 4 ranks)"),
        ({**WHOLE, "rank2.log": []}, "rank2.log: is empty"),
    ],
    ids=["stops early", "is not there", "empty"],
)
def test_what_is_not_known_of_a_rank_is_said(logs: Mapping[str, list[str]], said: str) -> None:
    found = diagnose_lines(logs)
    assert (found.label, found.is_open) == ("healthy", True)
    assert said in found.notes


def test_a_rank_that_reports_fewer_steps_and_ends_well_is_not_behind() -> None:
    logs = {**WHOLE, "rank2.log": _rank(500)}
    assert not diagnose_lines(logs).is_open
