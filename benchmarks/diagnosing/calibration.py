"""How often an answer is right by the word that stands beside it, also where the decisive text is unknown.

What nobody here has seen cannot be measured; what can be taken away can. Each labelled log is read once and
judged; then the entry that leads is taken away, as if the catalogue had never heard of it, and the rest is
judged again. A word that is only true while the catalogue knows every text is no calibration.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.diagnosing.accuracy import WORDS, entries
from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.judgement.decide import decide
from remedy.diagnose.logs import scans_of
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.diagnose.scanner.reader import from_text, sources

TAKEN = 2  # entries that are taken away from a log, one after the other
PROMISED = 0.98  # of the answers called certain where nothing is taken away
SHOWN = 12


@dataclass(frozen=True)
class Case:
    """A labelled log.

    Args:
        name: where it stands.
        accepted: the labels that are right.
        read: scans it.
    """

    name: str
    accepted: frozenset[str]
    read: Callable[[], list[LogScan]]


@dataclass
class Counts:
    """Answers with as many entries taken away, by their word; each as [right, all]."""

    words: dict[str, list[int]] = field(default_factory=lambda: {word: [0, 0] for word in WORDS})
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, diagnosis: Diagnosis, accepted: frozenset[str]) -> None:
        """Count an answer; one that is certain and wrong with its label and its leading entry."""
        if diagnosis.confidence not in self.words:
            return
        right = diagnosis.label in accepted
        self.words[diagnosis.confidence][0] += right
        self.words[diagnosis.confidence][1] += 1
        if diagnosis.confidence == WORDS[0] and not right:
            entry = diagnosis.lead.symptom if diagnosis.lead else ""
            self.wrong[diagnosis.label, entry] += 1


def cases(root: Path) -> Iterator[Case]:
    """Yield the labelled logs below a folder: those of every index.tsv, and its excerpts."""
    for index in sorted(root.rglob("index.tsv")):
        for row in entries(index.parent):
            path = index.parent / row["file"]
            yield Case(str(path.relative_to(root)), _accepted(row), _of_path(path))
    for excerpts in sorted((root / "excerpts").glob("*.jsonl")):
        for number, line in enumerate(excerpts.read_text(encoding="utf-8").splitlines(), 1):
            row = json.loads(line)
            name = f"{excerpts.relative_to(root)}:{number}"
            yield Case(name, _accepted(row), _of_text(row["text"]))


def measure(root: Path, taken: int = TAKEN) -> dict[str, Any]:
    """Judge every labelled log below a folder, and again without the entries that led.

    Args:
        root: a folder of labelled logs.
        taken: how many entries are taken away from each, one after the other.

    Returns:
        The figures for a file: by how many were taken away, [right, all] of each word, and the labels and
        entries that were certain and wrong.
    """
    counts: dict[int, Counts] = defaultdict(Counts)
    logs = 0
    for case in cases(root):
        logs += 1
        scans, away = case.read(), set[str]()
        for number in range(taken + 1):
            diagnosis = decide(_without(scans, away))
            counts[number].add(diagnosis, case.accepted)
            if diagnosis.lead is None or not diagnosis.lead.symptom:
                break
            away.add(diagnosis.lead.symptom)
    return {
        "logs": logs,
        "taken": {
            str(number): {
                **count.words,
                "wrong": [[*key, times] for key, times in count.wrong.most_common(SHOWN)],
            }
            for number, count in sorted(counts.items())
        },
    }


def text(figures: dict[str, Any]) -> str:
    """Return the figures for reading."""
    out = [f"{figures['logs']} logs, each again without the entry that led"]
    out.append(f"{'entries taken away':20}" + "".join(f"{word:>20}" for word in WORDS))
    for number, counts in figures["taken"].items():
        shares = (
            f"{right}/{all_} {right / max(all_, 1):.1%}" for right, all_ in map(counts.get, WORDS)
        )
        out.append(f"{number:20}" + "".join(f"{share:>20}" for share in shares))
    for number, counts in figures["taken"].items():
        out += [
            f"certain and wrong with {number} taken away: {label} by {entry}, {times} times"
            for label, entry, times in counts["wrong"]
        ]
    return "\n".join(out)


def good_enough(figures: dict[str, Any]) -> bool:
    """Whether what is promised of the word certain is kept."""
    right, all_ = figures["taken"]["0"][WORDS[0]]
    return bool(right >= PROMISED * all_)


def _accepted(row: dict[str, str]) -> frozenset[str]:
    others = (row.get("secondary") or "").split(";")
    return frozenset(filter(None, (row["label"], *map(str.strip, others))))


def _of_path(path: Path) -> Callable[[], list[LogScan]]:
    return lambda: scans_of(sources([path]))


def _of_text(text_: str) -> Callable[[], list[LogScan]]:
    return lambda: scans_of([from_text("log", text_.encode())])


def _without(scans: Sequence[LogScan], entries: set[str]) -> list[LogScan]:
    """Return scans without the events of some entries, as copies: deciding may change events."""
    kept = []
    for scan in map(copy, scans):
        scan.events = [copy(event) for event in scan.events if event.symptom not in entries]
        kept.append(scan)
    return kept
