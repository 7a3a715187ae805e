"""Logs that mean harm: lines cost what their length costs, and what was not read is said."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from remedy.diagnose import lines
from remedy.diagnose.catalogue import Symptom, catalogue, compiled
from remedy.diagnose.course import first_failed
from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.endings import progress
from remedy.diagnose.judgement.decide import decide
from remedy.diagnose.phrases import kinds
from remedy.diagnose.scanner import exceptions, steps
from remedy.diagnose.scanner import scan as scanning
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.diagnose.scanner.reader import from_text
from remedy.diagnose.scanner.scan import PATIENCE, WINDOWS, index, scan
from remedy.diagnose.scanner.windows import REACH
from remedy.diagnose.states import blocks

PIECES = (
    *("1", " ", "a", "A", "_", ":", "/", "[", "(", '"', "'", ".", "-", "=", ",", "\x1b["),
    *("0x", "1.", "a.", "a ", "1 ", "a1", "a-", "a:", "1:", "/a", "[1]", "a: "),
)
NARROW = lines.WIDEST // 4
# Four times the length is sixteen times the work where all pairs of places are tried, and 64 times for triples.
MOST = 32
# A machine's other work can double what one try costs, not every try of so many.
TRIES = 12
# Below it the clock says little, and nobody waits for it.
NOTICEABLE = 2e-3

ENTRIES = {entry.id: entry for entry in catalogue()}


@dataclass(frozen=True)
class Attack:
    """A line: how it begins, and what follows again and again."""

    head: str
    piece: str

    def line(self, width: int) -> str:
        """Return it, so wide."""
        return (self.head + self.piece * width)[:width]


ATTACKS = [Attack("", piece) for piece in PIECES]


def _attacks_on(entry: Symptom) -> list[Attack]:
    """Return lines that an entry is tried on: its texts and the beginnings of its examples, again and again."""
    attacks = [*ATTACKS]
    for text in entry.literals:
        attacks += [Attack("", text), Attack("", f"{text} ")]
        attacks += [Attack(text, piece) for piece in ("1", "a", " ", "(")]
    for example in entry.examples[:2]:
        found = compiled(entry.pattern).search(example)
        assert found is not None
        for text in {example.split("\n")[0], found.group().split("\n")[0]}:
            for end in range(4, min(len(text), 120) + 8, 8):
                attacks.append(Attack("", text[:end]))
                attacks += [Attack(text[:end], piece) for piece in ("1", "a")]
    return attacks


def _seconds(read: Callable[[str], object], text: str) -> float:
    before = time.thread_time()
    read(text)
    return time.thread_time() - before


def _assert_bounded(read: Callable[[str], object], attacks: list[Attack]) -> None:
    costs = [_seconds(read, attack.line(NARROW)) for attack in attacks]
    for number in sorted(range(len(costs)), key=costs.__getitem__)[-3:]:
        narrow, wide = (attacks[number].line(width) for width in (NARROW, lines.WIDEST))
        assert any(
            _seconds(read, wide) < max(MOST * _seconds(read, narrow), NOTICEABLE)
            for _ in range(TRIES)
        ), attacks[number]


@pytest.mark.parametrize("name", ENTRIES)
def test_no_pattern_tries_more_than_pairs_of_places_on_a_line(name: str) -> None:
    entry = ENTRIES[name]
    patterns = {entry.pattern, entry.near, entry.unless, entry.extract}
    patterns |= {text for cause in entry.causes for text in (cause.when, cause.unless)}
    for pattern in sorted(patterns - {""}):
        _assert_bounded(re.compile(pattern).search, _attacks_on(entry))


# Each with the scanner as a whole, which is the same for all of them.
SOME = [
    pytest.param(name, marks=() if number % 12 == 0 else pytest.mark.full)
    for number, name in enumerate(ENTRIES)
]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("end", ["", "\n"], ids=["one line", "many lines"])
def test_what_an_entry_is_tried_on_grows_with_the_log(
    name: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(Symptom, "match", lambda _, text, *_around: seen.append(len(text)))

    def characters(size: int) -> int:
        seen.clear()
        # What begins with blanks would be read as an indented block.
        text = ("a" + ENTRIES[name].literals[0] + "1" * 300 + end) * (size // 300)
        scan(from_text("log", text.encode()), index())
        assert max(seen) <= lines.WIDEST
        return sum(seen)

    assert characters(24_000) <= 5 * characters(6_000)


READERS: dict[str, Callable[[str], object]] = {
    "clean": lambda text: lines.clean(text.encode()),
    "journal": lambda text: lines.clean(f'{{"__REALTIME_TIMESTAMP": "{text}'.encode()),
    "blocks": lambda text: blocks.signs_of(
        f"{text}==============NVSMI LOG==============\n{text}\n{text}CA 'a'\n<nvidia_smi_log>{text}".encode()
    ),
    "split": lines.split,
    "time_of": lines.time_of,
    "rank_of_file": lines.rank_of_file,
    "steps_of": lambda text: steps.steps_of(text.encode(), 1),
    "last_time": lambda text: lines.last_time(text.encode()),
    "is_text": progress.is_text,
    "beheaded": lambda text: exceptions.beheaded(
        (text + '\n  File "a.py", line 1, in f\n' + text).encode()
    ),
    "failure_lines": progress.failure_lines,
    "first_failed": lambda text: first_failed.REPORT.search(
        f"Root Cause (first observed failure):\n[0]:\n  time : 2026-03-02_11:00:00\n host : {text}\n"
    ),
    "causes": lambda text: kinds.Raised(text, 1, "").causes,
    "last_named": exceptions.last_named,
    "raised": lambda text: exceptions.raised(
        text + "Traceback (most recent call last):", ("\n" + text + "x").encode() * 20
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_nothing_else_that_reads_a_line_does(name: str) -> None:
    _assert_bounded(READERS[name], ATTACKS)


@pytest.mark.parametrize("piece", PIECES)
def test_the_end_of_a_log_is_seen_in_lines_of_bounded_width(piece: str) -> None:
    tail = _scan((piece * 40_000).encode()).tail
    assert max(map(len, tail.split("\n"))) <= lines.WIDEST
    assert set(tail.replace("\n", "")) <= set(piece)


def _scan(data: bytes) -> LogScan:
    return scan(from_text("log", data), index())


def _diagnosis(data: bytes) -> Diagnosis:
    return decide([_scan(data)])


ERROR = "OSError: [Errno 98] Address already in use"


def test_of_a_short_log_nothing_is_left_out() -> None:
    assert _diagnosis(f"step 1\n{ERROR}\n".encode()).notes == ()


@pytest.mark.parametrize("around", [("", "x"), ("x", ""), ("x", "x")])
def test_the_rest_of_a_long_line_is_not_read_and_that_is_said(around: tuple[str, str]) -> None:
    before, after = (text * REACH for text in around)
    diagnosis = _diagnosis(f"step 1\n{before} {ERROR} {after}\n".encode())
    assert diagnosis.label == "master-port-in-use"
    said = (
        "is longer than 1,600 characters: read only around texts that are known, the rest was not"
    )
    assert diagnosis.notes == (f"log: line 2 {said}",)


def test_a_line_of_known_texts_is_read_in_so_many_places_and_the_next_line_too() -> None:
    long_line = "NCCL WARN " * 400_000
    counted: list[str] = []
    match = Symptom.match

    def counting(entry: Symptom, text: str, around: str = "") -> re.Match[str] | None:
        counted.append(entry.id)
        return match(entry, text, around)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Symptom, "match", counting)
        diagnosis = _diagnosis(f"{long_line}\n{ERROR}\n".encode())
    assert diagnosis.label == "master-port-in-use"
    assert max(map(counted.count, set(counted))) <= WINDOWS + 1
    assert "line 1 is longer" in diagnosis.notes[0]


def test_a_log_that_takes_too_long_is_not_read_to_its_end_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanning, "SECONDS", 0.0)
    diagnosis = _diagnosis(f"step 1\n{ERROR}\n".encode())
    assert diagnosis.label == "unknown"
    assert "log: not read from line 2 on: its lines took more than 0 s of work" in diagnosis.notes


def test_a_text_on_too_many_lines_is_named() -> None:
    diagnosis = _diagnosis(f"{ERROR}\n".encode() * (PATIENCE + 1))
    assert diagnosis.label == "master-port-in-use"
    assert any(note.startswith("log: only the first 5,000 places") for note in diagnosis.notes)


def test_a_traceback_without_an_end_is_named() -> None:
    frames = '  File "/app/train.py", line 12, in main\n' * 1000
    head = "Traceback (most recent call last):\n"
    notes = _diagnosis(f"step 1\n{head}{frames}ValueError: 3\n".encode()).notes
    assert "log: the end of a traceback was not read, line 2 is its beginning" in notes
