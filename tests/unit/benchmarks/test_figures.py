"""Figures hold: a value is the median of its rounds, inside its range, and one round has no range."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import verify
from benchmarks.diagnosing import ordinary
from benchmarks.harness.figures import Goal, Spread, ratio
from benchmarks.harness.fleet_page import goals, page, probe_time
from benchmarks.harness.report import from_json

RESULTS = Path(verify.__file__).parent / "results"
SECONDS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=9)


@given(SECONDS)
def test_the_value_is_inside_its_range(rounds: list[float]) -> None:
    spread = Spread.of(rounds)
    assert min(rounds) == spread.low <= spread.median <= spread.high == max(rounds)
    assert ("one round" in spread.text()) == (len(rounds) == 1)


@given(SECONDS, SECONDS)
def test_a_ratio_is_that_of_the_rounds_which_both_have(
    over: list[float], under: list[float]
) -> None:
    """Not that of the medians: with unequal numbers of rounds it falls outside of its own range."""
    spread = ratio(over, under)
    assert spread.low <= spread.median <= spread.high
    assert spread.count == min(len(over), len(under))


def test_one_round_of_the_rival_gives_one_ratio() -> None:
    assert ratio([7.2, 5.7, 6.3], [210.0]) == Spread.of([7.2 / 210.0])


@pytest.mark.parametrize("values", [(3.0, 1.0, 2.0, 3), (0.5, 1.0, 2.0, 3), (1.0, 1.0, 1.0, 0)])
def test_a_value_outside_of_its_range_cannot_be_made(
    values: tuple[float, float, float, int],
) -> None:
    with pytest.raises(ValueError, match="is not the median"):
        Spread(*values)


def test_the_unit_stands_at_the_value() -> None:
    assert Spread.of([4.41]).text(1, " s") == "4.4 s (one round)"
    assert Spread.of([1.0, 3.0, 2.0]).text(0, " MiB") == "2 MiB (1-3)"


def test_a_goal_is_judged_by_the_median_or_by_the_worst_round() -> None:
    rounds = Spread.of([96.0, 96.0, 160.0])
    assert Goal("memory", 150, " MiB", rounds).verdict == "reached"
    assert Goal("memory", 150, " MiB", rounds, worst=True).verdict == "missed"
    assert Goal("memory", None, " MiB", rounds).verdict == "for comparison"
    assert Goal("memory", 150, " MiB", None).verdict == "not measured"


def test_the_page_of_the_fleet_is_made_of_its_samples() -> None:
    results = from_json((RESULTS / "fleet.json").read_text(encoding="utf-8"))
    results.goals = goals(results, probe_time(results))
    assert page(results) == (RESULTS / "fleet.md").read_text(encoding="utf-8")


def test_the_page_of_the_verification_is_made_of_its_document() -> None:
    """A range that does not hold its value cannot be read: ``Spread`` refuses it."""
    document = json.loads((RESULTS / "verify.json").read_text(encoding="utf-8"))
    assert verify.page(document["parts"]) == (RESULTS / "verify.md").read_text(encoding="utf-8")


def test_a_log_of_ordinary_output_has_more_than_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordinary, "BLOCK_LINES", 2000)
    log = tmp_path / "train.log"
    different = ordinary.write(log, 3)
    content = log.read_bytes()
    assert len(content) == 3_000_000
    block = content[:10_000]
    assert content.count(block) == -(-3 // different)
    assert content.index(block, 1) > 1_000_000
