"""Run a command and write what it took to a file, as JSON.

Usage: python measure.py FILE COMMAND [ARGUMENT...]

A process of its own, and a small one: the kernel hands the peak memory of whoever starts a program on to
that program (getrusage(2), ru_maxrss, is not cleared by execve).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main(file: str, *command: str) -> int:
    """Return the command's exit status, 128 + N when signal N ended it."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    figures = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }
    Path(file).write_text(json.dumps(figures), encoding="ascii")
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
