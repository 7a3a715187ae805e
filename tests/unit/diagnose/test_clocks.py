"""Clocks that differ do not turn the order of failures round: common steps put them right."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

MINUTE = 60


def _log(ahead: int, end: str, after: int, *, steps: int = 5) -> list[str]:
    """Return a log of steps every ten seconds and a last line, on a clock that is ahead by so many seconds."""

    def at(second: int) -> str:
        second += ahead + 10 * 3600
        return f"2026-11-28 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"

    lines = [f"{at(10 * step)} INFO step {step} loss 2.{step}" for step in range(steps)]
    return [*lines, f"{at(10 * steps + after)} ERROR {end}"]


FULL = "OSError: [Errno 28] No space left on device: '/ckpt/a'"
CLOSED = "RuntimeError: Connection closed by peer [10.0.0.9]:29001"


@pytest.mark.parametrize("ahead", [0, 9 * MINUTE, -9 * MINUTE, 3600])
def test_what_failed_first_is_first_whatever_the_clocks_say(ahead: int) -> None:
    found = diagnose_lines(
        {"a.log": _log(ahead, FULL, 1), "b.log": _log(0, CLOSED, 20), "c.log": _log(0, CLOSED, 21)}
    )
    assert found.label == "disk-full"
    assert [moment.file for moment in found.timeline][:1] == ["a.log"]
    said = [note for note in found.notes if "clock" in note]
    assert bool(said) == bool(ahead), found.notes


def test_ranks_that_print_their_steps_at_different_times_have_one_clock() -> None:
    late = [line.replace("10:00:4", "10:01:2") for line in _log(0, CLOSED, 1)]
    found = diagnose_lines({"a.log": _log(0, FULL, 1), "b.log": late})
    assert not any("clock" in note for note in found.notes)
