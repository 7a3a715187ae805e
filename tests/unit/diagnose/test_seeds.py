"""Every problem of the five source documents, as it looks in a log, is told right; the Chinese ones too."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from remedy.diagnose.logs import diagnose_paths
from remedy.yaml_text import parse_yaml

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "diagnose" / "seeds"
# Nothing is printed where these are the matter, or what is printed is a figure that only a reader can judge.
WORDLESS = {
    "A slow link slows everybody (ethtool)",
    "Is it NCCL at all? nccl-tests",
    "Two jobs with one job_id in etcd; code and data that are not on every host",
    "Ports are to be open for the nodes only",
}


def rows() -> list[dict[str, str]]:
    with (FOLDER / "index.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", rows(), ids=[row["file"] for row in rows()])
def test_a_text_is_told_right(row: dict[str, str]) -> None:
    found = diagnose_paths([FOLDER / row["file"]])
    candidates = [one.label for one in found.candidates]
    assert found.label == row["label"], candidates
    assert not row["also"] or row["also"] in candidates


def test_every_problem_has_a_text() -> None:
    documents = parse_yaml((ROOT / "docs" / "problems.yaml").read_text(encoding="utf-8"))
    asked = {(name, one["problem"]) for name, those in documents.items() for one in those}
    shown = {(row["document"], row["problem"]) for row in rows()}
    assert len(documents) == 5
    assert shown <= asked
    assert {problem for _, problem in asked - shown} == WORDLESS


def test_every_text_is_in_the_index() -> None:
    listed = {row["file"] for row in rows()}
    there = {path.name for path in FOLDER.iterdir()} - {"index.tsv"}
    assert listed == there


def test_what_no_host_causes_is_said_so() -> None:
    labels = {row["label"] for row in rows()}
    assert {"application-error", "healthy", "unknown"} <= labels
    for row in rows():
        if row["label"] in ("healthy", "application-error"):
            assert diagnose_paths([FOLDER / row["file"]]).label == row["label"]
