"""What one probe costs a host: its own CPU time, and that of the daemons that it asks.

    python -m benchmarks.probe_cost [--kinds bare lived-in] [--rounds 40]     as root

Bare hosts, and hosts as users have them (``remedy lab up --lived-in``): Docker, containerd and firewalld
running, 200 processes, 40 rules. The probe runs inside the host, without ssh: by wait4(2) the shell and all its
children, by /proc/PID/schedstat every process that runs before and after it, which is where a daemon's answers
show. The least and the median of the rounds are written to ``results/probe-cost.md``.
"""

from __future__ import annotations

import argparse
import json
import statistics
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


def measure(host: Host, rounds: int) -> list[Cost]:
    """Return what each of ``rounds`` probes of a host costs; one more before them fills caches."""
    names = tuple(record.name for record in (host.record, *host.peers))
    host.write(SCRIPT, render_probe(ProbeRequest(names=names)).encode())
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
    chosen = parser.parse_args()
    rows = []
    for kind in chosen.kinds:
        lab = Lab(LabPaths.of(f"probe-cost-{kind}"))
        try:
            lab.up(UpOptions(count=2, life=kind))
            rows.append(row(kind, measure(lab.hosts()[0], chosen.rounds)))
        finally:
            lab.down()
    lines = [
        "# What one probe costs a host\n",
        f"Made by `python -m benchmarks.probe_cost --rounds {chosen.rounds}`.\n",
        f"{machine.describe()}; load {machine.load():.1f}.\n",
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
