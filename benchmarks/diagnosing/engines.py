"""Engines that find many literals in one pass, each in a process of its own; and grep beside them."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.diagnosing import ordinary
from benchmarks.harness.machine import commit, describe, today
from remedy.diagnose.scanner.engine import make_finder
from remedy.diagnose.scanner.scan import index

Finder: TypeAlias = Callable[[bytes], Iterable[object]]

OWN = "ahocorasick-rs"
BLOCK = 1 << 20
PATIENCE = (
    20.0  # processor seconds; a slow engine is measured on as much of the log as it reads in them
)
TEXTS = 500  # of the literals that are strewn into the log, so that there is something to find


def _own(literals: tuple[bytes, ...]) -> Finder:
    return make_finder(literals)[0]


def _find(literals: tuple[bytes, ...]) -> Finder:
    return lambda block: (at for literal in literals if (at := block.find(literal)) >= 0)


def _re(literals: tuple[bytes, ...]) -> Finder:
    return re.compile(_alternation(literals)).finditer


def _re2(literals: tuple[bytes, ...]) -> Finder:
    import re2  # type: ignore[import-not-found, unused-ignore]

    options = re2.Options()
    options.max_mem = 64 << 20
    finder: Finder = re2.compile(_alternation(literals), options).finditer
    return finder


def _hyperscan(literals: tuple[bytes, ...]) -> Finder:
    import hyperscan  # type: ignore[import-not-found, unused-ignore]

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[re.escape(literal) for literal in literals],
        ids=list(range(len(literals))),
        elements=len(literals),
        # Where a match begins is asked for, as the scanner needs it.
        flags=[hyperscan.HS_FLAG_SOM_LEFTMOST] * len(literals),
    )

    def find(block: bytes) -> list[tuple[int, int]]:
        hits: list[tuple[int, int]] = []
        database.scan(block, match_event_handler=lambda number, at, *_: hits.append((number, at)))
        return hits

    return find


def _pyahocorasick(literals: tuple[bytes, ...]) -> Finder:
    import ahocorasick  # type: ignore[import-not-found, unused-ignore]

    automaton = ahocorasick.Automaton()
    for literal in literals:
        automaton.add_word(literal.decode(), literal)
    automaton.make_automaton()
    return lambda block: automaton.iter(block.decode("latin-1"))


def _alternation(literals: tuple[bytes, ...]) -> bytes:
    return b"|".join(map(re.escape, sorted(literals, key=len, reverse=True)))


ENGINES: dict[str, Callable[[tuple[bytes, ...]], Finder]] = {
    OWN: _own,
    "hyperscan": _hyperscan,
    "google-re2": _re2,
    "pyahocorasick": _pyahocorasick,
    "bytes.find": _find,
    "re": _re,
}


def measure(megabytes: int) -> dict[str, Any]:
    """Measure every engine that is installed.

    Args:
        megabytes: how long the log is.
    """
    literals = index().literals
    with tempfile.TemporaryDirectory() as folder:
        log, patterns = Path(folder) / "train.log", Path(folder) / "literals"
        ordinary.write(log, megabytes)
        with log.open("r+b") as file:
            for number in range(TEXTS):
                file.seek(megabytes * 1_000_000 // TEXTS * number)
                file.write(b"\n" + literals[number % len(literals)] + b"\n")
        patterns.write_bytes(b"\n".join(literals) + b"\n")
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["grep", "-c", "-F", "-f", str(patterns), str(log)]
        # Into a pipe: where nobody can see its output, grep ends with the first line that it finds.
        subprocess.run(command, capture_output=True, check=True, env={"LC_ALL": "C"})
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        grep = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        rows = {name: _in_a_process(name, log) for name in ENGINES}
    return {
        "machine": describe(),
        "megabytes": megabytes,
        "literals": len(literals),
        "grep_mb_per_second": round(megabytes / grep, 1),
        "engines": {name: row for name, row in rows.items() if row},
        "not_installed": [name for name, row in rows.items() if not row],
    }


def text(figures: dict[str, Any]) -> str:
    """Return the table, in Markdown."""
    remedy_pace = figures["engines"][OWN]["mb_per_second"]
    out = [
        "# Engines that find many literals",
        "",
        (
            f"Made by `python -m benchmarks.diagnose --engines {figures['megabytes']}`, one round. "
            f"Commit {commit()}, {today()}."
        ),
        "",
        f"{figures['literals']} literals in {figures['megabytes']} MB of ordinary training output, in one run.",
        f"One core of: {figures['machine']}. `grep -F -f`: {figures['grep_mb_per_second']} MB/s.",
        "",
        "| engine | MB/s | times the chosen one | start (s) | hits in a MB |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, row in sorted(figures["engines"].items(), key=lambda row: -row[1]["mb_per_second"]):
        out.append(
            f"| {name} | {row['mb_per_second']} | {row['mb_per_second'] / remedy_pace:.2f} "
            f"| {row['start_seconds']} | {row['hits_in_a_mb']} |"
        )
    out += [
        "",
        f"{OWN} leaves out hits that overlap others; the scanner looks at the whole line anyway.",
    ]
    if figures["not_installed"]:
        out += ["", f"Not installed: {', '.join(figures['not_installed'])}."]
    return "\n".join(out)


def _in_a_process(name: str, log: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.diagnosing.engines", name, str(log)]
    seconds: dict[str, float] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return seconds


def _measured(name: str, log: Path) -> dict[str, float]:
    literals = index().literals
    began = time.process_time()
    try:
        find = ENGINES[name](literals)
    except ImportError:
        return {}
    started = time.process_time()
    hits = done = 0
    with log.open("rb") as file:
        while block := file.read(BLOCK):
            hits += sum(1 for _ in find(block))
            done += len(block)
            if time.process_time() - started > PATIENCE:
                break
    seconds = time.process_time() - started
    return {
        "mb_per_second": round(done / 1e6 / seconds, 1),
        "start_seconds": round(started - began, 2),
        "hits_in_a_mb": round(hits / (done / 1e6), 2),
    }


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], Path(sys.argv[2]))))
