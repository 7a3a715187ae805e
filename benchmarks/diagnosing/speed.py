"""Speed and memory on a long log of ordinary training output, beside grep -F -f with the same literals."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.diagnosing import ordinary
from remedy.diagnose.scan import index

ROUNDS = 3
LEAST_MB_S, MOST_MB, MOST_TIMES_GREP = 200, 100, 3.0
_DIAGNOSE = (
    "import sys; from remedy.diagnose import diagnose_paths as d; print(d([sys.argv[1]]).label)"
)
_IDLE = "import sys; from remedy.diagnose.scan import index; index()"


def measure(megabytes: int) -> dict[str, Any]:
    """Measure; the log lies in a folder that is removed afterwards.

    Args:
        megabytes: how long the log is.
    """
    ready = index()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        literals = Path(folder) / "literals"
        ordinary.write(log, megabytes)
        literals.write_bytes(b"\n".join(ready.literals) + b"\n")
        idle = _run([sys.executable, "-c", _IDLE])
        runs = [_run([sys.executable, "-c", _DIAGNOSE, str(log)]) for _ in range(ROUNDS)]
        greps = [_run(["grep", "-c", "-F", "-f", str(literals), str(log)]) for _ in range(ROUNDS)]
    cpu, grep = median(r["cpu"] for r in runs), median(g["cpu"] for g in greps)
    return {
        "megabytes": megabytes,
        "literals": len(ready.literals),
        "cpu_seconds": round(cpu, 2),
        "start_seconds": round(idle["cpu"], 2),
        "mb_per_second": round(megabytes / (cpu - idle["cpu"])),
        "mb_per_second_with_start": round(megabytes / cpu),
        "memory_mb": round(max(r["memory"] for r in runs)),
        "grep_cpu_seconds": round(grep, 2),
        "times_grep": round(cpu / grep, 2),
    }


def table(figures: dict[str, Any]) -> str:
    """Return the figures for reading."""
    return "\n".join(f"{name:28}{value}" for name, value in figures.items())


def good_enough(figures: dict[str, Any]) -> bool:
    """Whether what is promised is kept."""
    return bool(
        figures["mb_per_second"] >= LEAST_MB_S
        and figures["memory_mb"] <= MOST_MB
        and figures["times_grep"] <= MOST_TIMES_GREP
    )


def _run(command: list[str]) -> dict[str, float]:
    """Run a command; return its processor seconds and the most memory it had, in MB."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        began = time.monotonic()
        environment = {**os.environ, "LC_ALL": "C"}
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=environment)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024} {time.monotonic() - began}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        cpu, memory, wall = (float(word) for word in pipe.read().split())
    os.waitpid(child, 0)
    return {"cpu": cpu, "memory": memory, "wall": wall}
