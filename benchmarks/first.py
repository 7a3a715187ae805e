"""The first seconds: ``remedy check`` of one host beside one trivial fact of pyinfra's own command, in turns.

    python -m benchmarks.first [--kinds bare docker] [--rounds 9] [--no-write]      as root

One lab host of each kind, with which nothing is wrong: bare, or with Docker running. A round is one run of
each tool, and who begins alternates. What counts is the ratio of a round, not its seconds; processor time is
that of the controller and, beside it, that of the host, sshd included. Results go to results/first.md.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import remedy
from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.contenders import BIN
from benchmarks.harness.figures import Goal, Sample, Spread, ratio
from benchmarks.harness.run import BenchmarkError, measured
from remedy.errors import RemedyError
from remedy.lab.paths import NAME_VARIABLE

RESULTS = Path(__file__).parent / "results" / "first.md"
LAB = "bench-first"
KINDS = ("bare", "docker")
LIMIT = 1.3
"""The most that a check may take, as a multiple of the fact."""
SETTLED = 0.3
"""Seconds after a command in which its session on the host ends, which belongs to what it cost."""
FACT = "server.Hostname"


class Case(NamedTuple):
    """The samples of one kind of host by tool, and the seconds of processor of the host (``spent``)."""

    kind: str
    samples: dict[str, list[Sample]]
    spent: dict[str, list[float]]

    def rows(self) -> list[str]:
        """Return the lines of the table: one a tool, and one with what they are to each other."""
        lines = []
        for tool, title in (("remedy", "remedy check"), ("pyinfra", f"pyinfra fact {FACT}")):
            cells = (
                Spread.of([s.seconds for s in self.samples[tool]]).text(),
                Spread.of([s.cpu_seconds for s in self.samples[tool]]).text(),
                Spread.of(self.spent[tool]).text(),
            )
            lines.append(f"| {self.kind} | {title} | {' | '.join(cells)} | |")
        ours, theirs = self.samples["remedy"], self.samples["pyinfra"]
        seconds = ratio([s.seconds for s in ours], [s.seconds for s in theirs])
        work = ratio([s.cpu_seconds for s in ours], [s.cpu_seconds for s in theirs])
        on_host = ratio(self.spent["remedy"], self.spent["pyinfra"])
        verdict = Goal("", LIMIT, "", seconds).verdict
        lines.append(
            f"| {self.kind} | ratio | {seconds.text()} | {work.text()} | {on_host.text()} "
            f"| at most {LIMIT} {verdict} |"
        )
        return lines


def measure(case: Case, cluster: Cluster, rounds: int) -> None:
    """Make the host right, so that there is nothing to do, and measure both tools in turns.

    Raises:
        BenchmarkError: a command failed.
    """
    inventory = str(cluster.inventory)
    measured((str(BIN / "remedy"), "apply", inventory, "--yes", "--no-verify"), cluster.environment)
    commands = {
        "remedy": (str(BIN / "remedy"), "check", inventory, "--exit-code"),
        "pyinfra": (str(BIN / "pyinfra"), inventory, "fact", FACT),
    }
    for command in commands.values():  # caches fill
        measured(command, cluster.environment)
    for number in range(rounds):
        for tool in commands if number % 2 == 0 else reversed(commands):
            before = cluster.cpu_seconds()
            sample, _ = measured(commands[tool], cluster.environment)
            time.sleep(SETTLED)
            spent = cluster.cpu_seconds() - before
            case.samples.setdefault(tool, []).append(sample)
            case.spent.setdefault(tool, []).append(spent)
            print(
                f"{case.kind} {number + 1}: {tool}: {sample.seconds:.3f} s, "
                f"{sample.cpu_seconds:.3f} s of CPU, and {spent:.3f} s on the host",
                file=sys.stderr,
                flush=True,
            )


def main() -> int:
    """Measure, print, write; return 2 when nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-write", action="store_true", help="print the figures only")
    options = parser.parse_args()
    os.environ.setdefault(NAME_VARIABLE, LAB)
    compileall.compile_dir(Path(remedy.__file__).parent, quiet=1)  # as pip does
    load, cases = machine.load(), []
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(prefix="remedy-benchmark.") as folder:
            cluster = Cluster(1, Path(folder), docker=kind == "docker")
            case = Case(kind, {}, {})
            try:
                cluster.up()
                measure(case, cluster, options.rounds)
            except (BenchmarkError, RemedyError, subprocess.CalledProcessError) as error:
                print(f"no result: {error}", file=sys.stderr)
                return 2
            finally:
                cluster.down()
            cases.append(case)
    lines = [
        "# The first seconds\n",
        f"Made by `{' '.join(['python -m benchmarks.first', *sys.argv[1:]])}`: one host, on the same cores.\n",
        f"Commit {machine.commit()}, {machine.today()}. {machine.describe()}; load before {load:.1f}.\n",
        "| host | command | seconds | CPU s of the controller | CPU s of the host | goal |",
        "|---|---|---|---|---|---|",
        *(row for case in cases for row in case.rows()),
    ]
    print("\n".join(lines))
    if not options.no_write:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
