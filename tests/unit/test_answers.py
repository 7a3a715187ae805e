"""What scripts print is told apart from everything else in the same stream."""

from __future__ import annotations

import pytest

from remedy import answers
from remedy.answers import read_answer, read_block, read_exit, silence

NONCE = "a1b2c3d4"


def test_only_lines_with_the_nonce_in_front_count() -> None:
    stdout = (
        f"Last login: today\n{NONCE} - begun\nother - done\n {NONCE} x done\n"
        f"{NONCE}x y done\n{NONCE} z done\r\nnoise {NONCE} w done\n"
    )
    answer = read_answer(stdout, NONCE)
    assert answer.words == (("-", "begun"), ("z", "done"))
    assert (answer.began, answer.foreign, answer.fault) == (True, "Last login: today", "")


def test_with_a_mark_a_line_needs_both() -> None:
    stdout = f"MARK {NONCE} 1\n{NONCE} 2\nMARK other 3\nMARK {NONCE} 4"
    assert read_answer(stdout, NONCE, mark="MARK").lines == ("1", "4")


def test_only_a_line_feed_ends_a_line() -> None:
    """Of the ends of lines that Python knows, no other makes a line of the script."""
    assert read_answer(f"x\x0b{NONCE} a done\u2028{NONCE} b done\n", NONCE).lines == ()


def test_a_script_that_began_is_known_by_its_nonce_alone() -> None:
    assert read_answer(f"a greeting without an end{NONCE} - begun\n", NONCE).began
    assert not read_answer("a greeting\n", NONCE).began


def test_long_and_many_lines_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LONGEST", 1 << 20)
    monkeypatch.setattr(answers, "MOST", 3)
    long = read_answer(f"{NONCE} a\n{NONCE} {'x' * (1 << 20)}\n{NONCE} b\n", NONCE)
    assert (long.lines, long.fault) == (("a", "b"), "a line is longer than 1 MiB")
    assert not read_answer(f"{NONCE} a\n" * 3, NONCE).fault
    many = read_answer(f"{NONCE} a\n" * 4, NONCE)
    assert (len(many.lines), many.fault) == (3, "there are more than 3 lines")


def test_a_foreign_text_is_an_excerpt() -> None:
    assert len(read_answer("x" * 10_000, NONCE).foreign) == answers.EXCERPT


@pytest.mark.parametrize(
    ("stdout", "block"),
    [
        (f"M {NONCE} a\none\ntwo\nM {NONCE} end\n", ("a", "one\ntwo\n", True)),
        (f"greeting M {NONCE} b\r\none\nM {NONCE} en", ("b", f"one\nM {NONCE} en", False)),
        (f"M {NONCE} c\none\nM {NONCE} end\n", None),
        ("M other a\none\nM other end\n", None),
        ("", None),
    ],
)
def test_a_block_is_what_stands_between_its_marks(
    stdout: str, block: tuple[str, str, bool] | None
) -> None:
    result = read_block(stdout, NONCE, "M", ("a", "b"))
    assert (result and (result.kind, result.text, result.complete)) == block


def test_silence_is_explained_by_the_last_error() -> None:
    assert silence("one\n\nsh: 3: Syntax error\n") == "sh: 3: Syntax error"
    assert silence(" \n") == "the script ended without an answer"


@pytest.mark.parametrize(
    ("stderr", "ended"),
    [
        ("", ("", None)),
        (f"{NONCE} 0\n", ("", 0)),
        (f"a warning\n{NONCE} 12\n\n", ("a warning", 12)),
        ("a warning\nother 0\n", ("a warning\nother 0\n", None)),
        (f"{NONCE} 0\nand more\n", (f"{NONCE} 0\nand more\n", None)),  # not the last line
        (f"{NONCE} 1000\n", (f"{NONCE} 1000\n", None)),
        (f"{NONCE} ٣\n", (f"{NONCE} ٣\n", None)),  # a digit, and no exit code
    ],
)
def test_an_exit_code_is_the_last_line_behind_its_word(
    stderr: str, ended: tuple[str, int | None]
) -> None:
    assert read_exit(stderr, NONCE) == ended
