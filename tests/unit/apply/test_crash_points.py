"""A run that dies at a program it starts: some of the points that ``python -m benchmarks.crash`` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.crashes.bench import Bench
from remedy.apply import script

EVERY = 11


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # The bench sets these for itself; here they are put back.
    monkeypatch.setattr(script, "ROOT", script.ROOT)
    monkeypatch.setattr(script, "LOG", script.LOG)
    return Bench(tmp_path)


@pytest.mark.parametrize("back", [False, True], ids=["apply", "rollback"])
def test_after_a_crash_the_next_command_reaches_its_state(bench: Bench, back: bool) -> None:
    points = bench.boundaries()
    assert points > 5 * EVERY
    died = 0
    for at in range(1, points + 1, EVERY):
        bench.fresh()
        died += not bench.apply("r1", at=at).finished
        outcome = bench.judge("kill -9", str(at), back=back)
        assert outcome.good, outcome
    assert died > 3


def test_the_run_that_the_sweep_is_about_works(bench: Bench) -> None:
    assert bench.apply("r1").finished
    assert bench.state() == bench.after != bench.before
