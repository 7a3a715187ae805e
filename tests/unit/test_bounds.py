"""What text from elsewhere may cost: JSON in size and depth, work in seconds, and patterns that end."""

from __future__ import annotations

import fnmatch
import json
import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.bounds import DEPTH, MOST, Allowance, TooMuchError, fits, fits_name, read_json, work

NAMES = st.text(alphabet="ab.[!]*?-", max_size=8)
PLAIN = st.text(alphabet="ab.-", max_size=8)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_json_of_usual_size_is_read_as_it_is(value: object) -> None:
    text = json.dumps(value)
    assert read_json(text) == value
    assert read_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"' + "x" * 200 + '"', "it is longer than 0 MiB"),
        ("[" * 60_000 + "]" * 60_000, "it is nested too deeply"),
        ("[" * (DEPTH + 1) + "]" * (DEPTH + 1), f"it is nested more than {DEPTH} deep"),
    ],
)
def test_json_that_is_too_much_says_of_what(text: str, reason: str) -> None:
    with pytest.raises(TooMuchError, match=reason):
        read_json(text, 100 if reason.endswith("MiB") else 4 << 20)


def test_json_of_too_many_parts_is_not_even_parsed() -> None:
    with pytest.raises(TooMuchError, match=f"more than {MOST} parts"):
        read_json("," * (MOST + 1))


@pytest.mark.parametrize("text", ["", "{", "nan?", '"\\ud800"', '"\\uD800"'])
def test_what_is_no_json_and_no_text_is_an_error_of_a_reader(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any kind: a reader handles them alike
        read_json(text)


def test_depth_is_what_is_nested_and_not_how_many_there_are() -> None:
    wide = json.dumps([[1]] * (4 * DEPTH))
    assert read_json(wide) == [[1]] * (4 * DEPTH)
    deepest = "[" * DEPTH + "]" * DEPTH
    assert json.dumps(read_json(deepest)).replace(" ", "") == deepest


def test_work_that_does_not_end_is_ended_also_within_a_pattern() -> None:
    with pytest.raises(TooMuchError, match=r"more than 0\.05 s"), work(0.05):
        re.match(r"(a+)+$", "a" * 64 + "b")


def test_a_reader_that_goes_on_is_ended_again() -> None:
    def read() -> None:
        for _ in range(2):  # the first part is given up, and the next one begun
            with suppress(TooMuchError):
                spin()
        spin()

    def spin() -> None:
        while True:
            pass

    with pytest.raises(TooMuchError), work(0.05):
        read()


def test_after_the_work_nothing_is_ended() -> None:
    with work(0.01):
        pass
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass


def test_an_allowance_counts_the_work_of_all_pieces_together() -> None:
    allowance = Allowance(0.02)
    pieces = 0
    while not allowance.is_spent:
        pieces += 1
        with allowance:
            until = time.thread_time() + 0.006
            while time.thread_time() < until:
                pass
    assert 2 <= pieces <= 4


@given(PLAIN, NAMES)
def test_a_name_fits_as_fnmatch_says(name: str, pattern: str) -> None:
    assert fits_name(name, pattern) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("/etc/a.conf", "/etc/*.conf", True),
        ("/etc/d/a.conf", "/etc/*.conf", False),
        ("/etc/.a.conf", "/etc/*.conf", False),  # a star is for what does not hide
        ("/etc/.a.conf", "/etc/.*.conf", True),
        ("/etc/a", "/etc/[!a]", False),
        ("/etc/*", r"/etc/\*", True),
        ("/etc/x", r"/etc/\*", False),
    ],
)
def test_a_path_fits_folder_by_folder(path: str, pattern: str, expected: bool) -> None:
    assert fits(path, pattern) is expected


def test_a_pattern_of_many_stars_ends() -> None:
    with work(2):
        assert not fits_name("a" * 4000, "*a" * 60 + "b")
