"""Running a contender's command, measured."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.figures import Sample

MEASURE = Path(__file__).with_name("measure.py")
# Nothing that is compared here takes a quarter of it on 64 hosts; a command that hangs must not hang the rest.
SECONDS = 1800
TAIL_LINES = 20


class BenchmarkError(Exception):
    """A run whose figures would mean nothing; the text says what happened."""


def measured(command: Sequence[str], environment: Mapping[str, str]) -> tuple[Sample, str]:
    """Run a command to its end.

    Its home is an empty folder, so that no settings of the user and no connections that an earlier run kept
    open (ansible keeps them for a minute) have a part in its figures.

    Returns:
        what it took, and what it printed.

    Raises:
        BenchmarkError: it failed, or did not end.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        figures = Path(home) / "figures.json"
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(MEASURE), str(figures), *command],
                env={**environment, "HOME": home},
                cwd=home,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"{command[0]} did not end within {SECONDS} s") from error
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-TAIL_LINES:])
            raise BenchmarkError(f"{' '.join(command)} ended with {done.returncode}:\n{tail}")
        return Sample(**json.loads(figures.read_text(encoding="ascii"))), done.stdout
