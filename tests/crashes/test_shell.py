"""A host's shell that dies at a program it starts, or whose disk is full, in a folder that plays the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from remedy.apply import script
from tests.crashes.bench import Bench, Outcome
from tests.crashes.steps import SIZES, full_disks, killed


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what the bench sets for itself."""
    monkeypatch.setattr(script, "ROOT", script.ROOT)
    monkeypatch.setattr(script, "LOG", script.LOG)


def assert_good(outcomes: Iterable[Outcome], *, at_least: int) -> None:
    """See that each command after a crash reached its state, and that both commands were tried so often."""
    tried = list(outcomes)
    assert [outcome for outcome in tried if not outcome.good] == []
    counts = Counter(outcome.next for outcome in tried)
    assert min(counts["apply"], counts["rollback"]) >= at_least, counts


def test_the_run_that_the_sweep_is_about_works(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.apply("r1").finished
    assert bench.state() == bench.after != bench.before


def test_after_a_killed_shell_the_next_command_reaches_its_state(tmp_path: Path) -> None:
    assert_good(killed(tmp_path, 7), at_least=6)


@pytest.mark.full
def test_after_a_shell_killed_anywhere_the_next_command_reaches_its_state(tmp_path: Path) -> None:
    assert_good(killed(tmp_path, 1), at_least=45)


@pytest.mark.lab
def test_after_a_full_disk_the_next_command_reaches_its_state(tmp_path: Path) -> None:
    assert_good(full_disks(tmp_path, (8, 32, 40, 68)), at_least=2)


@pytest.mark.lab
@pytest.mark.full
def test_after_a_disk_full_anywhere_the_next_command_reaches_its_state(tmp_path: Path) -> None:
    assert_good(full_disks(tmp_path, SIZES), at_least=15)
