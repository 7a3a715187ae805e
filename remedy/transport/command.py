"""Running one command over a connection: its input is written and its outputs are read at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from gevent.event import Event

from remedy.transport.stages import Stage
from remedy.transport.watch import Watch
from remedy.transport.wrapper import CommandInput, Flood, Marks, Stream

_CHUNK = 1 << 15
# A command may leave a process behind that keeps its output open: after its end, and so many seconds without a
# byte, nothing is waited for. In parts: a controller that is busy with thousands of hosts comes back to each of
# them late, and what has arrived meanwhile is read between two parts.
_LEFT_OPEN, _PARTS = 3.0, 6
# The watch ends what takes too long: paramiko's own limit is an hour.
_NEVER = 86_400.0
_SIGN_OF_LIFE = "keepalive@openssh.com"


@dataclass
class CommandAnswer:
    """What a command printed, as far as it came, and how it ended.

    Args:
        out: its standard output.
        err: its standard error.
        code: its exit status; -1 where a signal ended it or the connection broke, None before its end.
    """

    out: Stream
    err: Stream
    code: int | None = None

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.out.size + self.err.size


def execute(
    client: Any, watch: Watch, command: CommandInput, answer: CommandAnswer, seconds: float
) -> None:
    """Run a command and fill ``answer`` while it prints.

    Args:
        client: a connected client of paramiko.
        watch: learns of each stage, and ends one that takes too long.
        command: what runs, and what it reads.
        answer: is filled also where the watch ends this.
        seconds: how long after the script's begin it must be over.

    Raises:
        EOFError: the connection is broken.
    """
    transport = client.get_transport()
    if transport is None or not transport.is_active():
        raise EOFError("the connection is closed")
    watch.alive = lambda: _sign_of_life(transport)
    watch.enter(Stage.CHANNEL)
    channel = transport.open_session(timeout=_NEVER)
    watch.enter(Stage.COMMAND)
    channel.exec_command(command.line)
    ready = Event()
    if command.password is None:
        ready.set()

    def read(stream: Stream, receive: Any) -> None:
        try:
            while chunk := receive(_CHUNK):
                watch.heard()
                stream.take(chunk)
                _follow(watch, answer, seconds)
                if answer.out.asked or answer.out.script:
                    ready.set()
        except Flood as flood:
            watch.fail(flood)

    def write() -> None:
        ready.wait()
        _write(channel, command.content(with_password=answer.out.asked))

    jobs = [
        gevent.spawn(read, answer.out, channel.recv),
        gevent.spawn(read, answer.err, channel.recv_stderr),
        gevent.spawn(write),
    ]
    try:
        # While the input is written the outputs are read, so that neither side waits for the other with a
        # full pipe. A command that ends does not read the rest of its input.
        answer.code = channel.recv_exit_status()
        _read_on(jobs[:2], answer)
    finally:
        gevent.killall(jobs, block=False)
    if not transport.is_active():
        raise EOFError("the connection broke")
    channel.close()


def _read_on(readers: Sequence[Any], answer: CommandAnswer) -> None:
    """Wait until both outputs are closed, or nothing has come any more for some time."""
    came, silent = answer.size, 0
    while silent < _PARTS and len(gevent.joinall(readers, _LEFT_OPEN / _PARTS)) < len(readers):
        # A timer overtakes the queue of those who are to be woken, the readers among them: get in line.
        gevent.sleep(0)
        silent = silent + 1 if came == answer.size else 0
        came = answer.size


def marked(marks: Marks) -> CommandAnswer:
    """Return an answer that nothing is in yet, of a command that prints ``marks``."""
    return CommandAnswer(Stream(marks.shell, marks.script, marks.ask), Stream(marks.shell))


def _follow(watch: Watch, answer: CommandAnswer, seconds: float) -> None:
    """Enter the stage that the marks show."""
    if watch.stage is not Stage.COMMAND:
        return
    if answer.out.script:
        watch.enter(Stage.OUTPUT, seconds)
    elif answer.out.shell and not watch.sudo:
        watch.sudo = True
        watch.enter(Stage.COMMAND)


def _write(channel: Any, content: bytes) -> None:
    try:
        channel.sendall(content)
        channel.shutdown_write()
    except (OSError, EOFError):
        return  # the command did not read its input to the end; what it printed says why


def _sign_of_life(transport: Any) -> None:
    """Return when the host's sshd has answered; it refuses a request that it does not know, which will do."""
    transport.global_request(_SIGN_OF_LIFE, wait=True)
    if not transport.is_active():
        raise EOFError
