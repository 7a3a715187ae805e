"""``remedy trust``: the document of ``--json``, with an ssh server on this machine."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.report.schema import schema_of
from tests.unit.cli.signals_bench import CODES, COMMAND, LONG, SIGNALS
from tests.unit.schemas import conforms

# Shows its key and proves it; nobody can log in.
SERVER = """
import socket, sys, paramiko
key = paramiko.Ed25519Key(filename=sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    transport = paramiko.Transport(connection)
    transport.add_server_key(key)
    try:
        transport.start_server(server=paramiko.ServerInterface())
    except Exception:
        pass
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """The port of an ssh server, and the fingerprint of its key."""
    key = tmp_path_factory.mktemp("server") / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{key}.pub"], capture_output=True, text=True, check=True
    )
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(key)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), shown.stdout.split()[1]
    finally:
        process.kill()
        process.wait()


def trust(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    result = CliRunner().invoke(main, ["trust", str(folder / "inventory.py"), "--json", *words])
    document = json.loads(result.stdout)
    assert conforms(document, schema_of("trust"), schema_of("trust")), document
    return result.exit_code, document, result.stderr


@pytest.fixture
def known(tmp_path: Path, server: tuple[int, str]) -> Path:
    """The file of known keys of an inventory with that server as its one host."""
    known = tmp_path / "known"
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": server[0], "ssh_known_hosts_file": str(known)}
    (tmp_path / "inventory.py").write_text(f"hosts = [('gpu01', {data!r})]\n")
    return known


def test_without_consent_the_document_has_the_fingerprints_and_nothing_is_recorded(
    known: Path, server: tuple[int, str]
) -> None:
    code, document, shown = trust(known.parent)
    host = document["hosts"]["gpu01"]
    assert (code, document["exit_code"]) == (2, 2)
    assert document["inventory"] == str(known.parent / "inventory.py")
    assert (host["state"], host["recorded"], host["error"]) == ("new", False, None)
    assert any(server[1] in line for line in host["fingerprints"])
    assert document["error"] == "consent is needed, and standard input is no terminal"
    assert document["next_step"].endswith("run the command again with --yes.")
    assert (document["files"], known.exists()) == ([], False)
    assert server[1] in shown


def test_a_key_is_recorded_then_known_and_refused_once_it_changed(known: Path) -> None:
    code, document, _ = trust(known.parent, "--yes")
    assert (code, document["exit_code"], document["error"]) == (0, 0, None)
    assert document["hosts"]["gpu01"]["recorded"]
    assert document["files"] == [str(known)]
    code, document, _ = trust(known.parent)
    host = document["hosts"]["gpu01"]
    assert (code, host["state"], host["recorded"], document["files"]) == (0, "known", False, [])
    place, kind, _ = known.read_text().split()[:3]
    other = "AAAAC3NzaC1lZDI1NTE5AAAAIEl1HvHH0ZJ5M6t4Wq8hH3yJrGkqcQy3gfS5hGHKnCkL"
    known.write_text(f"{place} {kind} {other}\n")
    code, document, _ = trust(known.parent, "--yes")
    host = document["hosts"]["gpu01"]
    assert (code, host["state"], host["recorded"]) == (4, "changed", False)
    assert document["error"] == "the key of gpu01 has changed and was not recorded"
    assert "--replace gpu01" in document["next_step"]
    code, document, _ = trust(known.parent, "--yes", "--replace", "gpu01")
    assert (code, document["hosts"]["gpu01"]["recorded"]) == (0, True)


def interrupted(
    folder: Path, number: int, *command: str, ready: socket.socket | None = None
) -> dict[str, Any]:
    """Start the command, send it the signal when it comes to ``ready``, and return its one document."""

    def set_signals() -> None:
        for each in CODES:
            signal.signal(each, signal.SIG_DFL)

    process = subprocess.Popen(
        [*command, "trust", "inventory.py", "--json", "--yes"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=set_signals,
    )
    try:
        if ready is not None:
            ready.settimeout(LONG)
            connection, _ = ready.accept()
            process.send_signal(number)
        out, err = process.communicate(timeout=LONG)
        if ready is not None:
            connection.close()
    finally:
        process.kill()
    assert process.returncode == 128 + number, err
    document: dict[str, Any] = json.loads(out)
    assert conforms(document, schema_of("error"), schema_of("error")), document
    assert document["exit_code"] == 128 + number
    assert document["error"].startswith("interrupted: ")
    assert document["commands"] == [{"purpose": "go on", "command": "remedy trust inventory.py"}], (
        document
    )
    return document


@SIGNALS
def test_a_signal_while_keys_are_read_leaves_one_document(
    tmp_path: Path, number: signal.Signals
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        data = {"ssh_hostname": "127.0.0.1", "ssh_port": silent.getsockname()[1]}
        (tmp_path / "inventory.py").write_text(f"hosts = [('gpu01', {data!r})]\n")
        document = interrupted(tmp_path, number, str(COMMAND), ready=silent)
    assert document["known"] == ["no key was recorded"]


# What is at work when the signal comes makes an error of its own of it.
TURNED = """
import os, sys, time
from remedy.cli import main, trust
from remedy.errors import RemedyError
from remedy.trust import HostKeys, KeyState

def record(reader, names, replaced, progress, *, yes):
    progress.hosts["gpu01"] = HostKeys("gpu01", KeyState.NEW)
    progress.recorded.append("gpu01")
    try:
        os.kill(os.getpid(), int(sys.argv.pop(1)))
        time.sleep(9)
    except BaseException as error:
        raise RemedyError("lost", next_step="Try again.") from error

trust._recorded = record
main.main()
"""


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGTERM]
)
def test_an_error_that_was_a_signal_is_one_document_as_well(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "inventory.py").write_text("hosts = [('gpu01', {'ssh_hostname': '127.0.0.1'})]\n")
    (tmp_path / "turned.py").write_text(TURNED.replace("sys.argv.pop(1)", str(int(number))))
    document = interrupted(tmp_path, number, sys.executable, str(tmp_path / "turned.py"))
    assert document["known"] == ["recorded so far: gpu01"]
