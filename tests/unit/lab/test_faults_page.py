"""docs/faults.md has a row for every fault, and says of each what is declared with it."""

from __future__ import annotations

import re
from pathlib import Path

from remedy.lab.faults import catalogue
from tests.lab.unknown_faults import FAULTS

PAGE = Path(__file__).parents[3] / "docs" / "faults.md"
WALK = "REMEDY_FAULTS_PAGE=docs/faults.md pytest tests/lab/test_dead_ends.py --full"
_ROW = re.compile(r"^\| ([^|]*) \(`([\w-]+)`\) \| (.*?) \| ", re.MULTILINE)


def rows() -> dict[str, tuple[str, str]]:
    """Return of each fault what it does, and what check says, as the page has it."""
    matches = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(matches) == len({name for _, name, _ in matches})
    return {name: (text, check) for text, name, check in matches}


def test_every_fault_has_a_row_and_no_other() -> None:
    names = {fault.name for fault in catalogue()} | set(FAULTS)
    missing, extra = sorted(names - rows().keys()), sorted(rows().keys() - names)
    assert not missing, f"walk into {', '.join(missing)}: REMEDY_FAULTS=missing {WALK}"
    assert not extra, f"there is no such fault any more, take its row out: {', '.join(extra)}"


def test_a_row_says_what_is_declared() -> None:
    page = rows()
    told = [(fault.name, fault.text) for fault in catalogue()]
    told += [(name, fault.text) for name, fault in FAULTS.items()]
    stale = [name for name, text in told if page[name][0] != text]
    assert not stale, f'walk into them again: REMEDY_FAULTS="{" ".join(stale)}" {WALK}'
    silent = [
        fault.name
        for fault in catalogue()
        if page[fault.name][1].startswith("nothing")
        and page[fault.name][1] != f"nothing: {fault.harmless}"
    ]
    assert not silent, f'@fault(..., harmless="why check is silent"), or a finding: {silent}'
