"""Ordinary starts of each program: no line of them speaks for a failure, alone or together."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.diagnose.catalogue import Role, catalogue
from remedy.diagnose.lines import clean
from remedy.diagnose.logs import diagnose_lines, diagnose_paths
from remedy.diagnose.scanner.scan import index

FOLDER = Path(__file__).parents[2] / "diagnose" / "ordinary"
LOGS = sorted(FOLDER.glob("*.log"))
MEANT_WELL = frozenset((Role.HARMLESS, Role.GOOD, Role.SIGN))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_pattern_takes_an_ordinary_line_for_a_failure(log: Path) -> None:
    suspects = [entry for entry in catalogue() if entry.role not in MEANT_WELL]
    for raw in log.read_bytes().splitlines():
        line = clean(raw)
        matching = [entry.id for entry in suspects if entry.match((line,), line)]
        assert not matching, line


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_start_is_no_failure(log: Path) -> None:
    assert diagnose_paths([log]).label in ("healthy", "unknown")


def test_no_ordinary_line_alone_is_a_failure() -> None:
    for log in LOGS:
        for line in log.read_text(encoding="utf-8").splitlines():
            assert diagnose_lines({"log": [line]}).label in ("healthy", "unknown"), line


def test_there_are_so_many_lines_of_so_many_programs() -> None:
    assert sum(len(log.read_text(encoding="utf-8").splitlines()) for log in LOGS) > 250
    assert len(LOGS) >= 6
    assert index().literals
