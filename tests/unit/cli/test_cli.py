"""The command line where no host is needed: what is wrong is told in words, with what to do next."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from remedy.audit import Journal
from remedy.cli.main import COMMANDS, main

HOST = '"gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1}'
GOOD = f"hosts = [({HOST})]\n"  # port 1: nobody listens there
ON_HOSTS = ("check", "plan", "apply", "verify")


def remedy(*words: str | Path) -> Result:
    """Run a command without a terminal; an exception that is no exit is a defect of the command."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def program(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program, with standard output and standard error apart."""
    command = Path(sysconfig.get_path("scripts")) / "remedy"
    return subprocess.run(
        [str(command), *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def inventory(folder: Path, text: str = GOOD) -> Path:
    path = folder / "inventory.py"
    path.write_text(text)
    return path


def assert_refused(result: Result, *parts: str) -> None:
    """Look for an error with a next step, exit code 2 and no traceback."""
    assert result.exit_code == 2, result.output
    error, _, next_step = result.output.partition("error: ")[2].partition("\n  ")
    for part in parts:
        assert part in error + next_step, result.output
    assert next_step.strip(), result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = remedy(name, "--help")
    assert result.exit_code == 0
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.help
    assert all(p.help for p in command.params if isinstance(p, click.Option))


def imported(folder: Path, *words: str) -> list[str]:
    """Run a command in a process of its own, and return the modules that it imported."""
    code = (
        "import sys; from remedy.cli.main import main\n"
        "try: main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    program = [sys.executable, "-c", code, *words]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=folder)
    return done.stderr.split()


def test_the_help_imports_no_command(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--help")
    assert "remedy.cli.main" in modules
    assert not {"remedy.cli.apply", "pydantic", "rich", "pyinfra"} & set(modules)


def test_explaining_a_remedy_imports_no_other(tmp_path: Path) -> None:
    modules = imported(tmp_path, "explain", "hostname")
    assert "remedy.deploys.hostname" in modules
    others = {"remedy.deploys.limits", "remedy.diagnose", "jinja2", "rich", "pyinfra"}
    assert not others & set(modules)


def test_a_look_at_hosts_loads_nothing_that_reads_logs() -> None:
    code = "import sys, remedy.runs.check, remedy.report.outcome; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "remedy.runs.outcome" in modules
    assert (
        not {
            "remedy.verify.verdict",
            "remedy.diagnose.logs",
            "remedy.diagnose.catalogue",
            "ahocorasick_rs",
        }
        & modules
    )


def test_help_lists_the_commands_and_a_wrong_one_is_refused() -> None:
    shown = remedy("--help").output
    assert all(
        re.search(rf"^  {name} +{re.escape(text)}$", shown, re.M) for name, text in COMMANDS.items()
    )
    assert remedy("aply").exit_code == 2


@pytest.mark.parametrize("command", [*ON_HOSTS, "trust"])
def test_an_inventory_that_is_not_there(tmp_path: Path, command: str) -> None:
    path = tmp_path / "nowhere.py"
    assert_refused(remedy(command, path), str(path), "no such inventory", "pyinfra inventory")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x = 1\nhosts = [(\n", ["line 2"]),
        ("x = 1\nhosts = [1 / 0]\n", ["line 2", "ZeroDivisionError"]),
        ("raise SystemExit(0)\n", ["SystemExit"]),
        ("", ["names no host", "Add one"]),
        ("hosts = ['gpu01', 'gpu01']\n", ["'gpu01' 2 times", "name of its own"]),
        (
            "hosts = [('a', {'ssh_hostname': '10.0.0.1'}), ('b', {'ssh_hostname': '10.0.0.1'})]\n",
            ["a and b have the same ssh address", "10.0.0.1"],
        ),
        ("hosts = ['gpu_01']\n", ["'gpu_01' is not a legal host name", "RFC 1123"]),
        ("hosts = ['$(touch pwned)']\n", ["not a legal host name"]),
        ("hosts = [('a', {'ssh_port': 'many'})]\n", ["ssh_port", "'many'"]),
        ("hosts = [('a', {'ssh_port': 70000})]\n", ["a: ssh_port is 70000, needs"]),
        ("hosts = [('a', 'not a dictionary')]\n", ["entry 1 of the list 'hosts' is not a host"]),
        ("hosts = ['b', ('a',)]\n", ["entry 2 of the list 'hosts'"]),
        ("hosts = ['b', 7]\n", ["entry 2 of the list 'hosts'"]),
        ("hosts = ['b']\nlimits = (1, 2)\n", ["TypeError", "leading underscore"]),
        ("hosts = [7]\n", ["names no host"]),
    ],
)
def test_a_bad_inventory_is_told_with_its_place(
    tmp_path: Path, text: str, parts: Sequence[str]
) -> None:
    path = inventory(tmp_path, text)
    assert_refused(remedy("check", path), "inventory.py", *parts)
    assert not (tmp_path / ".remedy").exists()


def test_group_data_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data" / "hosts.py").write_text("ssh_user = undefined\n")
    assert_refused(remedy("check", inventory(tmp_path)), "group_data", "NameError")


def test_a_folder_as_inventory(tmp_path: Path) -> None:
    assert_refused(remedy("check", tmp_path), str(tmp_path))


def test_an_inventory_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    path.write_bytes(b"\x00\xff\xfe hosts")
    assert_refused(remedy("check", path), "inventory.py")


def test_the_traceback_of_an_inventory_is_shown_when_asked_for(tmp_path: Path) -> None:
    path = inventory(tmp_path, "def broken():\n    return {}['no']\nhosts = [broken()]\n")
    assert "Traceback" not in remedy("check", path).output
    shown = remedy("check", path, "-v")
    assert shown.exit_code == 2
    assert "Traceback" in shown.output
    assert "in broken" in shown.output


@pytest.mark.parametrize("command", ON_HOSTS)
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hostnme: {}", ["'hostnme'", "did you mean 'hostname'?", "Sections: "]),
        ("hosts_file: {mange: true}", ["'hosts_file.mange'", "did you mean 'manage'?"]),
        ("verify: {deadline: soon}", ["verify.deadline"]),
        ("a: [", ["not YAML"]),
    ],
)
def test_a_bad_spec_is_told_with_its_path_and_the_nearest_key(
    tmp_path: Path, command: str, text: str, parts: Sequence[str]
) -> None:
    (tmp_path / "remedy.yaml").write_text(text)
    assert_refused(remedy(command, inventory(tmp_path)), "remedy.yaml", *parts)


def test_a_spec_that_is_not_there(tmp_path: Path) -> None:
    spec = tmp_path / "other.yaml"
    assert_refused(remedy("check", inventory(tmp_path), "--spec", spec), str(spec), "--spec")


def test_a_limit_that_selects_nothing(tmp_path: Path) -> None:
    result = remedy("check", inventory(tmp_path), "--limit", "gpu9*")
    assert_refused(result, "--limit gpu9*", "gpu01")


@pytest.mark.parametrize("words", [("show", "r1"), ("audit", "verify", "inventory.py")])
def test_a_limit_where_no_host_is_asked_is_not_passed_over(words: tuple[str, ...]) -> None:
    assert_refused(remedy(*words, "--limit", "gpu9*"), "--limit", "Add --")


@pytest.mark.parametrize("command", ["show", "rollback"])
def test_a_run_that_is_not_there(tmp_path: Path, command: str) -> None:
    words: list[str | Path] = ["20260101T000000Z-00000000"]
    if command == "rollback":
        words += [inventory(tmp_path), "--yes"]
    assert_refused(remedy(command, *words), "20260101T000000Z-00000000")


@pytest.mark.parametrize("run", ["../../elsewhere", "/etc"])
def test_a_run_is_no_path_that_leads_elsewhere(tmp_path: Path, run: str) -> None:
    assert remedy("rollback", run, inventory(tmp_path), "--yes").exit_code == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"digest": "0", "plan": {}}'])
def test_a_torn_plan_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    assert_refused(remedy("show", path), "plan.json", "remedy plan")
    assert_refused(remedy("apply", inventory(tmp_path), "--plan", path), "plan.json")


def test_what_the_lab_cannot_do_is_told_as_everything_else_is() -> None:
    result = remedy("lab", "--name", "../up", "down")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: a lab cannot be called '../up'",
        "  Use up to 31 lower-case letters, digits and dashes.",
    ]


THIRD_PARTY = {
    "import nowhere": "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'",
    "": "cannot be loaded: TypeError",
    "theirs = 1": "cannot be loaded: TypeError: it has no function theirs() under @remedy(...)",
    "from remedy.deploys.hosts_file import hosts_file as theirs": "has the name 'hosts_file', as another",
}


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=() if not code else pytest.mark.full) for code in THIRD_PARTY]
)
def test_a_third_partys_remedy_that_is_broken(tmp_path: Path, code: str) -> None:
    (tmp_path / "theirs.py").write_text(f"{code}\n")
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[remedy.deploys]\ntheirs = theirs\n")
    path = inventory(tmp_path)
    search_path = os.pathsep.join(path for path in (str(tmp_path), *sys.path) if path)
    done = program(tmp_path, "check", str(path), PYTHONPATH=search_path)
    told = " ".join(done.stderr.split())
    assert done.returncode == 2, done.stderr
    assert THIRD_PARTY[code] in told
    assert "Repair the package theirs, or uninstall it." in told


def test_a_remedy_that_does_not_exist() -> None:
    assert_refused(remedy("explain", "hostnme"), "hostnme")


def test_a_journal_that_was_edited_is_told(tmp_path: Path) -> None:
    path = inventory(tmp_path)
    assert remedy("audit", "verify", path).exit_code == 0
    assert "no run is on record" in remedy("history", path).output
    journal = Journal(tmp_path / ".remedy", run="r1", mode="apply")
    journal.write("planned", by="ann@ops", changes={"gpu01": ["set the name"]})
    journal.write("ended", exit_code=0)
    good = remedy("audit", "verify", path)
    assert (good.exit_code, "2 records, the chain is whole" in good.output) == (0, True)
    assert "exit 0" in remedy("history", path).output
    file = tmp_path / ".remedy" / "journal.jsonl"
    file.write_text(file.read_text().replace("ann@ops", "bob@ops"))
    bad = remedy("audit", "verify", path)
    assert bad.exit_code == 1
    assert "record 0 was changed" in bad.output


@pytest.mark.parametrize("words", [["check"], ["plan"], ["apply", "--yes", "--no-verify"]])
def test_a_host_that_is_not_there_is_told_and_the_exit_code_is_5(
    tmp_path: Path, words: Sequence[str]
) -> None:
    result = remedy(*words, inventory(tmp_path))
    assert result.exit_code == 5, result.output
    assert "gpu01 (127.0.0.1:1): no connection" in result.output
    assert "Is the host up" in result.output


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    inventory(tmp_path)
    done = program(tmp_path, "check", "inventory.py", "--json")
    assert done.returncode == 5
    document = json.loads(done.stdout)
    assert document["exit_code"] == 5
    assert document["hosts"]["gpu01"]["status"] == "unreachable"
    wrong = program(tmp_path, "check", "nowhere.py", "--json")
    assert (wrong.returncode, json.loads(wrong.stdout)["exit_code"]) == (2, 2)
    assert "nowhere.py" in wrong.stderr


@pytest.mark.parametrize("command", ["verify", "apply"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "pvm"), "'nccl-tests'"),
        (("--min-busbw", "fast"), "or a share up to 100%"),
        (("--min-busbw", "0%"), "or a share up to 100%"),
    ],
)
def test_what_cannot_be_said_of_the_proof_is_told_before_any_connection(
    tmp_path: Path, command: str, words: tuple[str, ...], said: str
) -> None:
    result = remedy(command, inventory(tmp_path), *words)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "connection" not in result.output


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("verify: {engine: pvm}", "nccl-tests"),
        ("verify: {engine: mpi, backend: gloo}", "only the engine torch"),
        ("verify: {min_busbw: quick}", "or a share up to 100%"),
    ],
)
def test_a_spec_that_no_engine_can_follow_is_refused(
    tmp_path: Path, written: str, said: str
) -> None:
    file = tmp_path / "remedy.yaml"
    file.write_text(f"{written}\n")
    result = remedy("verify", inventory(tmp_path), "--spec", file)
    assert result.exit_code == 2, result.output
    assert said in result.output
