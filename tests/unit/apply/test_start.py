"""Who is at work, and when."""

from __future__ import annotations

from datetime import datetime

import pytest

from remedy.apply.start import origin
from remedy.plan import Plan
from tests.unit.build import record


def test_plans_that_are_made_one_after_the_other_are_two_plans() -> None:
    first, second = (record(Plan, created=origin().created) for _ in range(2))
    assert first.digest != second.digest, "a host would take the second for the first, made again"
    assert datetime.fromisoformat(first.created).tzinfo is not None


@pytest.mark.parametrize(
    ("created", "date"),
    [
        ("2026-01-02T03:04:05.678901+00:00", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"),
        ("", ""),
    ],
)
def test_people_read_the_second_in_which_a_plan_was_made(created: str, date: str) -> None:
    assert record(Plan, created=created).date == date
