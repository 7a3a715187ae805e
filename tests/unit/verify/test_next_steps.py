"""The commands that a verdict recommends: a selection is named only where it leaves hosts out."""

from __future__ import annotations

import pytest

from remedy.text import limited
from remedy.verify.hosts import apply_step, shortened

EVERY = tuple(f"gpu{number:02d}" for number in range(1, 5))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("remedy apply i.py --limit 'gpu[01-04]'", "remedy apply i.py"),
        ("remedy verify i.py --limit 'gpu[01-04]' --explain", "remedy verify i.py --explain"),
        ("remedy apply 'my i.py' --limit gpu01,gpu02,gpu03,gpu04", "remedy apply 'my i.py'"),
        (
            "remedy apply i.py --limit 'gpu[01-03]'",
            "remedy apply i.py --limit 'gpu[01-03]'",
        ),
        ("remedy apply i.py --limit gpu01", "remedy apply i.py --limit gpu01"),
        ("remedy check i.py", "remedy check i.py"),
    ],
)
def test_a_selection_of_all_hosts_is_left_out(step: str, expected: str) -> None:
    assert shortened(step, EVERY) == expected


@pytest.mark.parametrize("names", [EVERY, EVERY[:1], ("a b", "c'd"), ("node-1", "other")])
def test_what_is_typed_for_hosts_is_understood(names: tuple[str, ...]) -> None:
    step = f"{apply_step('i.py')}{limited(names)}"
    assert shortened(step, names) == "remedy apply i.py"
    assert shortened(step, (*names, "one-more")) == step
