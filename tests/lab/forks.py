"""The command ``remedy``, forked from a process that has imported it: what most tests run on lab hosts.

So is a program (``python -c``) of a test that needs a process of its own because sockets give way to each other
there. Half of what a command costs on a small machine is importing; a suite runs hundreds. A fork has its own
process group, folder, environment and standard streams, and default signals, as a command that a shell starts.
Tests of signals and terminals start the command itself, and so do all with ``--full``.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path

# Where this is set, tests start each command anew.
WHOLE = "REMEDY_TEST_WHOLE_COMMANDS"
LONGEST_REQUEST = 100_000
# What commands import when they come to it.
LATER = (
    *("ClusterShell.NodeSet", "jinja2", "rich.live", "remedy.cli.terminal", "remedy.diagnose"),
    *("remedy.runs.session", "remedy.runs.apply", "remedy.report.proposal"),
    *("remedy.transport.cooperative", "remedy.verify.ladder"),
)


def run(
    command: Sequence[str],
    *,
    stdin: str,
    seconds: float,
    environment: Mapping[str, str],
    folder: Path | None = None,
    forked: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a fork unless ``WHOLE`` is set.

    Args:
        command: as a shell would start it.
        stdin: what it reads.
        seconds: after which it is killed.
        environment: all of it.
        folder: where it runs; None for the current one.
        forked: whether it is ``remedy``, or Python with the text of a program (``-c``).

    Raises:
        subprocess.TimeoutExpired: it had to be killed.
    """
    if not forked or WHOLE in os.environ:
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            start_new_session=True,
            cwd=folder,
            env=dict(environment),
        )
    with ExitStack() as stack:
        source, out, err = (
            stack.enter_context(os.fdopen(os.memfd_create(name), "w+"))
            for name in ("stdin", "stdout", "stderr")
        )
        source.write(stdin)
        source.seek(0)
        mine, other = socket.socketpair()
        stack.enter_context(mine)
        request = json.dumps([list(command), str(folder or Path.cwd()), dict(environment)]).encode()
        with other:
            files = [file.fileno() for file in (other, source, out, err)]
            socket.send_fds(_server(), [request], files)
        mine.settimeout(seconds)
        pid = int(mine.recv(20))
        try:
            status = int(mine.recv(20))
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, seconds) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), *texts)


@cache
def _server() -> socket.socket:
    """Start the process that forks; it ends when this one does."""
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        # Tests may run where something ignores SIGINT, and a fork would inherit that.
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(other.fileno())],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


def _serve(requests: socket.socket) -> list[str]:
    """Answer requests until there are no more; return, in a fork, the command that is to be run."""
    from gevent.monkey import get_original

    from remedy.cli.main import COMMANDS
    from remedy.plan.registry import remedies

    for name in (*(f"remedy.cli.{command}" for command in COMMANDS), *LATER):
        import_module(name)
    remedies()
    gc.freeze()

    fork = get_original("os", "fork")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # gevent, in whoever sends, may have made its sockets such that nothing waits.
    requests.setblocking(True)
    while True:
        request, files, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 4)
        if not request:
            os._exit(0)
        if fork() == 0:
            break
        for file in files:
            os.close(file)
    # The parent of the command, who tells how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.close()
    with socket.socket(fileno=files[0]) as answers:
        answers.setblocking(True)
        command = fork()
        if command:
            answers.send(b"%d" % command)
            answers.send(b"%d" % os.waitpid(command, 0)[1])
            os._exit(0)
    for target, file in enumerate(files[1:]):
        os.dup2(file, target)
        os.close(file)
    os.setsid()
    words, folder, environment = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    return list(words)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, handler)
    sys.argv = _serve(socket.socket(fileno=int(sys.argv[1])))
    # For click, which names the command in its messages.
    __package__ = ""
    if sys.argv[1:2] == ["-c"]:
        (_, _, program, *words) = sys.argv
        sys.argv = ["-c", *words]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        sys.exit()
    from remedy.cli.main import main

    sys.exit(main())
