"""The README and the pages: short enough to read, links that lead somewhere, commands that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from remedy.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONGEST = 150
# How a page writes a command that is no command to type: a word alone, or parts left out.
LEFT_OUT = re.compile(r"\.\.\.|\[")
# Pages that tell of other tools' commands, or print what a host or a finding says, cut to a line.
CUT = {"faults.md", "remedies.md"}


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page: in blocks of code, and between backticks in a sentence."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^ *```[a-z]*\n(.*?)^ *```", text)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"(?m)^    (remedy .*)$", text)
    for line in lines:
        word = line.strip().removeprefix("$ ")
        if word.startswith("remedy ") and (line.strip() != word or not line.startswith("$")):
            yield word
    sentences = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    for code in re.findall(r"`(remedy [^`]+)`", sentences):
        yield " ".join(code.split())


def typed() -> list[tuple[str, str]]:
    """List the commands of all pages with the page of each."""
    return [
        (page.name, command)
        for page in PAGES
        if page.name not in CUT
        for command in dict.fromkeys(commands(page))
        if not LEFT_OUT.search(command)
    ]


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
    assert len(typed()) > 60


@pytest.mark.parametrize(("page", "command"), typed())
def test_a_command_of_a_page_can_be_typed(page: str, command: str) -> None:
    """The program's own parser takes it: no option or command that is not there."""
    words = shlex.split(command, comments=True)[1:]
    words = list(takewhile(lambda word: word not in ("|", ">", "<", "&&"), words))
    assert parses(words), f"{page}: {command}"


def parses(words: list[str]) -> bool:
    """Say whether the program takes these words."""
    context = click.Context(main, info_name="remedy")
    command: click.Command | None = main
    try:
        while isinstance(command, click.Group) and words:
            if words[0].startswith("-"):
                return words[0] in ("--help", "--version")
            command, words = command.get_command(context, words[0]), words[1:]
        if command is None:
            return False
        command.make_context(command.name, list(words), parent=context)
    except click.exceptions.Exit:
        return True  # --help
    except click.NoSuchOption:
        return False
    except (click.MissingParameter, click.BadOptionUsage):
        return True  # a sentence names the command or the option alone
    except click.UsageError as error:
        return "does not exist" in error.message
    return True


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
    assert parses(words.split()) == right
