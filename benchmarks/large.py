"""What very large fleets cost the controller beyond reading: reachability, ranks that meet, changes in waves.

    python -m benchmarks.large [--hosts 256 1024 4096] [--parts reach launch verify ...]

``reach`` and ``launch`` count the processor time of the controller alone: plans, scripts of all hosts, and the
verdict on what simulated hosts answer, whose making is not counted; no connection is opened. The other parts
run commands against the endpoints of ``benchmarks/swarm.py``, over ssh: each rank waits until all others have
come, so every session is open at the same time; ``meeting`` is without the calls between hosts. The endpoints
share the cores, so seconds of the wall say less there, and the time limits of ssh are long. ``waves`` changes
every host in waves of 1, 1 %, 10 % and 100 %, and counts the bytes of the journal. Each figure takes its place
in ``results/large.json``; ``large.md`` is made of that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import describe
from benchmarks.ranks import Meetings, Member, called, config_of
from benchmarks.scale import REMEDY, additions
from benchmarks.swarm import RECORDED, ROOT
from remedy.transport import Output, Script
from remedy.verify.allreduce.plan import plan_ranks
from remedy.verify.allreduce.run import launch
from remedy.verify.hosts import Participant, Participants
from remedy.verify.reach.plan import plan_reach, reach_hosts
from remedy.verify.reach.run import try_links

RESULTS = Path(__file__).parent / "results"
SIZES = (256, 1024, 4096)
WAVES = "1,1%,10%,100%"
# Hosts of a group, where the proof is divided.
GROUP = 64
COLUMNS = (
    *(
        "command",
        "hosts",
        "processor",
        "a host",
        "additions",
        "asked a host",
        "peak memory",
        "wall",
    ),
    *("rungs", "journal a host"),
)
COMMANDS = {
    "verify": (REMEDY, "verify", "inventory.py"),
    "meeting": (REMEDY, "verify", "inventory.py", "--spec", "meeting.yaml"),
    "divided": (REMEDY, "verify", "inventory.py", "--divide", str(GROUP)),
    "waves": (
        *(REMEDY, "apply", "inventory.py", "--yes", "--no-verify", "--no-prove-waves"),
        *("--waves", WAVES),
    ),
}
# Endpoints that share cores with others are late by no fault of their own.
PATIENT = (
    "ssh: {connect: 900, key_exchange: 900, login: 900, channel: 900, command: 900, silence: 900}\n"
)
SPECS = {
    "remedy.yaml": PATIENT,
    "meeting.yaml": f"{PATIENT}verify: {{reach: false, isolate: false, deadline: 1800}}\n",
}
Figures = dict[str, Any]


def participants(count: int) -> list[Participant]:
    """Return so many hosts."""
    return [
        Participant(name=f"gpu{n:05}", address=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
        for n in range(count)
    ]


class Stopwatch:
    """Runs scripts on simulated hosts, and does not count the time that these take."""

    def __init__(self, answer: Callable[[Mapping[str, Script]], dict[str, str]]) -> None:
        self.answer = answer
        self.elsewhere = 0.0
        self.asked = 0

    def run(self, scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        """Answer as the hosts would."""
        began = time.process_time()
        self.asked += sum(len(script.text) for script in scripts.values())
        printed = self.answer(scripts)
        outputs = {name: Output(name, text, "", 0) for name, text in printed.items()}
        self.elsewhere += time.process_time() - began
        return outputs


def reach(count: int) -> Figures:
    """Return what reachability among so many simulated hosts costs, where every link works."""

    def answer(scripts: Mapping[str, Script]) -> dict[str, str]:
        return {name: called(config_of(script.text) or {}) for name, script in scripts.items()}

    watch, began = Stopwatch(answer), time.process_time()
    plan = plan_reach(reach_hosts(Participants(participants(count)), 29500), 29500)
    (links,) = try_links([plan], watch.run)
    message = links.rung.message
    cpu = time.process_time() - began - watch.elsewhere
    assert links.passed, message
    peers = min(len(plan.order(0)), count - 1)
    return {"cpu": cpu, "asked": watch.asked, "peers": peers, "missing": links.missing}


def ranks(count: int) -> Figures:
    """Return what one all-reduce of so many simulated hosts costs, a rank each."""

    def answer(scripts: Mapping[str, Script]) -> dict[str, str]:
        async def everybody() -> list[str]:
            meetings = Meetings()
            return await asyncio.gather(
                *(
                    meetings.answer(config_of(script.text) or {}, Member(name, f"boot-{name}"))
                    for name, script in scripts.items()
                )
            )

        return dict(zip(scripts, asyncio.run(everybody()), strict=True))

    watch, began = Stopwatch(answer), time.process_time()
    (group,) = launch([plan_ranks(participants(count))], watch.run)
    cpu = time.process_time() - began - watch.elsewhere
    assert group.verdict.passed, group.verdict.reason
    return {"cpu": cpu, "asked": watch.asked}


def over_ssh(part: str, count: int) -> Figures:
    """Return the figures of a command against so many endpoints.

    Raises:
        RuntimeError: it failed.
    """
    module = [sys.executable, "-m", "benchmarks.swarm"]
    broken = ["--broken", "1"] if part == "waves" else []
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [*module, "serve", str(count), folder, str(RECORDED), *broken],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            for name, text in SPECS.items():
                (Path(folder) / name).write_text(text)
            command = [*module, "cost", folder, *COMMANDS[part]]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        figures: Figures = json.loads(done.stdout)
        if figures["rc"] != 0:
            raise RuntimeError(f"{part} of {count} hosts ended with {figures}")
        figures |= json.loads((Path(folder) / "traffic.json").read_text())
        journal = Path(folder) / ".remedy" / "journal.jsonl"
        figures["journal"] = journal.stat().st_size if journal.exists() else 0
    tail = figures.pop("tail")
    figures["rungs"] = {
        name.strip(): float(seconds)
        for name, seconds in re.findall(r"(?m)^  ok  (\w[\w ]*?)\s+(\d+\.\d) s", tail)
    }
    return figures


def page(known: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return the tables, as Markdown."""
    every = [figures for sizes in known.values() for figures in sizes.values()]
    made = sorted({(f["day"], f["commit"], f["machine"]) for f in every})
    lines = [
        "# Very large fleets: proof and waves",
        "",
        "Made by `python -m benchmarks.large`, one round each; its docstring says what is measured.",
        "`additions` are the seconds of processor of ten million additions in Python around the round:",
        "0.55 on the machine that the goals were set on, more where other work goes on beside it.",
        "",
        *(f"- {day}, commit {commit}: {machine}" for day, commit, machine in made),
        "",
        "## The controller alone, simulated hosts",
        "",
        "| what | hosts | processor | a host | additions | asked a host | it calls | a dead link untried |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for part, title in (("reach", "reachability"), ("launch", "one all-reduce")):
        for size, figures in _sorted(known.get(part, {})):
            peers = f"{figures['peers']:,}" if "peers" in figures else ""
            chance = f"{figures['missing']:.0%}" if "missing" in figures else ""
            lines.append(f"| {title} | {_common(size, figures)} | {peers} | {chance} |")
    lines += [
        "",
        "## Whole commands against endpoints, over ssh",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for part, words in COMMANDS.items():
        typed = " ".join(("remedy", *words[1:]))
        for size, figures in _sorted(known.get(part, {})):
            rungs = ", ".join(f"{name} {took:.1f} s" for name, took in figures["rungs"].items())
            journal = f"{figures['journal'] / size:,.0f} bytes"
            lines.append(
                f"| `{typed}` | {_common(size, figures)} | {figures['rss_mib']:,} MiB"
                f" | {figures['wall']:,.0f} s | {rungs} | {journal} |"
            )
    return "\n".join([*lines, ""])


def _sorted(sizes: Mapping[str, Figures]) -> list[tuple[int, Figures]]:
    return sorted((int(size), figures) for size, figures in sizes.items())


def _common(size: int, figures: Figures) -> str:
    each = 1000 * figures["cpu"] / size
    asked = f"{figures['asked'] / size / 1024:.0f} KiB"
    return (
        f"{size:,} | {figures['cpu']:.1f} s | {each:.1f} ms | {figures['additions']:.2f} | {asked}"
    )


def main() -> None:
    """Do what the command line says."""
    parts = ("reach", "launch", *COMMANDS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    arguments = parser.parse_args()
    data = RESULTS / "large.json"
    words = ["git", "rev-parse", "--short", "HEAD"]
    head = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for part in arguments.parts:
        for count in arguments.hosts:
            before = additions()
            simulated = {"reach": reach, "launch": ranks}.get(part)
            figures = simulated(count) if simulated else over_ssh(part, count)
            figures["additions"] = round((before + additions()) / 2, 2)
            print(part, count, figures, flush=True)
            day = datetime.now(timezone.utc).date().isoformat()
            figures |= {"commit": head.strip(), "day": day, "machine": describe()}
            known = json.loads(data.read_text()) if data.exists() else {}
            known.setdefault(part, {})[str(count)] = figures
            data.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    (RESULTS / "large.md").write_text(page(json.loads(data.read_text())))


if __name__ == "__main__":
    main()
