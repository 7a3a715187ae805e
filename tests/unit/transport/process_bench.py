"""Python text in a process of its own: what it imports makes the sockets of the whole process cooperative."""

from __future__ import annotations

import subprocess
import sys

IMPORT = """
import remedy.transport.cooperative, sys, os, time
from remedy.transport import client
client.install(); client.install()
"""


def in_a_process(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT + text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
