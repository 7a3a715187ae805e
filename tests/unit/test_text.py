"""Words and numbers in text from elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remedy.text import (
    TRACE_START_UP,
    amount,
    clipped,
    counted,
    first_few,
    is_number,
    names_in,
)


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


@pytest.mark.parametrize("line", ["exit 0", "cat", "exec sleep 0"])
def test_the_trace_of_a_start_up_file_names_the_line_at_which_it_ends(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / ".bashrc").write_text(f"# first\n{line}\n", encoding="utf-8")
    done = subprocess.run(
        ["sh", "-c", TRACE_START_UP],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert f"{tmp_path}/.bashrc:2 {line}" in done.stderr


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("the cluster interfaces of gpu[01-02] have one hardware address", ["gpu01", "gpu02"]),
        ("1000 Mb/s: gpu03", ["gpu03"]),
        ("not set: gpu01, TCP_TLS: gpu02.", ["gpu01", "gpu02"]),
        ("gpu[01,03-04],login1: x", ["gpu01", "gpu03", "login1"]),
        ("gpu011 and mygpu01 and gpu[9-1] and gpu[", []),
        ("gpu[0-99999999999] and rack[01]-gpu[01]", []),
    ],
)
def test_the_hosts_that_a_sentence_names(sentence: str, names: list[str]) -> None:
    assert names_in(sentence, {"gpu01", "gpu02", "gpu03", "login1"}) == names


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "host", "1 host"),
        (0, "host", "0 hosts"),
        (2, "IPv6 address", "2 IPv6 addresses"),
        (1, "IPv6 address", "1 IPv6 address"),
        (2, "process", "2 processes"),
        (2, "mailbox", "2 mailboxes"),
        (2, "branch", "2 branches"),
    ],
)
def test_nouns_are_counted(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_what_is_left_out_is_counted() -> None:
    assert clipped("x" * 11, 10) == "x" * 11  # as short as what would say so
    assert clipped("x" * 60, 10) == "x" * 10 + "... (50 more characters)"
    assert (amount(1), amount(2)) == ("1 byte", "2 bytes")
    assert first_few("abcde", 3) == ("abcde", 0)
    assert first_few("abcdef", 3) == ("abc", 3)


@pytest.mark.parametrize("most", range(20, 50))
def test_what_was_shortened_before_has_one_end(most: int) -> None:
    text = clipped(f"{'x' * 30}{'y' * 60}", 30) + ", and more words behind it"
    again = clipped(text, most)
    assert again.count("...") == 1 or again.startswith(f"{'x' * 30}... (60 more characters)")
    assert "....." not in again
    assert again == text or again.endswith(("more characters)", "more character)"))
