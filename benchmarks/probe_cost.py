"""What one probe costs a host: its own CPU time, and that of the daemons that it asks.

    python -m benchmarks.probe_cost [--kinds bare lived-in] [--rounds 40]     as root

Bare hosts, and hosts as users have them (``remedy lab up --lived-in``): Docker, containerd and firewalld
running, 200 processes, 40 rules. The probe runs inside the host, without ssh: by wait4(2) the shell and all its
children, by /proc/PID/schedstat every process that runs before and after it, which is where a daemon's answers
show. ``--against TREE`` has the probe of another commit, whose files are there, run on the same hosts in turns.
The least and the median of the rounds are written to ``results/probe-cost.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import machine
from remedy.lab.cluster import Lab
from remedy.lab.host import Host
from remedy.lab.life import Life
from remedy.lab.options import UpOptions
from remedy.lab.paths import LabPaths
from remedy.probe import ProbeRequest, render_probe

RESULTS = Path(__file__).parent / "results" / "probe-cost.md"
KINDS: tuple[Life, ...] = ("bare", "lived-in")
DAEMONS = ("systemd", "dbus-daemon", "dockerd", "containerd", "firewalld", "systemd-logind")
SCRIPT = "/run/benchmark-probe.sh"
SECONDS = 500.0
TURNS = 4
RENDER = """
import sys
from remedy.probe import ProbeRequest, render_probe
print(render_probe(ProbeRequest(names=tuple(sys.argv[1:]))), end="")
"""

AGENT = f"""
import json, os, sys
def others():
    times = {{}}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            total = 0
            for task in os.listdir(f"/proc/{{pid}}/task"):
                total += int(open(f"/proc/{{pid}}/task/{{task}}/schedstat").read().split()[0])
            times[pid, open(f"/proc/{{pid}}/comm").read().strip()] = total
        except OSError:
            pass
    times.pop((str(os.getpid()), open("/proc/self/comm").read().strip()), None)
    return times
rounds = []
for _ in range(int(sys.argv[1])):
    before = others()
    child = os.fork()
    if child == 0:
        os.dup2(os.open("{SCRIPT}", os.O_RDONLY), 0)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execvp("sh", ["sh", "-s"])
    usage = os.wait4(child, 0)[2]
    after = others()
    asked = {{}}
    for (pid, name), total in after.items():
        if (pid, name) in before and total > before[pid, name]:
            asked[name] = asked.get(name, 0) + (total - before[pid, name]) / 1e6
    rounds.append({{"own": (usage.ru_utime + usage.ru_stime) * 1e3, "asked": asked}})
print(json.dumps(rounds))
"""


class Cost(NamedTuple):
    """Milliseconds of CPU of one probe: its own, and what the daemons spent meanwhile."""

    own: float
    asked: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.own + self.asked


def rendered(tree: Path | None, host: Host) -> str:
    """Return the probe of a host, as this tree renders it, or the tree of another commit."""
    names = tuple(record.name for record in (host.record, *host.peers))
    if tree is None:
        return render_probe(ProbeRequest(names=names))
    done = subprocess.run(
        [sys.executable, "-c", RENDER, *names],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def measure(host: Host, rounds: int, script: str) -> list[Cost]:
    """Return what each of ``rounds`` probes of a host costs; one more before them fills caches."""
    host.write(SCRIPT, script.encode())
    answer = host.run(["python3", "-c", AGENT, str(rounds + 1)], seconds=SECONDS)
    host.must(["rm", SCRIPT])
    if answer.returncode:
        raise RuntimeError(f"{host.name}: {answer.stderr.strip()[-300:]}")
    return [
        Cost(entry["own"], sum(entry["asked"].get(name, 0.0) for name in DAEMONS))
        for entry in json.loads(answer.stdout)[1:]
    ]


def row(kind: str, costs: list[Cost]) -> str:
    """Return one line of the table."""
    own, asked, total = (
        [getattr(cost, name) for cost in costs] for name in ("own", "asked", "total")
    )
    cells = (
        f"{min(values):.0f} / {statistics.median(values):.0f}" for values in (own, asked, total)
    )
    return f"| {kind} | {' | '.join(cells)} |"


def main() -> None:
    """Bring up a host of each kind, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--against", type=Path, help="the tree of another commit, on the same hosts"
    )
    chosen = parser.parse_args()
    rows = []
    for kind in chosen.kinds:
        lab = Lab(LabPaths.of(f"probe-cost-{kind}"))
        try:
            lab.up(UpOptions(count=2, life=kind))
            host = lab.hosts()[0]
            trees: dict[str, Path | None] = (
                {kind: None, f"{kind}, by {chosen.against.name}": chosen.against}
                if chosen.against
                else {kind: None}
            )
            costs: dict[str, list[Cost]] = {}
            for _ in range(TURNS):
                for name, tree in trees.items():
                    more = measure(host, chosen.rounds // TURNS, rendered(tree, host))
                    costs.setdefault(name, []).extend(more)
            rows += [row(name, values) for name, values in costs.items()]
        finally:
            lab.down()
    against = f" --against {chosen.against.name}" if chosen.against else ""
    lines = [
        "# What one probe costs a host\n",
        f"Made by `python -m benchmarks.probe_cost --rounds {chosen.rounds}{against}`.\n",
        f"Commit {machine.commit()}, {machine.today()}; {machine.describe()}; load {machine.load():.1f}.\n",
        "Milliseconds of CPU, least / median of the rounds. Asked are the daemons:",
        f"{', '.join(DAEMONS)}.\n",
        "| host | probe | asked | together |",
        "|---|---|---|---|",
        *rows,
    ]
    print("\n".join(lines))
    if set(chosen.kinds) == set(KINDS):
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
