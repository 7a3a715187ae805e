"""A command of remedy on a terminal of its own."""

from __future__ import annotations

import re
import select
import shlex
import subprocess
import time
from collections.abc import Sequence

import pytest

from tests.lab.site import RemedyOutput


def on_a_terminal(command: Sequence[str], dialogue: Sequence[tuple[str, str]]) -> RemedyOutput:
    """Run a command on a terminal of its own: wait for each question, then answer it."""
    script = ["script", "--quiet", "--return", "--flush", "--command"]
    process = subprocess.Popen(
        [*script, shlex.join(command), "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    shown = b""
    # A command that waits for something else must not hold up all tests.
    end = time.monotonic() + 240

    assert process.stdin is not None
    assert process.stdout is not None
    output = process.stdout

    def more() -> bytes:
        left = end - time.monotonic()
        if left < 0 or not select.select([output], [], [], left)[0]:
            process.kill()
            pytest.fail(f"nothing more was shown after: {shown.decode(errors='replace')}")
        return output.read(4096)

    for question, answer in dialogue:
        while question.encode() not in shown:
            piece = more()
            assert piece, shown
            shown += piece
        time.sleep(0.2)  # getpass throws away what was typed before it asked
        process.stdin.write(answer.encode() + b"\n")
    while piece := more():
        shown += piece
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
    return RemedyOutput(process.wait(timeout=60), plain, "")
