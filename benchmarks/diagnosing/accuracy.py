"""Accuracy by label, on any folder with an index.tsv.

Each place is scored in two ways, by the label alone and by the label or a secondary one, so that the first
answer and the first three compare.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from remedy.diagnose.catalogue import catalogue
from remedy.diagnose.diagnosis import UNKNOWN
from remedy.diagnose.logs import diagnose_paths

NOT_HOST = frozenset(("healthy", "application-error"))
NEITHER = NOT_HOST | {UNKNOWN, "peer-died-timeout"}
PROMISED = 0.95
WORDS = ("certain", "likely", "possible")
PLACES = (
    ("the first answer", "top1"),
    ("among the first three answers, unknown counted as one", "top3"),
    ("among the first three causes, whether unknown came first", "offered"),
)


@dataclass(frozen=True)
class Row:
    """One log of the index, and what was said of it.

    Args:
        file: the log, or a folder of logs.
        label: what it is; ``secondary`` what would be right too.
        got: what was said first, which may be ``unknown``.
        causes: what was said after it.
        confidence: the word of the first answer.
    """

    file: str
    label: str
    secondary: tuple[str, ...]
    got: str
    causes: tuple[str, ...] = ()
    confidence: str = ""

    @property
    def accepted(self) -> frozenset[str]:
        """The label, and what would be right too."""
        return frozenset((self.label, *self.secondary))

    @property
    def top3(self) -> tuple[str, ...]:
        """The first three answers; ``unknown`` is one of them where it came first."""
        return (self.got, *self.causes)[:3]

    @property
    def offered(self) -> tuple[str, ...]:
        """The first answer and as many others as make three causes; ``unknown`` is none."""
        return (self.got, *self.causes)[: 3 + (self.got == UNKNOWN)]

    @property
    def right(self) -> bool:
        """Whether the first answer is the label."""
        return self.got == self.label

    @property
    def fair(self) -> bool:
        """Whether the first answer is the label or one that is right too."""
        return self.got in self.accepted

    @property
    def harmful(self) -> bool:
        """Whether a host is blamed that nothing is wrong with."""
        return self.label in NOT_HOST and self.got not in NEITHER and not self.fair


@dataclass
class Table:
    """All rows, and those of the runs with a family of the catalogue left out."""

    rows: list[Row]
    without: list[Row] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return the figures for a file."""
        return {
            "logs": len(self.rows),
            "labels": len({row.label for row in self.rows}),
            "top1": _share(row.right for row in self.rows),
            "top1_or_secondary": _share(row.fair for row in self.rows),
            "top3": _share(row.label in row.top3 for row in self.rows),
            "top3_or_secondary": _share(not row.accepted.isdisjoint(row.top3) for row in self.rows),
            "offered": _share(row.label in row.offered for row in self.rows),
            "offered_or_secondary": _share(
                not row.accepted.isdisjoint(row.offered) for row in self.rows
            ),
            "host_blamed_wrongly": sum(row.harmful for row in self.rows),
            "left_out": {
                "top1": _share(row.right for row in self.without),
                "top3_or_secondary": _share(
                    not row.accepted.isdisjoint(row.top3) for row in self.without
                ),
                "unknown": _share(row.got == UNKNOWN for row in self.without),
                "host_blamed_wrongly": sum(row.harmful for row in self.without),
                "other_cause": _share(not row.fair and row.got != UNKNOWN for row in self.without),
            },
            "calibration": {
                word: [sum(row.fair for row in rows), len(rows)]
                for word, rows in _by_word([*self.rows, *self.without]).items()
            },
            "wrong": [
                f"{row.file}: {row.label}, got {row.got}" for row in self.rows if not row.right
            ],
        }

    def good_enough(self) -> bool:
        """Whether what is promised is kept."""
        return _share(row.fair for row in self.rows) >= PROMISED and not any(
            row.harmful for row in self.rows
        )


def measure(folder: Path, *, leave_out: bool) -> Table:
    """Diagnose every log of an index.

    Args:
        folder: with an index.tsv.
        leave_out: do it once more for each log without the families that speak for its label.
    """
    table = Table([])
    for entry in entries(folder):
        table.rows.append(_row(folder, entry, frozenset()))
        families = _families(entry["label"])
        if leave_out and families:
            table.without.append(_row(folder, entry, families))
    return table


def unfit(folder: Path) -> str | None:
    """Return why a folder cannot be measured, None where it can be."""
    index = folder / "index.tsv"
    if not index.is_file():
        return f"no file {str(index)!r}: it has a row for each log, under a head of file, label and secondary"
    lacking = {"file", "label"} - set(
        index.read_text(encoding="utf-8").partition("\n")[0].split("\t")
    )
    if lacking:
        return f"the first line of {str(index)!r} lacks {', '.join(sorted(lacking))}"
    return None


def entries(folder: Path) -> list[dict[str, str]]:
    """Return the rows of a folder's index.tsv: file, label, and what would be right too."""
    with (folder / "index.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def text(table: Table) -> str:
    """Return the table for reading."""
    by_label: dict[str, list[Row]] = defaultdict(list)
    left_out: dict[str, list[Row]] = defaultdict(list)
    for row in table.rows:
        by_label[row.label].append(row)
    for row in table.without:
        left_out[row.label].append(row)
    out = [
        f"{'label':28}{'logs':>5}{'top-1':>8}{'fair':>8}{'top-3':>8}{'fair':>8}   without its family: said"
    ]
    for label, rows in sorted(by_label.items()):
        labels = sorted({row.got for row in left_out[label]})
        out.append(
            f"{label:28}{len(rows):5}{_share(r.right for r in rows):8.0%}{_share(r.fair for r in rows):8.0%}"
            f"{_share(r.label in r.top3 for r in rows):8.0%}"
            f"{_share(not r.accepted.isdisjoint(r.top3) for r in rows):8.0%}   {', '.join(labels)}"
        )
    figures = table.figures()
    out += [
        "",
        f"{figures['logs']} logs, {figures['labels']} labels",
        f"{'':58}{'label':>7}  or a secondary one",
        *(
            f"{place:58}{figures[key]:7.1%}{figures[f'{key}_or_secondary']:9.1%}"
            for place, key in PLACES
        ),
        f"a host blamed on a healthy or application-error log: {figures['host_blamed_wrongly']}",
    ]
    out += _left_out(table, figures["left_out"])
    out += [
        f"{word}: right {right} of {all_} times, those without the families among them"
        for word, (right, all_) in figures["calibration"].items()
    ]
    out += [f"wrong: {line}" for line in figures["wrong"]]
    return "\n".join(out)


def _left_out(table: Table, shares: dict[str, Any]) -> list[str]:
    if not table.without:
        line = (
            "the corpus was written beside the catalogue: without --quick this shows what is left of the "
            "accuracy where the families of a label are left out"
        )
    else:
        line = (
            f"{len(table.without)} of them again, without the families that speak for their label: "
            f"top-1 {shares['top1']:.1%}, it or a secondary one among the first three "
            f"{shares['top3_or_secondary']:.1%}, unknown {shares['unknown']:.1%}, another cause "
            f"{shares['other_cause']:.1%}, a host blamed wrongly {shares['host_blamed_wrongly']}"
        )
    return [line]


def _by_word(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rows by how sure the answer was."""
    return {word: [row for row in rows if row.confidence == word] for word in WORDS}


def _row(folder: Path, entry: dict[str, str], without: frozenset[str]) -> Row:
    diagnosis = diagnose_paths([folder / entry["file"]], without=without)
    labels = [
        candidate.label for candidate in diagnosis.candidates if candidate.label != diagnosis.label
    ]
    return Row(
        file=entry["file"],
        label=entry["label"],
        secondary=tuple(filter(None, (entry.get("secondary") or "").split(";"))),
        got=diagnosis.label,
        causes=tuple(labels),
        confidence=diagnosis.confidence,
    )


@cache
def _families(label: str) -> frozenset[str]:
    """Return the families that know a label, whatever the weight; none where no text speaks clearly for it."""
    if not any(entry.speaks_clearly_for(label) for entry in catalogue()):
        return frozenset()
    return frozenset(e.family for e in catalogue() if any(c.label == label for c in e.causes))


def _share(values: Any) -> float:
    items = list(values)
    return sum(items) / len(items) if items else 0.0
