"""Every fault of ``remedy lab break`` has a log in the corpus, or a reason why it has none."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.corpus.lab_faults import OF_FAULT, WITHOUT_A_LOG
from remedy.lab.faults import catalogue

CORPUS = Path(__file__).parents[2] / "diagnose" / "corpus"
NAMES = {one.name for one in catalogue()}


def labels() -> dict[str, str]:
    with (CORPUS / "index.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["file"]: row["label"] for row in rows}


def test_every_fault_is_accounted_for() -> None:
    logs = {name.removeprefix("lab-") for name in labels() if name.startswith("lab-")}
    missing = sorted(NAMES - logs - set(WITHOUT_A_LOG))
    assert not missing, (
        f"{', '.join(missing)}: no log in tests/diagnose/corpus; record one, or say in WITHOUT_A_LOG of "
        "benchmarks/corpus/lab_faults.py why there is none"
    )
    assert logs | set(WITHOUT_A_LOG) == NAMES, "a log, or a reason, of a fault that is no more"
    assert not logs & set(WITHOUT_A_LOG)
    assert all(WITHOUT_A_LOG.values())


def test_a_fault_that_stops_a_run_is_labelled_so() -> None:
    told = labels()
    stopping = {name for name in NAMES - set(WITHOUT_A_LOG) if told[f"lab-{name}"] != "healthy"}
    assert stopping == set(OF_FAULT)
    for name, (label, _) in OF_FAULT.items():
        assert told[f"lab-{name}"] == label


def test_every_log_lies_beside_its_index() -> None:
    assert labels()
    for name in labels():
        assert (CORPUS / name).exists(), name
