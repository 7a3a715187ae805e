"""Run a command at a terminal of its own, do something at its question, and print how it ended, as JSON.

    python at_a_terminal.py WORDS ACTION COMMAND...

ACTION, once WORDS were shown, is ``signal:NUMBER``, ``type:HEX`` or ``close``. It is a program of its own, for
the process of a test may have the forks and sockets of gevent. ``echoes`` says whether the terminal shows what
is typed when the command has ended.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import termios
import time

LONG = 30.0


def main() -> None:
    """Run the command to its end."""
    words, action, *command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # the tests may run where some are ignored
        os.execv(command[0], command)  # noqa: S606 - the command is the test's own
    text, end = "", time.monotonic() + LONG
    while words not in text and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode()
    # Mostly the answer is waited for by then; a signal between the question and that comes to the same end.
    time.sleep(0.3)
    kind, _, value = action.partition(":")
    if kind == "signal":
        os.kill(child, int(value))
    elif kind == "type":
        os.write(terminal, bytes.fromhex(value))
    else:
        os.close(terminal)
    while kind != "close" and time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            text += os.read(terminal, 65536).decode()
        except OSError:  # how the end of a terminal shows on Linux
            break
    signal.alarm(int(LONG))  # whatever hangs is ended with this process, and fails the test
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    echoes = kind == "close" or bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    sys.stdout.write(json.dumps({"code": code, "text": text, "echoes": echoes}))


if __name__ == "__main__":
    main()
