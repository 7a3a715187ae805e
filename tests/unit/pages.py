"""The README and the pages of docs, and the commands that stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from remedy.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Pages that tell of other tools' commands, or print what a host or a finding says, cut to a line.
CUT = {"faults.md", "remedies.md"}
# How a page writes a command that is no command to type: parts left out, or parts of which one has to choose.
LEFT_OUT = re.compile(r"\.\.\.|\[(?:\.|[A-Z]|--)")
# What a command begins with, in a block or between backticks in a sentence.
_PROGRAM = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:remedy|pip|python|pytest|ruff|scripts/[a-z]+|install|chgrp|chmod|find|apk|"
    r"sh|salloc|scontrol|man|eval) \S|scripts/[a-z]+$"
)


def commands() -> list[tuple[str, str]]:
    """List the commands of all pages that can be typed as they stand, with the page of each."""
    return [
        (page.name, command)
        for page in PAGES
        if page.name not in CUT
        for command in dict.fromkeys(_commands(page))
        if not LEFT_OUT.search(command)
    ]


def of_remedy() -> list[tuple[str, str]]:
    """List those of them that are remedy's own."""
    return [(page, command) for page, command in commands() if command.startswith("remedy ")]


def _commands(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for kind, block in re.findall(r"(?ms)^ *```([a-z]*)\n(.*?)^ *```", text):
        for line in block.splitlines():
            # In a transcript a command follows a prompt, and all else is what it printed.
            command = without_comment(line.removeprefix("$ "))
            if (kind == "sh" or line.startswith("$ ")) and _PROGRAM.match(command):
                yield command
    sentences = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    for line in re.findall(r"(?m)^    (\S.*)$", sentences):
        if _PROGRAM.match(command := without_comment(line)):
            yield command
    for code in re.findall(r"`([^`]+)`", sentences):
        words = " ".join(code.replace(r"\|", "|").split())
        if _PROGRAM.match(words):
            yield words


def without_comment(line: str) -> str:
    """Return a line without the comment at its end, which two blanks are before."""
    return re.sub(r"\s{2,}#.*", "", line).strip()


def parsed(words: list[str]) -> bool | None:
    """Say whether remedy takes these words; None where they name a command or an option alone."""
    context = click.Context(main, info_name="remedy", **main.context_settings)
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
        return None
    except click.UsageError as error:
        return None if "does not exist" in error.message else False
    return True
