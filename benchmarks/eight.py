"""remedy beside `pyinfra --yes` with eight operations that ask for the same state, on hosts as they are.

    python -m benchmarks.eight [--hosts 8 32 64] [--kinds docker lived-in] [--work first again]      as root

Docker runs on all hosts; those that are lived in have firewalld, 200 processes and rules of their own as well.
Both tools work on the same hosts in one run, in turns: fresh hosts, and hosts where nothing is to do. A first
apply of remedy is all of it: what was there is kept, IPv6 is switched off under a guard, dockerd is asked
whether it has read its file, and a second probe looks. What counts are the ratios of a round, not the seconds.
Results go to results/eight.md. 64 hosts that are lived in take 10 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.contenders import BIN, STATE, Contender, pyinfra_idle
from benchmarks.harness.figures import Goal, Sample, Spread, ratio
from benchmarks.harness.run import BenchmarkError, measured
from remedy.errors import RemedyError
from remedy.lab.life import Life
from remedy.lab.paths import NAME_VARIABLE

RESULTS = Path(__file__).parent / "results" / "eight.md"
LAB = "bench-eight"
KINDS = ("docker", "lived-in")
SETTLED = 0.5
"""Seconds after a command in which sessions on hosts end, which belong to what it cost."""
WORK = ("first", "again")
LIMITS = {("docker", "again"): 0.7, ("docker", "first"): 1.0, ("lived-in", "again"): 1.0}
"""The most that remedy may take, as a multiple of pyinfra; what is not here is shown for comparison."""

SPEC = """\
ipv6: {mode: disable}
docker_shm: {size: 32g}
environment: {variables: {NCCL_IB_TIMEOUT: "22"}}
"""


class Case(NamedTuple):
    """The samples of one kind of hosts, by tool and "first" or "again"; ``spent``: CPU seconds of the hosts."""

    kind: str
    hosts: int
    samples: dict[tuple[str, str], list[Sample]]
    spent: dict[tuple[str, str], list[float]]

    def cpu(self, tool: str, work: str) -> list[float]:
        """Return the processor time of controller and hosts together, by round."""
        pairs = zip(self.samples[tool, work], self.spent[tool, work], strict=True)
        return [sample.cpu_seconds + spent for sample, spent in pairs]

    def rows(self) -> list[str]:
        """Return the lines of the table."""
        lines = []
        for work, words in (("again", "nothing to do"), ("first", "fresh hosts")):
            ours, theirs = (self.samples.get((tool, work), []) for tool in ("remedy", "pyinfra"))
            if not ours or not theirs:
                continue
            times = ratio([s.seconds for s in ours], [s.seconds for s in theirs])
            goal = Goal(words, LIMITS.get((self.kind, work)), "", times)
            limit = "" if goal.limit is None else f"at most {goal.limit}"
            cells = (
                *(Spread.of([s.seconds for s in samples]).text() for samples in (ours, theirs)),
                *(
                    Spread.of([s.cpu_seconds for s in samples]).text(1)
                    for samples in (ours, theirs)
                ),
                *(Spread.of(self.spent[tool, work]).text(1) for tool in ("remedy", "pyinfra")),
                ratio(self.cpu("remedy", work), self.cpu("pyinfra", work)).text(),
            )
            lines.append(
                f"| {self.hosts} {self.kind} | {words} | {' | '.join(cells)} | {times.text()} "
                f"| {limit} {goal.verdict} |"
            )
        return lines


def contenders(cluster: Cluster) -> list[Contender]:
    """Return remedy and pyinfra on these hosts."""
    inventory = str(cluster.inventory)
    ours = (str(BIN / "remedy"), "apply", inventory, "--no-verify")
    parallel = ("--parallel", str(cluster.count))
    operations = str(STATE / "eight_operations.py")
    theirs = (str(BIN / "pyinfra"), *parallel, "--yes", inventory, operations)
    return [
        # Without --yes and without a terminal it refuses to change anything: exit 0 means nothing was to do.
        Contender("remedy", "remedy apply --no-verify", again=ours, first=(*ours, "--yes")),
        Contender("pyinfra", "pyinfra --yes", again=theirs, first=theirs, idle=pyinfra_idle),
    ]


def measure(case: Case, cluster: Cluster, rounds: int, work: Sequence[str]) -> None:
    """Measure both tools, in turns, at each work that is named: "first", "again".

    Raises:
        BenchmarkError: a command failed, or changed something when there was nothing to do.
    """
    (cluster.folder / "remedy.yaml").write_text(SPEC, encoding="utf-8")
    both = contenders(cluster)
    for number in range(rounds if "first" in work else 0):
        for tool in both if number % 2 == 0 else both[::-1]:
            cluster.fresh()
            assert tool.first is not None
            note(case, tool, "first", cluster, tool.first)
    for tool in both:
        # What the other has left out is made now, so that from here on neither has anything to do.
        assert tool.first is not None
        measured(tool.first, cluster.environment)
    for number in range(rounds if "again" in work else 0):
        for tool in both if number % 2 == 0 else both[::-1]:
            text = note(case, tool, "again", cluster, tool.again)
            if not tool.idle(text):
                raise BenchmarkError(f"{tool.title} changed something when there was nothing to do")


def note(case: Case, tool: Contender, work: str, cluster: Cluster, command: Sequence[str]) -> str:
    """Run a command, keep what it took, show it, and return what it printed."""
    before = cluster.cpu_seconds()
    sample, text = measured(command, cluster.environment)
    time.sleep(SETTLED)
    spent = cluster.cpu_seconds() - before
    case.samples.setdefault((tool.key, work), []).append(sample)
    case.spent.setdefault((tool.key, work), []).append(spent)
    print(
        f"{case.hosts} {case.kind}, {work}: {tool.title}: {sample.seconds:.2f} s, "
        f"{sample.cpu_seconds:.1f} s of CPU, and {spent:.1f} s on the hosts",
        file=sys.stderr,
        flush=True,
    )
    return text


def main() -> int:
    """Measure, print, write; return 2 when nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 32, 64])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--work", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-write", action="store_true", help="print the figures only")
    options = parser.parse_args()
    os.environ.setdefault(NAME_VARIABLE, LAB)
    load, cases = machine.load(), []
    for kind in options.kinds:
        for count in options.hosts:
            with tempfile.TemporaryDirectory(prefix="remedy-benchmark.") as folder:
                life: Life = "lived-in" if kind == "lived-in" else "bare"
                cluster = Cluster(count, Path(folder), docker=kind == "docker", life=life)
                case = Case(kind, count, {}, {})
                try:
                    cluster.up()
                    measure(case, cluster, options.rounds, options.work)
                except (BenchmarkError, RemedyError, subprocess.CalledProcessError) as error:
                    print(f"no result: {error}", file=sys.stderr)
                    return 2
                finally:
                    cluster.down()
                cases.append(case)
    lines = [
        "# remedy beside eight operations of pyinfra\n",
        f"Made by `{' '.join(['python -m benchmarks.eight', *sys.argv[1:]])}`.\n",
        f"Commit {machine.commit()}, {machine.today()}. {machine.describe()}; load before {load:.1f}.\n",
        "CPU s: of the controller; the CPU ratio is that of controller and hosts together.\n",
        (
            "| hosts | work | remedy, s | pyinfra --yes, s | remedy, CPU s | pyinfra, CPU s "
            "| hosts by remedy, CPU s | hosts by pyinfra, CPU s | CPU ratio | ratio | goal |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(row for case in cases for row in case.rows()),
    ]
    print("\n".join(lines))
    if not options.no_write:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
