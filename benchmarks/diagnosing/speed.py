"""Speed and memory on a long log of ordinary training output, beside grep -F -f with the same literals.

Speed is that of the whole command, its start included. Processor seconds count, so that other work on the
machine weighs less.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.diagnosing import ordinary
from benchmarks.harness.figures import Spread, ratio
from remedy.diagnose.scanner.scan import index

ROUNDS = 3
LEAST_MB_S, MOST_MB, MOST_TIMES_GREP = 150, 100, 0.4
_DIAGNOSE = (sys.executable, "-m", "remedy", "diagnose", "--json")


def measure(megabytes: int) -> dict[str, Any]:
    """Measure; the log lies in a folder that is removed afterwards."""
    prepared = index()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        literals = Path(folder) / "literals"
        different = ordinary.write(log, megabytes)
        literals.write_bytes(b"\n".join(prepared.literals) + b"\n")
        line = Path(folder) / "line.log"
        line.write_text("step 1 loss 2.5\n", encoding="utf-8")
        starts = [_run([*_DIAGNOSE, str(line)])["cpu"] for _ in range(ROUNDS)]
        runs = [_run([*_DIAGNOSE, str(log)]) for _ in range(ROUNDS)]
        greps = [_run(["grep", "-c", "-F", "-f", str(literals), str(log)]) for _ in range(ROUNDS)]
    speeds = Spread.of([megabytes / run["cpu"] for run in runs])
    times_grep = ratio([run["cpu"] for run in runs], [run["cpu"] for run in greps])
    return {
        "megabytes": megabytes,
        "different_megabytes": different,
        "literals": len(prepared.literals),
        "rounds": ROUNDS,
        "mb_per_second": speeds.text(0),
        "start_seconds": round(min(starts), 2),
        "memory_mb": round(max(run["memory"] for run in runs)),
        "times_grep": times_grep.text(),
        "good": bool(
            speeds.median >= LEAST_MB_S
            and max(run["memory"] for run in runs) <= MOST_MB
            and times_grep.median <= MOST_TIMES_GREP
        ),
    }


def table(figures: dict[str, Any]) -> str:
    """Return the figures for reading."""
    return "\n".join(f"{name:28}{value}" for name, value in figures.items())


def good_enough(figures: dict[str, Any]) -> bool:
    """Return whether speed, memory and the comparison with grep are within their limits."""
    return bool(figures["good"])


def _run(command: list[str]) -> dict[str, float]:
    """Run a command; return its processor seconds and the most memory it had, in MB."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        began = time.monotonic()
        environment = {**os.environ, "LC_ALL": "C"}
        # Not to /dev/null: there grep stops at its first hit.
        subprocess.run(command, stdout=subprocess.PIPE, check=False, env=environment)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024} {time.monotonic() - began}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        cpu, memory, wall = (float(word) for word in pipe.read().split())
    os.waitpid(child, 0)
    return {"cpu": cpu, "memory": memory, "wall": wall}
