"""A wrong option: what is really near is suggested, and what people know from other tools has its name here."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from remedy.cli.main import COMMANDS, main
from remedy.cli.nearest import ELSEWHERE, HABITS

PLAN = "what would change is shown by: remedy plan INVENTORY"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("apply inventory.py -y", "No such option '-y'. Did you mean --yes?"),
        ("trust inventory.py -y", "Did you mean --yes?"),
        ("check inventory.py -y", "'-y': this command asks nothing."),
        ("apply inventory.py -C", "Did you mean --rehearse?"),
        ("apply inventory.py --dry-run", "Did you mean --rehearse?"),
        ("check inventory.py --dry-run", f"'--dry-run': {PLAN}."),
        ("check inventory.py -l gpu01", "Did you mean --limit?"),
        ("check -i inventory.py", "'-i': the inventory is typed without an option."),
        ("plan inventory.py -D", "Did you mean --commands?"),
        ("check inventory.py -j", "Did you mean --json?"),
        ("check inventory.py -b", "'-b': remedy becomes root by itself where it has to."),
        ("check -V", "'-V': the version is shown by: remedy --version."),
        ("check inventory.py --tags limits", "Did you mean --only?"),
        ("check inventory.py --limt gpu01", "Did you mean --limit?"),
        ("check inventory.py --sudo-password", "Did you mean --ask-sudo-password?"),
        ("check inventory.py --hlep", "Did you mean --help?"),
        ("check inventory.py --bogus", "No such option '--bogus'.\n"),
        ("check inventory.py -x", "No such option '-x'.\n"),
        ("--limit gpu01 check", "'--limit': options are typed behind the command: remedy COMMAND"),
        ("--versoin", "Did you mean --version?"),
        ("schema -y", "'-y': this command asks nothing."),
    ],
)
def test_only_what_is_near_is_suggested(command: str, words: str) -> None:
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 2
    assert words in done.output
    assert done.output.count("mean") == words.count("mean")


def test_every_option_that_is_suggested_is_there() -> None:
    known: set[str] = set()

    def walk(command: click.Command) -> None:
        for param in command.params:
            known.update(param.opts)
        for child in getattr(command, "commands", {}).values():
            walk(child)

    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        walk(command)
    assert set(HABITS.values()) - {"--help"} <= known
    # What a command has under this name itself is never asked for.
    assert not {*HABITS, *ELSEWHERE} & {"--yes", "--limit", "--json", "--help"}


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_there_by_both_names(option: str) -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(main, [name, option])
        assert done.exit_code == 0, done.output
        assert done.output.startswith("Usage: main")


@pytest.mark.parametrize("name", ["audit", "lab"])
def test_a_group_without_a_command_shows_its_help(name: str) -> None:
    done = CliRunner().invoke(main, [name])
    assert done.exit_code == 2
    assert "\\n" not in done.output
    assert "\nCommands:\n" in done.output
