"""Words and numbers in text from elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remedy.text import is_number


@given(st.text(alphabet=st.characters(categories=["Nd", "No", "Nl"]), max_size=30))
@example("\u00b2")
@example("9" * 5000)
def test_what_is_a_number_can_be_read_as_such(text: str) -> None:
    assert not is_number(text) or int(text) < 10**20


@pytest.mark.parametrize(
    ("text", "result"),
    [
        *(("0", True), ("18446744073709551615", True), ("", False), ("-1", False)),
        *(("1\n", False), ("\u00b2", False), ("\u0663", False), ("9" * 21, False)),
    ],
    ids=repr,
)
def test_a_number_is_up_to_twenty_digits_of_ascii(text: str, result: bool) -> None:
    assert is_number(text) is result
