"""Speed and memory on a long log of ordinary training output, beside grep -F -f with the same literals."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.diagnosing import ordinary
from remedy.diagnose.engine import make_finder
from remedy.diagnose.scan import index

ROUNDS = 3
LEAST_MB_S, MOST_MB, MOST_TIMES_GREP = 200, 100, 3.0
_SAMPLE = 32 << 20
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
        with log.open("rb") as file:
            sample = file.read(_SAMPLE)
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
        "engines_mb_per_second": _engines(sample, ready.literals),
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


def _engines(sample: bytes, literals: tuple[bytes, ...]) -> dict[str, float]:
    """Measure every engine that is installed on a part of the log; one is 0 where it is not."""
    one_pattern = b"|".join(map(re.escape, sorted(literals)))
    by_re = re.compile(one_pattern)

    def per_line(block: bytes) -> int:
        return sum(1 for line in block.split(b"\n") if by_re.search(line))

    makers: dict[str, Callable[[], Callable[[bytes], object]]] = {
        "remedy's own choice": lambda: _counted(make_finder(literals)),
        "standard library, find": lambda: lambda block: sum(map(block.count, literals)),
        "re, one alternation": lambda: lambda block: sum(1 for _ in by_re.finditer(block)),
        "re, line by line": lambda: per_line,
        "google-re2": lambda: _re2(one_pattern),
        "hyperscan": lambda: _hyperscan(literals),
        "pyahocorasick": lambda: _pyahocorasick(literals),
    }
    return {name: _rate(maker, sample) for name, maker in makers.items()}


def _rate(maker: Callable[[], Callable[[bytes], object]], sample: bytes) -> float:
    try:
        find = maker()
    except ImportError:
        return 0.0
    done, began = 0, time.process_time()
    while done < len(sample) and time.process_time() - began < 5:
        find(sample[done : done + (1 << 20)])
        done += 1 << 20
    return round(done / 1e6 / (time.process_time() - began), 1)


def _counted(find: Callable[[bytes], Any]) -> Callable[[bytes], object]:
    return lambda block: sum(1 for _ in find(block))


def _re2(pattern: bytes) -> Callable[[bytes], object]:
    import re2  # type: ignore[import-not-found, unused-ignore]

    options = re2.Options()
    options.max_mem = 64 << 20
    compiled = re2.compile(pattern, options)
    return lambda block: sum(1 for _ in compiled.finditer(block))


def _hyperscan(literals: tuple[bytes, ...]) -> Callable[[bytes], object]:
    import hyperscan  # type: ignore[import-not-found, unused-ignore]

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[re.escape(one) for one in literals],
        ids=list(range(len(literals))),
        elements=len(literals),
        flags=[0] * len(literals),
    )
    return lambda block: database.scan(block, match_event_handler=lambda *_: None)


def _pyahocorasick(literals: tuple[bytes, ...]) -> Callable[[bytes], object]:
    import ahocorasick  # type: ignore[import-not-found, unused-ignore]

    automaton = ahocorasick.Automaton()
    for one in literals:
        automaton.add_word(one.decode(), one)
    automaton.make_automaton()
    return lambda block: sum(1 for _ in automaton.iter(block.decode("latin-1")))
