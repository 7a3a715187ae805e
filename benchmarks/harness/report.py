"""The figures as a table for the terminal, a page of Markdown, a JSON document; and back from the document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.harness.figures import Goal, Sample, Spread

SCHEMA = "remedy.benchmark/1"


@dataclass
class Results:
    """Everything that one run of a benchmark measured.

    Args:
        title: what was measured, in words.
        command: the command that makes these results again.
        date: when, in UTC.
        commit: that was measured.
        machine: where, in words.
        versions: of what was compared.
        load: the machine's load average before the first run: what else it was doing.
        titles: contender to its title, in the order of the tables.
        first: runs on fresh hosts, by contender.
        again: runs with nothing to do, by contender.
        goals: the figures that are compared, with their limits.
    """

    title: str
    command: str
    date: str
    commit: str
    machine: str
    versions: Mapping[str, str]
    load: float
    titles: Mapping[str, str]
    first: dict[str, list[Sample]] = field(default_factory=dict)
    again: dict[str, list[Sample]] = field(default_factory=dict)
    goals: Sequence[Goal] = ()

    @property
    def missed(self) -> bool:
        """Whether any goal was missed."""
        return any(goal.verdict == "missed" for goal in self.goals)


def as_json(results: Results) -> str:
    """Return the document: every sample, and the goals with their verdicts."""
    document: dict[str, Any] = {"schema": SCHEMA, **asdict(results)}
    for goal, plain in zip(results.goals, document["goals"], strict=True):
        plain["verdict"] = goal.verdict
    return json.dumps(document, indent=1) + "\n"


def from_json(text: str) -> Results:
    """Return the results of a document, with its goals."""
    document = json.loads(text)
    if document.pop("schema") != SCHEMA:
        raise ValueError(f"not a document of {SCHEMA}")
    for kind in ("first", "again"):
        document[kind] = {
            key: [Sample(**sample) for sample in samples] for key, samples in document[kind].items()
        }
    goals = []
    for plain in document["goals"]:
        plain.pop("verdict")
        result = plain.pop("result")
        goals.append(Goal(**plain, result=None if result is None else Spread(**result)))
    return Results(**{**document, "goals": goals})


def as_markdown(results: Results, method: str) -> str:
    """Return the page: the goals, the figures behind them, and how they were taken (``method``)."""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    return "\n".join(
        [
            f"# {results.title}",
            "",
            f"Machine: {results.machine}. Load before the first run: {results.load:.1f}.  ",
            f"Compared: {versions}.  ",
            f"Made on {results.date}, commit {results.commit}, by:",
            "",
            f"    {results.command}",
            "",
            "## Goals",
            "",
            *_markdown(goal_rows(results)),
            "",
            "A value is the median of the rounds, in brackets the lowest and highest of them. A ratio is made",
            "in each round, from runs that followed each other.",
            "",
            "## Times",
            "",
            *_markdown(time_rows(results)),
            "",
            "Median (lowest-highest); seconds from start to end; CPU and largest process of the controller.",
            "",
            "## How",
            "",
            method,
        ]
    )


def as_text(results: Results) -> str:
    """Return both tables for a terminal."""
    return "\n".join([*_aligned(time_rows(results)), "", *_aligned(goal_rows(results))])


def goal_rows(results: Results) -> list[list[str]]:
    """Return the goals, heading first."""
    rows = [["goal", "limit", "result", ""]]
    for goal in results.goals:
        result = "-" if goal.result is None else goal.result.text(goal.digits, goal.unit)
        limit = "-" if goal.limit is None else f"{goal.limit:.{goal.digits}f}{goal.unit}"
        rows.append([goal.title, limit, result, goal.verdict])
    return rows


def time_rows(results: Results) -> list[list[str]]:
    """Return what each contender took, heading first."""
    rows = [["", "fresh hosts (s)", "nothing to do (s)", "CPU of that (s)", "memory (MiB)", "runs"]]
    for key, title in results.titles.items():
        again = results.again.get(key, [])
        first = results.first.get(key, [])
        rows.append(
            [
                title,
                _spread([s.seconds for s in first]),
                _spread([s.seconds for s in again]),
                _spread([s.cpu_seconds for s in again], 1),
                _spread([s.peak_mib for s in (*first, *again)], 0),
                f"{len(first)} + {len(again)}",
            ]
        )
    return rows


def _spread(values: Sequence[float], digits: int = 2) -> str:
    return Spread.of(values).text(digits) if values else "-"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
