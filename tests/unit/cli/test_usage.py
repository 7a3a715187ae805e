"""How commands are called: usage lines, numbers, words of lists, and what answers a wrong command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from remedy.cli.history import MODES
from remedy.cli.lab import _to_copy
from remedy.cli.main import COMMANDS, main
from remedy.cli.schema import KINDS

LONGEST = 40


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="remedy")


def commands() -> Iterator[tuple[list[str], click.Command]]:
    """Yield every command with its words, groups too."""

    def walk(words: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
        yield words, command
        for name, child in getattr(command, "commands", {}).items():
            yield from walk([*words, name], child)

    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        yield from walk([name], command)


def test_an_empty_word_is_no_file_of_any_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a variable of the shell that is not set: it would be the current folder."""
    monkeypatch.chdir(tmp_path)
    count = 0
    for words, command in commands():
        for parameter in command.params:
            if not isinstance(parameter.type, click.Path):
                continue
            count += 1
            arguments = [a for a in command.params if isinstance(a, click.Argument)]
            others = (
                ["x" for a in arguments[: arguments.index(parameter)]]
                if parameter in arguments
                else []
            )
            option = [parameter.opts[-1]] if isinstance(parameter, click.Option) else []
            result = call(*words, *others, *option, "")
            assert result.exit_code == 2, (words, parameter.name)
            assert "an empty word names no file" in result.stderr, (words, parameter.name)
    assert count > 30
    assert not list(tmp_path.iterdir())


def test_no_metavar_is_broken_over_two_lines() -> None:
    seen = 0
    for words, command in commands():
        usage = call(*words, "--help").stdout.split("\n\n")[0]
        assert "\n" not in usage, usage
        context = click.Context(command)
        for param in command.params:
            metavar = param.make_metavar(context)
            assert len(metavar) <= LONGEST, (words, metavar)
            seen += 1
    assert seen > 150


def test_a_word_of_a_list_is_in_the_help() -> None:
    kinds = re.search(r"KIND: (.*?)\n\n", call("schema", "--help").stdout, re.S)
    assert kinds is not None
    assert tuple(re.findall(r"[a-z-]+", kinds[1])) == KINDS
    assert call("completion", "--help").stdout.startswith(
        "Usage: remedy completion [OPTIONS] SHELL\n"
    )
    text = " ".join(call("history", "--help").stdout.split())
    assert ", ".join(MODES) in text


# What has no value, a value that is none, too many words: at each place of a command line.
WRONG = [
    ["--json"],
    ["--json", "plan", "inventory.py"],
    ["plan", "inventory.py", "--json", "plan"],
    ["plan", "--json"],
    ["plan", "inventory.py", "--json", "--limit"],
    ["plan", "inventory.py", "--json", "--json=yes"],
    ["history", "inventory.py", "--json", "-n", "x"],
    ["history", "inventory.py", "--json", "-n"],
    ["history", "inventory.py", "--json", "--since", "yesterday"],
    ["audit", "export", "inventory.py", "--json", "--until", ""],
    ["audit", "--json"],
    ["audit", "verify", "--json", "inventory.py", "more"],
    ["audit", "export", "inventory.py", "--json", "--host"],
    ["lab", "--json", "status"],
    ["lab", "status", "--json", "--name", "night"],
    ["lab", "--name", "NIGHT", "status", "--json"],
    ["schema", "--json", "x"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_the_document_of_a_wrong_command_line_has_a_next_step(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inventory.py").write_text('hosts = ["gpu01"]\n')
    result = call(*words)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["exit_code"]) == (2, 2)
    assert document["next_step"]
    if result.stderr.startswith("Usage:"):
        usage = result.stderr.split(" [OPTIONS]")[0].removeprefix("Usage: ")
        assert document["next_step"] == f"See how it is called: {usage} --help"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["history", "i", "-n", "x"], "'-n': 'x' is not a whole number of 1 or more."),
        (["history", "i", "-n", "0"], "'-n': '0' is not a whole number of 1 or more."),
        (["history", "i", "-n", "1.5"], "'-n': '1.5' is not a whole number of 1 or more."),
        (["apply", "i", "--max-failures", "-1"], "'-1' is not a whole number of 0 or more."),
        (["apply", "i", "--require-approval", "11"], "'11' is not a whole number from 1 to 10."),
        (["lab", "up", "-n", "four"], "'four' is not a whole number of 1 or more."),
    ],
)
def test_what_is_no_number_is_refused_in_words(words: list[str], message: str) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "range" not in result.stderr


@pytest.mark.parametrize("command", [["history", "i.py"], ["audit", "export", "i.py"]])
@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("text", ["yesterday", ""])
def test_what_is_no_date_is_refused_with_its_option(
    command: list[str], option: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("i.py").write_text('hosts = ["gpu01"]\n')
    result = call(*command, option, text)
    assert result.exit_code == 2
    assert f"error: {option} {text!r} is not a date\n  Give one such as" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "night", "break", "gpu01", "xyzzy"], "remedy lab --name night break --list"),
        (["--name", "night", "up", "--fault", "xyzzy"], "remedy lab --name night break --list"),
        (["break", "gpu01", "xyzzy"], "See all: remedy lab break --list"),
        (["break", "gpu01", "hosts-crfl"], "Did you mean 'hosts-crlf'?"),
        (
            ["break", "--name", "night", "gpu01"],
            "it is typed before the command: remedy lab --name",
        ),
        (["--name", "Night", "status"], "Use up to 31 lower-case letters"),
        (["up", "--prefix", "_"], "Use a short prefix"),
    ],
)
def test_a_wrong_word_of_the_lab_is_a_usage_error_on_the_lab_that_was_named(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMEDY_LAB_DIR", str(tmp_path))
    monkeypatch.setattr("remedy.lab.machine.require", lambda: None)
    result = call("lab", *words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_a_command_on_a_lab_names_it() -> None:
    named = "remedy lab --name night down, then remedy lab --name night up"
    assert _to_copy("remedy lab down, then remedy lab up", "night") == named
    assert (
        _to_copy("remedy lab up", None) == _to_copy("remedy lab up", "default") == "remedy lab up"
    )
