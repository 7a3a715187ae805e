"""Signals in the phases that need no host: loading, connecting, the question, and a reader who has left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.audit import Journal
from remedy.audit.journal import FILE_NAME, read_records
from remedy.audit.story import read_stories
from remedy.cli import interrupt
from remedy.cli.common import errors_shown
from remedy.cli.interrupt import PATIENCE
from remedy.errors import UsageError
from remedy.plan import Plan, write_plan
from remedy.runs.activity import Activity, interrupted
from remedy.transport import HostEvent
from tests.unit.build import record

COMMAND = Path(sysconfig.get_path("scripts")) / "remedy"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# They go one way: one stands for them wherever commands are started for it.
SIGNALS = pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number, id=number.name, marks=() if number is signal.SIGINT else pytest.mark.full
        )
        for number in CODES
    ],
)
DONE = HostReport("", {"01-x": ChangeResult(id="01-x", status=ChangeStatus.DONE)}, finished=True)
LONG = 30


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (["connecting"], "nothing is known to have begun there"),
        (["connecting", "changing"], "a script may be at work there"),
        (["connecting", "changing", "connecting"], "a script may be at work there"),
        # Guarded changes are confirmed over a new connection.
        (["changing", "answered", "confirming", "connecting"], "not known to be confirmed"),
        (["confirming", "reverting", "connecting"], "takes its guarded changes back"),
    ],
)
def test_a_new_connection_takes_back_nothing_that_is_known(stages: list[str], words: str) -> None:
    activity = Activity(run="r", planned=("a", "b"), at_work=("a",))
    for stage in stages:
        activity.hear(HostEvent("a", stage))
    (known,) = (text for text, hosts in activity.known().items() if hosts == ["a"])
    assert words in known
    end = interrupted(activity, signal="SIGINT", code=130, inventory="i.py", guard_seconds=60)
    guarded = any("is taken back in 60 s" in line for line in end.lines)
    assert guarded == ("confirming" in stages and "reverting" not in stages)


def start(*words: str | Path, ignoring: int | None = None) -> subprocess.Popen[str]:
    def set_signals() -> None:
        # Below nohup, or in the background of a script, the tests themselves ignore some of them.
        for number in CODES:
            signal.signal(number, signal.SIG_DFL)
        if ignoring is not None:
            signal.signal(ignoring, signal.SIG_IGN)

    return subprocess.Popen(
        [str(COMMAND), *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=set_signals,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        out, err = process.communicate(timeout=LONG)
    finally:
        process.kill()
    assert "Traceback" not in out + err, out + err
    return process.returncode, out + err


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@SIGNALS
def test_while_the_inventory_is_read(tmp_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep({LONG})\nhosts = []\n"
    )
    process = start("check", inventory)
    wait_for(begun.exists)
    process.send_signal(number)
    code, text = ended(process)
    assert code == CODES[number]
    assert text.startswith("interrupted: ")


@SIGNALS
def test_while_hosts_are_read(tmp_path: Path, silent_port: int, number: signal.Signals) -> None:
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f'hosts = [("gpu01", {{"ssh_hostname": "127.0.0.1", "ssh_port": {silent_port}}})]\n'
    )
    process = start("apply", inventory, "--yes", "-v")
    assert process.stderr is not None
    while "connecting" not in process.stderr.readline():
        pass
    process.send_signal(number)
    code, text = ended(process)
    assert code == CODES[number]
    assert "while: Reading 1 host" in text
    assert "nothing was changed on any host" in text


@SIGNALS
def test_a_signal_that_comes_twice_says_nothing_less(
    tmp_path: Path, silent_port: int, number: signal.Signals
) -> None:
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f'hosts = [("gpu01", {{"ssh_hostname": "127.0.0.1", "ssh_port": {silent_port}}})]\n'
    )
    process = start("apply", inventory, "--yes", "-v")
    assert process.stderr is not None
    while "connecting" not in process.stderr.readline():
        pass
    for _ in range(3):
        process.send_signal(number)
        time.sleep(0.01)
    code, text = ended(process)
    assert (code, "nothing was changed on any host" in text) == (CODES[number], True), text


@pytest.mark.parametrize("command", ["trust", "check"])
def test_while_hosts_are_asked_by_any_command(
    tmp_path: Path, silent_port: int, command: str
) -> None:
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f'hosts = [("gpu01", {{"ssh_hostname": "127.0.0.1", "ssh_port": {silent_port}}})]\n'
    )
    process = start(command, inventory)
    wait_for(lambda: has_connection(silent_port))
    process.send_signal(signal.SIGTERM)
    code, text = ended(process)
    assert (code, "interrupted: SIGTERM" in text) == (143, True), text
    assert ("no key was recorded" in text) is (command == "trust")


def has_connection(port: int) -> bool:
    """Say whether somebody has connected to a port of this machine (proc(5): state 01, in hexadecimal)."""
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(line.split()[1].endswith(f":{port:04X}") and " 01 " in line for line in lines)


@SIGNALS
def test_a_command_that_does_not_heed_a_signal_is_ended_by_the_next(
    tmp_path: Path, number: signal.Signals
) -> None:
    begun = tmp_path / "begun"
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f"import time\nfor _ in range({LONG}):\n    try:\n        open({str(begun)!r}, 'w').close()\n"
        "        time.sleep(1)\n    except BaseException:\n        pass\n"
    )
    process = start("check", inventory)
    wait_for(begun.exists)
    process.send_signal(signal.SIGTERM)
    time.sleep(PATIENCE + 0.5)
    assert process.poll() is None
    process.send_signal(number)
    code, text = ended(process)
    assert (code, f"remedy history {inventory}" in text) == (CODES[number], True), text


def test_a_signal_that_a_library_drops_comes_again(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f"import time\nopen({str(begun)!r}, 'w').close()\ntry:\n    time.sleep({LONG})\n"
        f"except BaseException:\n    pass\ntime.sleep({LONG})\n"
    )
    process = start("check", inventory)
    wait_for(begun.exists)
    process.send_signal(signal.SIGTERM)
    code, text = ended(process)
    assert (code, text) == (143, "interrupted: SIGTERM\n")


# Where a signal may come while no command of remedy is there to take it: before it is known, and after its end.
EDGES = ("click.Group.make_context", "plain.forget_unwritten")
AT_AN_EDGE = """
import os, sys
import click
from remedy.cli import plain
from remedy.cli.main import main
owner, _, name = sys.argv[1].rpartition(".")
owner = eval(owner)
kept = getattr(owner, name)
def interrupted(*args, **options):
    os.kill(os.getpid(), int(sys.argv[2]))
    return kept(*args, **options)
setattr(owner, name, interrupted)
main(["explain", "hostname"])
"""


@SIGNALS
@pytest.mark.parametrize("edge", EDGES)
def test_before_a_command_is_known_and_after_it_has_ended(
    edge: str, number: signal.Signals
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_AN_EDGE, edge, str(number.value)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert (done.returncode, done.stderr.splitlines()) == (
        CODES[number],
        [f"interrupted: {interrupt.NAMES[number]}"],
    ), done.stderr


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("from a library"), OSError(5, "x")])
def test_what_a_library_makes_of_a_signal_is_the_signal(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(interrupt, "_reporting", [])
    monkeypatch.setattr(interrupt, "_received", [signal.SIGTERM])
    assert interrupt.number_of(error) == signal.SIGTERM
    assert interrupt.number_of(SystemExit(0)) is None
    with pytest.raises(UsageError), errors_shown():
        raise UsageError("made of a signal")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        f"import time, os\nopen({str(begun)!r}, 'w').close()\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.02)\nhosts = []\n"
    )
    process = start("check", inventory, ignoring=signal.SIGHUP)
    wait_for(begun.exists)
    process.send_signal(signal.SIGHUP)
    go_on.touch()
    code, text = ended(process)
    assert (code, "interrupted" in text) == (2, False)


def at_the_question(folder: Path, action: str, **environment: str) -> tuple[int, str]:
    """Do something at the question of a command that has a terminal of its own."""
    inventory = folder / "inventory.py"
    inventory.write_text('hosts = ["gpu01", "gpu02"]\n')
    bench, asking = (Path(__file__).with_name(name) for name in ("at_a_terminal.py", "asking.py"))
    question = "Change 1 host, 1 not reachable?"
    words = [question, action, sys.executable, "-m", f"tests.unit.cli.{asking.stem}"]
    done = subprocess.run(
        [sys.executable, str(bench), *words, "apply", str(inventory)],
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * LONG,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
    )
    answer = json.loads(done.stdout)
    assert question in answer["text"]
    assert "Traceback" not in answer["text"]
    assert not (folder / ".remedy").exists()
    return answer["code"], answer["text"]


@SIGNALS
def test_at_the_question(tmp_path: Path, number: signal.Signals) -> None:
    code, text = at_the_question(tmp_path, f"signal:{number.value}")
    assert code == CODES[number]
    assert "nothing was changed on any host" in text


def test_a_signal_between_the_question_and_the_read_of_its_answer(tmp_path: Path) -> None:
    code, text = at_the_question(tmp_path, f"signal:{signal.SIGTERM.value}", DEAF="1")
    assert (code, "nothing was changed on any host" in text) == (143, True)


@pytest.mark.parametrize(
    ("action", "expected", "words"),
    [
        pytest.param("type:03", 130, "Ctrl-C", marks=pytest.mark.full),
        ("type:04", 4, "not confirmed; nothing was changed"),  # the end of the input
        pytest.param("close", 129, "", marks=pytest.mark.full),
    ],
)
def test_at_the_question_by_its_terminal(
    tmp_path: Path, action: str, expected: int, words: str
) -> None:
    code, text = at_the_question(tmp_path, action)
    assert (code, words in text) == (expected, True)


@SIGNALS
def test_while_ssh_keygen_asks_for_a_passphrase(tmp_path: Path, number: signal.Signals) -> None:
    key, plan = tmp_path / "key", tmp_path / "plan.json"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(key)]
    subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    write_plan(record(Plan), plan)
    bench = Path(__file__).with_name("at_a_terminal.py")
    signing = [
        sys.executable,
        "-m",
        "tests.unit.cli.signing",
        "approve",
        str(plan),
        "--key",
        str(key),
    ]
    done = subprocess.run(
        [sys.executable, str(bench), "passphrase", f"signal:{number.value}", *signing],
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * LONG,
        cwd=Path(__file__).parents[3],
    )
    answer = json.loads(done.stdout)
    assert (answer["code"], answer["echoes"]) == (CODES[number], True), answer["text"]
    assert "passphrase" in answer["text"]
    assert "Traceback" not in answer["text"]
    assert not list(tmp_path.glob("*.sig"))


def history(folder: Path, runs: int) -> Path:
    inventory = folder / "inventory.py"
    inventory.write_text("hosts = []\n")
    for number in range(runs):
        Journal(folder / ".remedy", run=f"r{number}", mode="apply").write("planned", by="b" * 5000)
    return inventory


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path: Path) -> None:
    inventory = history(tmp_path, 40)  # more than a pipe holds
    process = start("history", inventory)
    assert process.stdout is not None
    process.stdout.close()
    code = process.wait(timeout=LONG)
    assert process.stderr is not None
    assert (code, process.stderr.read()) == (141, "")


@pytest.mark.parametrize(("words", "expected"), [(["--help"], 141), (["check"], 2)])
def test_a_reader_that_leaves_before_a_command_is_known(words: list[str], expected: int) -> None:
    """The help, and what is wrong with a command line; what a wrong one exits with stays its code."""
    done = subprocess.run(
        ["bash", "-c", '"$0" "$@" 2>&1 | true; exit ${PIPESTATUS[0]}', str(COMMAND), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert (done.returncode, done.stdout + done.stderr) == (expected, "")


def activity(home: Path, *, mode: str = "apply", of: str = "") -> Activity:
    journal = Journal(home, run="r1", mode=mode)
    journal.write("planned", by="ann@ops", changes={"gpu01": ["t"], "gpu02": ["t"], "gpu03": ["t"]})
    return Activity(mode, "r1", of, ("gpu01", "gpu02", "gpu03"), journal=journal)


def words_of(state: Activity) -> str:
    report = interrupted(
        state, signal="SIGTERM", code=143, inventory="inventory.py", guard_seconds=60
    )
    lines = [*report.lines, *(f"{purpose}: {command}" for purpose, command in report.commands)]
    return "\n".join(lines)


def test_a_run_that_had_begun_says_what_is_known_of_each_host(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.at_work = ("gpu02", "gpu03")
    state.reports = {"gpu01": DONE}
    state.steps = {"gpu02": "changing", "gpu03": "confirming"}
    text = words_of(state)
    for words in (
        "gpu01: changed",
        "gpu02: a script may be at work there",
        "gpu03: changed, and not known to be confirmed",
        "gpu03: what is guarded there is taken back in 60 s",
        "what the hosts noted: remedy show r1 --inventory inventory.py",
        "go on: remedy apply inventory.py --resume r1",
        "take it back: remedy rollback r1 inventory.py",
    ):
        assert words in text
    story = read_stories(tmp_path / FILE_NAME)["r1"]
    assert story.exit_code == 143
    assert story.hosts == {"gpu01": "changed", "gpu02": "not known", "gpu03": "not known"}


def test_a_rollback_of_some_remedies_goes_on_with_these(tmp_path: Path) -> None:
    state = activity(tmp_path, mode="rollback", of="r0")
    state.at_work, state.choice = ("gpu02",), "--only hosts_file"
    assert "go on: remedy rollback r0 inventory.py --only hosts_file" in words_of(state).split("\n")


def test_a_wave_whose_proof_did_not_end_is_proved_before_the_run_goes_on(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.reports, state.unproved = {"gpu01": DONE}, ("gpu01",)
    lines = words_of(state).splitlines()
    assert "gpu01: changed; the proof of its wave did not end" in lines
    prove, go_on = (
        "prove it: remedy verify inventory.py",
        "go on: remedy apply inventory.py --resume r1",
    )
    assert lines.index(prove) < lines.index(go_on)
    assert read_stories(tmp_path / FILE_NAME)["r1"].hosts["gpu01"] == "changed"


def test_a_red_wave_that_is_taken_back_is_a_part_of_its_run(tmp_path: Path) -> None:
    outer = activity(tmp_path)
    outer.reports, outer.unproved = {"gpu01": DONE}, ("gpu01",)
    outer.at_work = ("gpu01",)
    journal = Journal(tmp_path, run="r2", mode="rollback")
    journal.write("planned", by="ann@ops", of="r1", changes={"gpu01": ["t"]})
    state = Activity("rollback", "r2", "r1", ("gpu01",), at_work=("gpu01",), journal=journal)
    state.outer = outer
    lines = words_of(state).splitlines()
    assert lines[:3] == [
        "run r1: recorded as interrupted",
        "run r2: recorded as interrupted",
        "run r2 takes a wave of run r1 back, whose proof failed",
    ]
    for words in (
        "gpu01: a script may be at work there, and then ends its changes within two minutes",
        "gpu[02-03]: not begun",
        "what the hosts noted: remedy show r1 --inventory inventory.py",
        "go on: remedy rollback r1 inventory.py",
    ):
        assert words in lines
    ends = {run: story.hosts for run, story in read_stories(tmp_path / FILE_NAME).items()}
    assert ends == {
        "r1": {"gpu01": "not known", "gpu02": "not reached", "gpu03": "not reached"},
        "r2": {"gpu01": "not known"},
    }


def test_a_red_wave_that_was_taken_back_is_not_called_changed(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.reports, state.unproved = {"gpu01": DONE}, ("gpu01",)
    state.taken_back, state.tested = {"gpu01": "r2"}, ("gpu01", "gpu02")
    text = words_of(state)
    assert "gpu01: taken back by run r2, because the proof of its wave failed" in text
    assert "gpu[01-02]: what the verification has at work there ends by itself" in text
    assert "--resume" not in text  # it would be refused
    assert read_stories(tmp_path / FILE_NAME)["r1"].hosts["gpu01"] == "failed"


@pytest.mark.parametrize(
    ("mode", "of", "command"),
    [
        ("apply", "", "prove it: remedy verify inventory.py"),
        ("rollback", "r0", "go on: remedy rollback r0 inventory.py"),
    ],
)
def test_the_command_that_goes_on(tmp_path: Path, mode: str, of: str, command: str) -> None:
    state = activity(tmp_path, mode=mode, of=of)
    state.reports = dict.fromkeys(state.planned, DONE)
    assert command in words_of(state)


def test_before_the_first_host_there_is_nothing_to_take_back(tmp_path: Path) -> None:
    text = words_of(activity(tmp_path))
    assert "nothing was changed on any host" in text
    assert "rollback" not in text


def test_what_was_settled_before_the_run_is_not_called_nothing() -> None:
    waited = "changes of run r0 waited: taken back before anything else"
    state = Activity(settled={"gpu01": (waited, "r0")})
    answer = "was asked to take them back; its answer is not known"
    state.requests = dict.fromkeys(("gpu02", "gpu03"), (answer, "r0"))
    text = words_of(state).splitlines()
    assert text == [
        "gpu01: changes of run r0 waited: taken back before anything else",
        "gpu[02-03]: was asked to take them back; its answer is not known",
        "nothing else was changed on any host",
        "what the hosts noted: remedy show r0 --inventory inventory.py",
        "take it back: remedy rollback r0 inventory.py",
    ]


def test_an_unlock_that_was_cut_off_goes_on_with_itself() -> None:
    state = Activity("unlock", "r0", requests={"gpu01": ("was asked to release it", "r0")})
    assert "go on: remedy unlock r0 inventory.py" in words_of(state)


def test_a_run_that_had_ended_is_not_ended_twice(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.ended = True
    assert "had ended" in words_of(state)
    assert [entry.body["event"] for entry in read_records(tmp_path / FILE_NAME)] == ["planned"]


def test_an_end_that_cannot_be_recorded_is_no_reason_to_say_less(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.at_work = ("gpu01",)
    (tmp_path / "head").write_text(json.dumps({"journal": "x", "seq": 99, "hash": "y"}))
    text = words_of(state)
    assert "its end is not recorded" in text
    assert "go on: remedy apply" in text
