"""Signals in the phases that need no host: loading, connecting, the question, and a reader who has left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.audit import Journal
from remedy.cli import interrupt
from remedy.cli.common import errors_shown
from remedy.errors import UsageError
from remedy.plan import Plan, write_plan
from tests.unit.build import record
from tests.unit.cli.signals_bench import CODES, COMMAND, LONG, SIGNALS


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# The command with less patience, so that nobody has to wait for its end.
QUICK = 0.3
IMPATIENT = f"from remedy.cli import interrupt, main; interrupt.PATIENCE = {QUICK}; main.main()"


def start(
    *words: str | Path, ignoring: int | None = None, command: tuple[str, ...] = (str(COMMAND),)
) -> subprocess.Popen[str]:
    def set_signals() -> None:
        # Below nohup, or in the background of a script, the tests themselves ignore some of them.
        for number in CODES:
            signal.signal(number, signal.SIG_DFL)
        if ignoring is not None:
            signal.signal(ignoring, signal.SIG_IGN)

    return subprocess.Popen(
        [*command, *map(str, words)],
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
    process = start("check", inventory, command=(sys.executable, "-c", IMPATIENT))
    wait_for(begun.exists)
    process.send_signal(signal.SIGTERM)
    time.sleep(QUICK + 0.5)
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
    asked, *rest = text[text.index("Change 1 host") :].replace("\r", "").splitlines()
    assert asked.endswith("[y/N]: ")  # what is said of the end has lines of its own
    assert any("interrupted: " in line for line in rest)


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
