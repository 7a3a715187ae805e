"""A page of results says by which command its figures were made, in how many rounds, which commit, and when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[3] / "benchmarks" / "results").glob("*.md"))
# Where a figure is older than these lines, "on or before" stands at the day and the commit.
NEEDED = {
    "the command": r"python -m benchmarks\.\w+|scripts/test --full",
    "the commit": r"(?i)\bcommit [0-9a-f]{7,12}\b|\| commit \|[\s\S]*\| [0-9a-f]{7,12} \|",
    "the date": r"\b20\d\d-\d\d-\d\d\b",
    "how many rounds": r"--rounds \d|(?i:one round)|\brounds \| \d|--sample \d|--fleets \d",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_results_can_be_made_again(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [name for name, pattern in NEEDED.items() if not re.search(pattern, text)]
    assert not missing, (
        f"{page.name} lacks {', '.join(missing)}; benchmarks/harness/machine.py has commit() and today(), and "
        f"for older figures there is: git log -p {page.name}"
    )
    assert text.startswith("# ")


def test_the_pages_are_there() -> None:
    assert len(PAGES) > 10
