"""A wrong option: what is really near is suggested, and what people know from other tools has its name here."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from remedy.cli.main import COMMANDS, main
from remedy.cli.nearest import COMMANDS as OF_OTHER_TOOLS
from remedy.cli.nearest import ELSEWHERE, HABITS

PLAN = "what would change is shown by: remedy plan INVENTORY"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("apply inventory.py -y", "No such option '-y'. Did you mean --yes?"),
        ("trust inventory.py -y", "Did you mean --yes?"),
        ("check inventory.py -w gpu01", "Did you mean --limit?"),
        ("check inventory.py -x gpu01", "hosts are left out by: --limit '*!HOSTS'"),
        ("check inventory.py -u root", "the user is ssh_user in the inventory, or User in"),
        ("ping", "No such command 'ping': what is wrong is shown by: remedy check."),
        ("destroy", "a run is taken back by: remedy rollback."),
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
        ("check inventory.py -z", "No such option '-z'.\n"),
        ("--limit gpu01 check", "'--limit': options are typed behind the command: remedy COMMAND"),
        ("--versoin", "Did you mean --version?"),
        ("schema -y", "'-y': this command asks nothing."),
        ("check inventory.py --html x", "'--html': pages are written by plan, apply, verify"),
        ("help", "No such command 'help': it is shown by: remedy --help."),
        ("status", "No such command 'status': what is wrong is shown by: remedy check."),
        ("plna", "No such command 'plna'. Did you mean 'plan'?"),
        ("xyzzy", "No such command 'xyzzy'.\n"),
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


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("check inventory.py n1", "argument (n1): hosts are chosen by --limit n1\n"),
        ("check inventory.py n1 n2", "arguments (n1 n2): hosts are chosen by --limit n1,n2\n"),
        ("show latest inventory.py", ": the inventory is given by --inventory inventory.py\n"),
        ("apply inventory.py plan.json", "(plan.json): a plan is given by --plan plan.json\n"),
        ("history inventory.py x", "Got unexpected extra argument (x)\n"),
        ("check", "'INVENTORY'. Here it is inventory.py: remedy check inventory.py\n"),
        ("rollback latest", "Here it is inventory.py: remedy rollback latest inventory.py\n"),
        ("rollback inventory.py", "The run is typed first: remedy rollback latest inventory.py\n"),
        ("unlock", "Missing argument 'RUN'.\n"),
        ("rollback inventory.py r1", "is typed first\n  remedy rollback r1 inventory.py\n"),
        ("unlock inventory.py latest", "is typed first\n  remedy unlock latest inventory.py\n"),
        ("apply plan.json", "it is a plan, and an inventory is Python\n  Give it behind the inv"),
        ("check list.json", "it is JSON, and an inventory is Python\n  Hosts of a different pro"),
        ("check hosts.ini", "remedy init --from ansible hosts.ini\n"),
        ("check bad.py", "Correct that line; the file is Python.\n"),
    ],
)
def test_arguments_in_the_wrong_place_are_named_with_their_own(
    command: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inventory.py").write_text('hosts = ["gpu01"]\n')
    Path("plan.json").write_text('{"digest": "d", "plan": {"n": null}}\n')
    Path("list.json").write_text('{"_meta": {"hostvars": {}}}\n')
    for name in ("hosts.ini", "bad.py"):
        Path(name).write_text("[gpus]\ngpu01 ansible_host=10.0.0.1\n")
    done = CliRunner().invoke(main, command.split(), prog_name="remedy")
    assert done.exit_code == 2
    assert words in done.output, done.output


def test_where_no_inventory_lies_none_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check"])
    assert done.output.endswith("Error: Missing argument 'INVENTORY'.\n")


def test_what_does_the_same_as_a_word_of_other_tools_is_a_command() -> None:
    assert not set(OF_OTHER_TOOLS) & set(COMMANDS)
    named = {
        match[1] for text in OF_OTHER_TOOLS.values() for match in re.finditer(r"remedy (\w+)", text)
    }
    assert named == {"plan", "check", "apply", "verify", "rollback", "history"}
