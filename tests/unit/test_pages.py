"""The README and the pages: short enough to read, links that lead somewhere, commands that can be typed."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from tests.unit.pages import PAGES, ROOT, of_remedy, parsed

LONGEST = 150


def test_the_readme_is_read_in_some_minutes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert "remedy plan inventory.py" in text
    # Every page is named there, or on a page that is.
    for page in PAGES[1:]:
        assert f"docs/{page.name}" in text, f"{page.name} is not in README"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_there_are_commands_to_read() -> None:
    assert len(of_remedy()) > 60


@pytest.mark.parametrize(("page", "command"), of_remedy())
def test_a_command_of_a_page_can_be_typed(page: str, command: str) -> None:
    """The program's own parser takes it: no option or command that is not there."""
    words = shlex.split(command, comments=True)[1:]
    words = list(takewhile(lambda word: word not in ("|", ">", "<", "&&"), words))
    assert parsed(words) is not False, f"{page}: {command}"


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("check inventory.py --limit gpu01", True),
        ("check inventory.py --no-such-option", False),
        ("nothing inventory.py", False),
        ("lab break gpu01 loopback-name", True),
        ("lab nothing", False),
        ("check inventory.py --jobs many", False),
        ("check inventory.py other.py", False),
    ],
)
def test_what_cannot_be_typed_is_seen(words: str, right: bool) -> None:
    assert parsed(words.split()) is right
