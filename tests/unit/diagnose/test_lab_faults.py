"""What a fault of ``remedy lab break`` declares of its log is what the corpus holds."""

from __future__ import annotations

import csv
from pathlib import Path

from remedy.lab.faults import catalogue

CORPUS = Path(__file__).parents[2] / "diagnose" / "corpus"


def rows() -> list[dict[str, str]]:
    with (CORPUS / "index.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_a_fault_has_the_log_that_it_declares_or_none_and_a_reason() -> None:
    recorded = {
        row["file"].removeprefix("lab-"): (row["label"], row["secondary"])
        for row in rows()
        if row["file"].startswith("lab-")
    }
    declared, absent = {}, {}
    for fault in catalogue():
        assert fault.log is not None, fault.gaps
        if fault.log.label:
            declared[fault.name] = (fault.log.label, fault.log.secondary)
        else:
            absent[fault.name] = fault.log.absence
    wrong = [
        f"{name}: @fault(...) declares the log {declared.get(name)}, "
        f"and tests/diagnose/corpus has {recorded.get(name)}"
        for name in sorted(declared.keys() | recorded.keys())
        if declared.get(name) != recorded.get(name)
    ]
    assert wrong == []
    assert all(absent.values()), "no log, and no reason"


def test_every_log_lies_beside_its_index() -> None:
    assert rows()
    for row in rows():
        assert (CORPUS / row["file"]).exists(), row["file"]
