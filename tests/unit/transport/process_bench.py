"""Python text in a process of its own: what it imports makes the sockets of the whole process cooperative."""

from __future__ import annotations

import os
import sys

from tests.lab import forks

IMPORT = """
import remedy.transport.cooperative, sys, os, time
from remedy.transport import client
client.install(); client.install()
"""


def in_a_process(text: str) -> str:
    command = [sys.executable, "-c", IMPORT + text]
    done = forks.run(command, stdin="", seconds=60, environment=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout
