"""What a host is sent, and when: its side is a real sh, with a sudo that asks or does not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.subprocess import PIPE, Popen

from remedy.spec import SshSpec
from remedy.transport import command as module
from remedy.transport.command import CommandAnswer, execute, marked
from remedy.transport.script import Root, Script
from remedy.transport.watch import AwakeClock, Watch
from remedy.transport.wrapper import NO_SUDO, Marks, command_line

PASSWORD = "s3cret"
TEXT = "echo out; id -u"
FREE = 'while [ "$1" != true ] && [ "$1" != timeout ]; do shift; done; exec "$@"'
GUARDED = (
    f'case "$*" in *-S*) IFS= read -r p; [ "$p" = {PASSWORD} ] || {{ echo sorry >&2; exit 1; }};; '
    f"*) exit 1;; esac; {FREE}"
)
STUBBORN = "exit 1"


class Wire:
    """A connection with one channel to a shell of this machine; keeps all that is written, read or not.

    Args:
        path: the only folder with programs.
    """

    def __init__(self, path: Path) -> None:
        self.sent = b""
        self._path = path

    def get_transport(self) -> Wire:
        return self

    def is_active(self) -> bool:
        return True

    def open_session(self, **_: float) -> Wire:
        return self

    def exec_command(self, line: str) -> None:
        self._shell: Any = Popen(
            ["/bin/sh", "-c", line],
            bufsize=0,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={"PATH": str(self._path)},
        )

    def recv(self, size: int) -> bytes:
        answer: bytes = self._shell.stdout.read(size)
        return answer

    def recv_stderr(self, size: int) -> bytes:
        answer: bytes = self._shell.stderr.read(size)
        return answer

    def sendall(self, content: bytes) -> None:
        self.sent += content
        self._shell.stdin.write(content)

    def shutdown_write(self) -> None:
        self._shell.stdin.close()

    def recv_exit_status(self) -> int:
        answer: int = self._shell.wait()
        return answer

    def close(self) -> None:
        return


class LateWire(Wire):
    """A connection whose output is on its way when the command ends, and a controller that is busy."""

    def recv(self, size: int) -> bytes:
        gevent.sleep(0.05)
        for _ in range(4):  # from the socket through the queues of a connection
            gevent.sleep(0)
        return super().recv(size)

    def recv_exit_status(self) -> int:
        status = super().recv_exit_status()
        # As thousands of hosts that answer at the same time: one blow, and a long queue for a while.
        gevent.spawn(time.sleep, 0.5)
        for _ in range(300):
            gevent.spawn(_busy, time.monotonic() + 3)
        return status


def _busy(until: float) -> None:
    while time.monotonic() < until:
        time.sleep(0.001)
        gevent.sleep(0)


def sent_to(
    tools: Path,
    sudo: str,
    password: str | None = PASSWORD,
    root: Root = Root.REQUIRED,
    *,
    user: str = "1000",
    is_root: bool = False,
    wires: type[Wire] = Wire,
) -> tuple[bytes, CommandAnswer]:
    """Return what a host is sent whose sudo is this program, and what it answers."""
    for name, text in (("sudo", sudo), ("id", f"echo {user}")):
        if text:
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
    marks = Marks()
    answer = marked(marks)
    command = command_line(Script(TEXT, 20, root), marks, is_root=is_root, password=password)
    wire = wires(tools)
    with gevent.Timeout(20):
        execute(wire, Watch("host", SshSpec(), AwakeClock()), command, answer, 20)
    return wire.sent, answer


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for name in ("sh", "timeout", "cat", "tr", "true"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    return tmp_path


def test_a_sudo_that_asks_for_none_costs_no_password(tools: Path) -> None:
    sent, answer = sent_to(tools, FREE)
    assert (sent, answer.out.text, answer.code) == (TEXT.encode(), "out\n1000", 0)


@pytest.mark.parametrize("root", [Root.REQUIRED, Root.PREFERRED])
def test_a_sudo_that_asks_gets_the_password_first(tools: Path, root: Root) -> None:
    sent, answer = sent_to(tools, GUARDED, root=root)
    assert sent == f"{PASSWORD}\n{TEXT}".encode()
    assert (answer.out.text, answer.code) == ("out\n1000", 0)


def test_a_wrong_password_is_answered_in_words(tools: Path) -> None:
    sent, answer = sent_to(tools, GUARDED, password="another")
    assert sent.startswith(b"another\n")
    assert (answer.err.text, answer.code) == ("remedy: sorry", 1)


def test_without_sudo_nothing_at_all_is_sent(tools: Path) -> None:
    sent, answer = sent_to(tools, "")
    assert (sent, answer.code) == (b"", 1)
    assert NO_SUDO in answer.err.text


@pytest.mark.parametrize(
    "case", ["no sudo, root preferred", "already root", "root user", "no root"]
)
def test_who_needs_no_sudo_gets_the_script_alone(tools: Path, case: str) -> None:
    root = {"no sudo, root preferred": Root.PREFERRED, "no root": Root.NO}.get(case, Root.REQUIRED)
    user = "0" if case == "already root" else "1000"
    sudo = "" if case.startswith("no sudo") else GUARDED
    sent, answer = sent_to(tools, sudo, root=root, user=user, is_root=case == "root user")
    assert (sent, answer.code) == (TEXT.encode(), 0)


@pytest.mark.parametrize("sudo", [FREE, STUBBORN, GUARDED, ""])
def test_without_a_password_nothing_is_waited_for(tools: Path, sudo: str) -> None:
    """A shell that says nothing before it has read all of its input, gets it."""
    sent, _ = sent_to(tools, sudo, password=None)
    assert sent == TEXT.encode()


def test_a_busy_controller_reads_what_has_come_by_the_end_of_a_command(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEFT_OPEN", 0.3)
    _, answer = sent_to(tools, FREE, wires=LateWire)
    assert (answer.out.text, answer.code) == ("out\n1000", 0)
