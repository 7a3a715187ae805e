"""With --json every command ends with one document that has the shape of its schema, an error too."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from remedy import __version__
from remedy.audit import Journal, read_stories
from remedy.cli.main import COMMANDS, WITHOUT_JSON, main
from remedy.cli.schema import KINDS
from remedy.lab.status import LabStatusDocument
from remedy.plan import Plan, write_plan
from remedy.report.schema import MODELS, model_schema, schema_of
from tests.unit.build import record
from tests.unit.schemas import conforms

HOST = '("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})'  # nobody listens there
ON_HOSTS = ["INVENTORY"]

# For each command with --json: its arguments, and the kind of its document where all goes well.
CALLS: dict[str, tuple[list[str], str]] = {
    "check": (ON_HOSTS, "run"),
    "plan": (ON_HOSTS, "run"),
    "apply": ([*ON_HOSTS, "--yes"], "run"),
    "verify": (ON_HOSTS, "run"),
    "rollback": (["latest", *ON_HOSTS], "error"),
    "unlock": (["r1", *ON_HOSTS], "run"),
    "facts": (ON_HOSTS, "facts"),
    "trust": (ON_HOSTS, "trust"),
    "history": (ON_HOSTS, "history"),
    "show": (["r1", "--home", "HOME"], "story"),
    "audit verify": (ON_HOSTS, "audit"),
    "audit accept": (ON_HOSTS, "accept"),
    "audit export": ([*ON_HOSTS, "--format", "json"], "export"),
    "diagnose": (["LOG"], "diagnosis"),
    "lab status": ([], "lab-status"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an inventory, a journal of one run, a log and a plan."""
    (tmp_path / "inventory.py").write_text(f"hosts = [{HOST}]\n")
    (tmp_path / "train.log").write_text("nothing is wrong\n")
    write_plan(record(Plan), tmp_path / "plan.json")
    journal = Journal(tmp_path / ".remedy", run="r1", mode="check")
    journal.write("checked", hosts={"gpu01": "ok"}, exit_code=0, by="ann@ops")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REMEDY_LAB_HOME", str(tmp_path / "labs"))
    return tmp_path


def words_of(name: str, folder: Path) -> list[str]:
    places = {"INVENTORY": "inventory.py", "HOME": ".remedy", "LOG": "train.log"}
    arguments = [str(folder / places[word]) if word in places else word for word in CALLS[name][0]]
    option = [] if "--format" in arguments else ["--json"]
    return [*name.split(), *arguments, *option]


def run(*words: str) -> tuple[int, dict[str, Any]]:
    """Run a command; its standard output is one document."""
    result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    document = json.loads(result.stdout)
    assert isinstance(document, dict), result.stdout
    return result.exit_code, document


def assert_headed(document: dict[str, Any], kind: str) -> None:
    """Look at what all documents begin with, and at the shape of the rest."""
    model = LabStatusDocument if kind == "lab-status" else MODELS[kind]
    schema = model_schema(kind, model)
    assert document["schema"] == f"remedy.{kind}/1"
    assert conforms(document, schema, schema), document
    assert document["tool_version"] == __version__
    began, ended = (
        datetime.fromisoformat(document[n].replace("Z", "+00:00")) for n in ("began", "ended")
    )
    assert began <= ended


def commands() -> Iterator[tuple[str, bool]]:
    """Yield every command, and whether it has --json."""

    def walk(name: str, command: click.Command) -> Iterator[tuple[str, bool]]:
        if isinstance(command, click.Group):
            for part, child in command.commands.items():
                yield from walk(f"{name} {part}", child)
            return
        if command.context_settings.get("ignore_unknown_options"):
            return  # lab shell: its words are the host's
        yield name, any("--json" in param.opts for param in command.params)

    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        yield from walk(name, command)


def test_every_command_with_a_document_is_called_here() -> None:
    assert {name for name, has_json in commands() if has_json} == set(CALLS)


def test_every_command_without_a_document_gives_the_reason() -> None:
    without = [name for name, has_json in commands() if not has_json]
    assert {name.split()[0] for name in without} == set(WITHOUT_JSON)
    for name in without:
        code, document = run(*name.split(), "--json")
        assert_headed(document, "error")
        assert (code, document["exit_code"]) == (2, 2)
        assert WITHOUT_JSON[name.split()[0]] in document["error"], name


def test_every_kind_is_published() -> None:
    assert set(KINDS) == {*MODELS, "spec", "lab-status"}


@pytest.mark.parametrize("name", CALLS)
def test_a_document_has_the_shape_of_its_schema(name: str, folder: Path) -> None:
    code, document = run(*words_of(name, folder))
    assert_headed(document, CALLS[name][1])
    assert document.get("exit_code", code) == code
    if "INVENTORY" in CALLS[name][0]:
        assert document["inventory"] == str(folder / "inventory.py")


@pytest.mark.parametrize(
    "words",
    [["check"], ["plan", "-o", "new.json"], ["apply", "--rehearse"], ["verify"]],
    ids=" ".join,
)
def test_a_document_names_the_run_that_is_on_record(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _, document = run(*words, "inventory.py", "--json")
    (recorded,) = (name for name in read_stories(Path(".remedy/journal.jsonl")) if name != "r1")
    assert document["run"] == recorded
    assert run("show", recorded, "--json")[1]["run"] == recorded


def test_what_is_not_on_record_names_no_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run("plan", "inventory.py", "--json")[1]["run"] is None
    shutil.rmtree(folder / ".remedy")
    (folder / ".remedy").write_text("")
    _, document = run("check", "inventory.py", "--json")
    assert document["run"] is None
    assert "not recorded" in document["warnings"][0]


def test_a_plan_that_is_to_be_approved_is_the_document(folder: Path) -> None:
    file = str(folder / "unlock.json")
    words = ("unlock", "r1", str(folder / "inventory.py"), "--force", "-o", file, "--json")
    code, document = run(*words)
    assert_headed(document, "plan")
    assert (code, document["inventory"]) == (0, str(folder / "inventory.py"))
    assert document["plan"]["inventory"] == "inventory.py", (
        "a plan says the same wherever it was made"
    )
    shown = run("show", file, "--json")[1]
    assert (shown["digest"], shown["inventory"]) == (document["digest"], "inventory.py")


def test_two_inventories_of_one_name_are_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other := folder / "other").mkdir()
    shutil.copy(folder / "inventory.py", other)
    (folder / "link.py").symlink_to("other/inventory.py")
    places = {}
    for start, typed in ((folder, "inventory.py"), (other, "inventory.py"), (folder, "link.py")):
        monkeypatch.chdir(start)
        places[start, typed] = [
            run(command, typed, "--json")[1]["inventory"] for command in ("history", "check")
        ]
    first, second = str(folder / "inventory.py"), str(other / "inventory.py")
    assert [*places.values()] == [[first, first], [second, second], [second, second]]


def test_a_plan_is_a_document_that_can_be_read_again(folder: Path) -> None:
    _, document = run("show", str(folder / "plan.json"), "--json")
    assert conforms(document, schema_of("plan"), schema_of("plan"))
    (folder / "copy.json").write_text(json.dumps(document))
    assert run("show", str(folder / "copy.json"), "--json")[1]["digest"] == document["digest"]


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_command_line_is_a_document(name: str, folder: Path) -> None:
    code, document = run(*words_of(name, folder), "--no-such-option")
    assert_headed(document, "error")
    assert (code, document["exit_code"]) == (2, 2)
    assert "--no-such-option" in document["error"]
    assert "--help" in document["next_step"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--no-such-option", "check", "--json"), "--no-such-option"),
        (("chekc", "--json"), "No such command 'chekc'. Did you mean 'check'?"),
        (("xyzzy", "--json"), "No such command 'xyzzy'."),
    ],
)
def test_what_comes_before_a_command_is_a_document_too(
    words: tuple[str, ...], message: str
) -> None:
    code, document = run(*words)
    assert_headed(document, "error")
    assert code == 2
    assert message in document["error"]
    assert ("Did you mean" in document["error"]) == ("Did you mean" in message)


@pytest.mark.parametrize("name", [n for n in CALLS if CALLS[n][0][-1:] == ON_HOSTS])
def test_an_inventory_that_is_not_there_is_a_document(name: str, folder: Path) -> None:
    (folder / "inventory.py").unlink()
    code, document = run(*words_of(name, folder))
    assert_headed(document, "error")
    assert (code, document["inventory"]) == (2, str(folder / "inventory.py"))
    assert "no such inventory" in document["error"]
    assert document["next_step"]


def test_an_error_without_json_is_no_document(folder: Path) -> None:
    result = CliRunner().invoke(main, ["check", str(folder / "nowhere.py")])
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_value_that_is_called_like_the_option_is_none() -> None:
    result = CliRunner().invoke(main, ["diagnose", "--", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_is_a_document(folder: Path, number: int) -> None:
    (folder / "inventory.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {number})\ntime.sleep(9)\n"
    )
    program = Path(sysconfig.get_path("scripts")) / "remedy"
    done = subprocess.run(
        [str(program), "check", "inventory.py", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        # The tests may run where some are ignored, as below `nohup` and `&`.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert done.returncode == 128 + number, done.stderr
    document = json.loads(done.stdout)
    assert_headed(document, "error")
    assert document["exit_code"] == 128 + number
    assert document["error"].startswith("interrupted: ")
