"""``-`` for standard input and output, ``-q``, and commands that are printed to be copied."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.cli.terminal import Terminal
from remedy.plan import (
    Finding,
    FindingKind,
    Plan,
    read_plan,
    section_models,
    write_plan,
)
from remedy.plan.plan import canonical
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.spec import load_spec
from remedy.transport.reader import load_inventory
from tests.unit.build import record

HOST = '("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})'


def invoke(*words: str | Path, text: str = "") -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(word) for word in words], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def plan() -> Plan:
    return record(Plan, author="ann@ops", created="2026-01-01T00:00:00+00:00", tool_version="1")


def text_of(plan: Plan) -> str:
    return json.dumps({"digest": plan.digest, "plan": json.loads(canonical(plan))})


def test_show_reads_a_plan_from_standard_input() -> None:
    code, out, _ = invoke("show", "-", text=text_of(plan()))
    assert (code, "ann@ops" in out) == (0, True)


def test_what_is_wrong_with_standard_input_is_called_so() -> None:
    code, _, err = invoke("show", "-", text="{")
    assert code == 2
    assert "error: standard input is not a whole plan file" in err


def test_approve_has_no_place_for_a_signature_of_standard_input() -> None:
    code, _, err = invoke("approve", "-", text=text_of(plan()))
    assert code == 2
    assert "remedy plan INVENTORY -o plan.json" in err
    assert not Path("-.id_ed25519.sig").exists()


def test_a_plan_on_standard_output_is_the_file(capfd: pytest.CaptureFixture[str]) -> None:
    write_plan(plan(), Path("-"))
    assert json.loads(capfd.readouterr().out) == json.loads(text_of(plan()))


def test_settings_come_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    path.write_text(f"hosts = [{HOST}]\n")
    code, _, err = invoke("check", path, "--spec", "-", text="hostnme: {}")
    assert code == 2
    assert "standard input: there is no section 'hostnme'" in err


def test_two_documents_have_no_room_on_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    path.write_text(f"hosts = [{HOST}]\n")
    code, _, err = invoke("plan", path, "--json", "-o", "-")
    assert code == 2
    assert "both write to standard output" in err


def outcome(status: HostStatus) -> RunOutcome:
    return RunOutcome(
        mode="check", run="", inventory="i", hosts={"gpu01": HostOutcome(status)}, plan=plan()
    )


@pytest.mark.parametrize(
    ("status", "code", "is_shown"),
    [(HostStatus.OK, 0, False), (HostStatus.PENDING, 0, True), (HostStatus.FAILED, 1, True)],
)
def test_quiet_shows_what_is_not_good_alone(
    status: HostStatus, code: int, is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(quiet=True)
    terminal.selected(["gpu01"], 2)
    terminal.chosen("--only hostname")
    with terminal.stage("Reading"):
        pass
    terminal.show("the plan")
    with pytest.raises(SystemExit) as end:
        terminal.finish(outcome(status))
    shown = capsys.readouterr()
    assert end.value.code == code
    assert shown.err == ""
    assert ("the plan" in shown.out) is is_shown
    assert bool(shown.out) is is_shown


def test_quiet_and_verbose_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    path.write_text(f"hosts = [{HOST}]\n")
    code, _, err = invoke("check", path, "-q", "-v")
    assert code == 2
    assert "--quiet and --verbose" in err


def test_a_command_to_copy_has_its_names_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "my cluster; reboot"
    folder.mkdir()
    path = folder / "inventory.py"
    path.write_text(f"hosts = [{HOST}]\n")
    old = plan().model_copy(update={"inventory_digest": load_inventory(path).digest})
    write_plan(old, folder / "plan one.json")
    assert (
        read_plan(folder / "plan one.json").spec_digest != load_spec(None, section_models()).digest
    )
    code, _, err = invoke("apply", path, "--plan", folder / "plan one.json", "--yes")
    assert code == 4
    command = err.partition("Make it again: ")[2].strip()
    assert shlex.split(command) == [
        *("remedy", "plan", str(path)),
        *("-o", str(folder / "plan one.json")),
    ]


def test_a_next_step_has_the_inventory_that_was_typed(tmp_path: Path) -> None:
    folder = tmp_path / "my cluster; reboot"
    folder.mkdir()
    path = folder / "inventory.py"
    path.write_text(f"hosts = [{HOST}]\n")
    for words, name in (
        (("rollback", "latest"), "check"),
        (("unlock", "latest"), "check"),
        (("rollback", "r9"), "history"),
    ):
        code, out, err = invoke(*words, path, "--json")
        assert code == 2
        assert f"remedy {name} {shlex.quote(str(path))}" in err
        assert f"remedy {name} {shlex.quote(str(path))}" in json.loads(out)["next_step"]
    code, _, err = invoke("show", "latest", "--home", folder)
    assert (code, "A first run: remedy check INVENTORY" in " ".join(err.split())) == (2, True)
    assert f"is on record in {folder}" in " ".join(err.split())


def test_where_no_inventory_is_typed_a_step_has_the_one_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(
        "RuntimeError: connect() failed: [Errno 113] No route to host\n"
    )
    words = ("diagnose", "train.log")
    assert "Run: remedy diagnose train.log --inventory INVENTORY" in invoke(*words)[1]
    (tmp_path / "inventory.py").write_text(f"hosts = [{HOST}]\n")
    command = "remedy diagnose train.log --inventory inventory.py"
    assert f"Run: {command}" in invoke(*words)[1]
    assert json.loads(invoke(*words, "--json")[1])["command"] == command
    (tmp_path / "empty.log").write_text("x\n")
    assert "remedy verify inventory.py tests the hosts" in " ".join(
        invoke("diagnose", "empty.log")[1].split()
    )
    for call in (("approve", "-"), ("show", "latest")):
        err = invoke(*call, text=text_of(plan()))[2]
        assert "inventory.py" in err
        assert "INVENTORY" not in err


def test_a_step_about_a_plan_file_has_the_inventory_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(text_of(plan()))
    for name, command in (
        ("my site.py", "remedy plan 'my site.py' -o p.json"),
        ("--yes", "remedy plan INVENTORY -o p.json"),  # no name of a file: nobody should type it
    ):
        document["plan"]["inventory"] = name
        (tmp_path / "p.json").write_text(json.dumps(document))
        for call in (("show", "p.json"), ("approve", "p.json")):
            code, _, err = invoke(*call)
            assert (code, f"Make a new one: {command}" in err) == (2, True), err


def test_a_fix_of_a_plan_file_shows_as_it_was_signed_with_the_inventory_beside_it() -> None:
    fix = "If it was restarted on purpose: remedy audit accept INVENTORY"
    finding = record(
        Finding, host="gpu01", remedy="journal", kind=FindingKind.BLOCKED, title="t", fix=fix
    )
    known = plan().model_copy(update={"inventory": "gpus.py", "findings": (finding,)})
    code, out, _ = invoke("show", "-", text=text_of(known))
    assert (code, "remedy audit accept INVENTORY" in out) == (0, True), out
    assert "  In a fix, INVENTORY stands for gpus.py\n" in out


def test_a_password_that_is_piped_in_is_taken_without_words_of_python() -> None:
    line = [sys.executable, "-c", "from remedy.cli import plain; print(plain.password('password'))"]
    result = subprocess.run(
        line,
        input="pw\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        start_new_session=True,
    )
    assert result.stdout == "pw\n"
    assert result.stderr == "password: \n"
