"""A few lines of each of many programs, written down from what they print, with the cause of an expert.

Twenty-nine authors who had not seen the catalogue wrote them, a field each (tests/diagnose/excerpts),
twenty-four of them whole logs. Some can be told otherwise; what is right is not lost.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remedy.diagnose.logs import diagnose_lines

EXCERPTS = Path(__file__).parents[2] / "diagnose" / "excerpts"
LONG = pytest.mark.full
DOUBTFUL = 2  # answers called certain in a file whose label is another


@pytest.mark.parametrize(
    ("field", "number", "least"),
    [
        ("torch", 200, 0.9),
        pytest.param("fabric", 179, 0.84, marks=LONG),
        ("hosts", 210, 0.82),
        pytest.param("others", 193, 0.89, marks=LONG),
        ("healthy", 162, 0.77),
        ("whole-torch", 73, 0.94),
        pytest.param("whole-others", 81, 0.92, marks=LONG),
        ("whole-issues", 80, 0.93),
        pytest.param("whole-healthy", 82, 0.86, marks=LONG),
        pytest.param("whole-pastes", 50, 0.82, marks=LONG),
        pytest.param("whole-torch2", 77, 0.92, marks=LONG),
        # As an engineer of another site would send them; not made to mislead.
        ("strangers-torch", 50, 0.98),
        pytest.param("strangers-wellness", 50, 0.98, marks=LONG),
        pytest.param("strangers-fabric", 50, 0.98, marks=LONG),
        pytest.param("strangers-serving", 50, 0.98, marks=LONG),
        pytest.param("strangers-others", 50, 0.96, marks=LONG),
        pytest.param("strangers-mpi", 45, 0.91, marks=LONG),
        # Of more sites: job logs with what their hosts had said below, two among them quick.
        ("sites-hostlogs", 40, 0.97),
        ("sites-campus", 40, 0.97),
        pytest.param("sites-posttrain", 40, 0.97, marks=LONG),
        pytest.param("sites-clouds", 40, 0.97, marks=LONG),
        pytest.param("sites-operators", 30, 0.96, marks=LONG),
        pytest.param("sites-containers", 40, 0.97, marks=LONG),
        pytest.param("sites-oncall", 30, 0.96, marks=LONG),
        pytest.param("sites-ownfault", 30, 0.9, marks=LONG),
        # How runs end, well and not: the first half of what misleads.
        ("whole-ends", 77, 0.8),
        pytest.param("whole-ends-later", 71, 0.61, marks=LONG),
        # Made to mislead: good ends of runs that were none, and the reverse.
        pytest.param("whole-nearmisses", 40, 0.7, marks=LONG),
    ],
)
def test_what_programs_print_is_told_right(field: str, number: int, least: float) -> None:
    lines = (EXCERPTS / f"{field}.jsonl").read_text(encoding="utf-8").splitlines()
    right, wrongly_certain = 0, []
    for number_of, line in enumerate(lines):
        excerpt = json.loads(line)
        accepted = {excerpt["label"], *map(str.strip, excerpt["secondary"].split(";"))}
        found = diagnose_lines({"log": excerpt["text"].splitlines()})
        right += found.label in accepted
        if found.confidence == "certain" and found.label not in accepted:
            wrongly_certain.append((number_of, found.label))
    assert len(lines) >= number
    assert right >= least * len(lines)
    assert len(wrongly_certain) <= DOUBTFUL, wrongly_certain
