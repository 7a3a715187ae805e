"""What it costs to look at a plan of a very large fleet: to show it, to approve it, to list what is on record.

    python -m benchmarks.plans [--hosts 4096] [--changes 12] [--rounds 3]

The plan is made up: of the changes of a host all but one are the same on every host, commands and files in
turn, and one writes its own content on each. It is written as ``remedy plan --output`` writes it, and recorded
in the journal. Each command runs as it is typed, its start included. The last figures are in
``results/plans.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness.machine import commit, describe, load, today
from benchmarks.scale import REMEDY, additions
from benchmarks.swarm import ROOT, Swarm, write_files
from remedy import __version__
from remedy.apply.start import new_run_id, origin
from remedy.audit.agreement import titles
from remedy.plan import Change, CommandAction, FileAction, Plan, sha256, write_plan
from remedy.plan.shared import format_for
from remedy.runs.note import note
from remedy.runs.session import open_session

# What is asked about a plan, by the file in its folder.
COMMANDS = {
    "show": (REMEDY, "show", "plan.json"),
    "approve": (REMEDY, "approve", "plan.json", "--key", "id"),
    "history": (REMEDY, "history", "inventory.py"),
}
RESULT = Path(__file__).parent / "results" / "plans.md"
GOAL = 2.0


def changes_of(host: str, count: int, blobs: dict[str, bytes]) -> Iterator[Change]:
    """Yield the changes of one host.

    Args:
        host: its name.
        count: how many.
        blobs: takes the bytes that they write.
    """
    for number in range(1, count + 1):
        # The last is each host's own.
        content = f"setting-{number} = {host if number == count else 'on'}\n".encode()
        yield Change(
            id=f"{number:02d}-setting",
            host=host,
            remedy="setting",
            title=f"set setting {number}",
            reason=f"setting {number} is off, and jobs need it",
            label="resources",
            action=_file(number, content, blobs)
            if number % 2 == 0 or number == count
            else _command(number),
        )


def _file(number: int, content: bytes, blobs: dict[str, bytes]) -> FileAction:
    blobs[sha256(content)] = content
    path = f"/etc/setting.d/{number:02d}.conf"
    return FileAction(path=path, real_path=path, before=None, after=sha256(content))


def _command(number: int) -> CommandAction:
    return CommandAction(
        observe=f"setting show {number}",
        before="off",
        after="on",
        do=f"setting set {number} on",
        undo=f"setting set {number} off",
    )


def make(folder: Path, hosts: int, changes: int) -> None:
    """Write an inventory, a plan for it, and the record that the plan was saved."""
    swarm = Swarm(hosts, "")
    write_files(swarm, folder, "ssh-ed25519 AAAA")
    names = [swarm.name(number) for number in range(hosts)]
    with open_session(folder / "inventory.py") as session:
        who = origin()
        blobs: dict[str, bytes] = {}
        plan = Plan(
            format_version=format_for(hosts),
            tool_version=__version__,
            created=who.created,
            author=who.author,
            inventory="inventory.py",
            inventory_digest=session.inventory.digest,
            spec_digest=session.spec.digest,
            changes=tuple(c for name in names for c in changes_of(name, changes, blobs)),
            blobs=blobs,
            observed={name: sha256(name.encode()) for name in names},
            machines={name: sha256(name.encode())[:32] for name in names},
        )
        write_plan(plan, folder / "plan.json")
        record: dict[str, Any] = {"digest": plan.digest, "changes": titles(plan)}
        lost = note(session, "plan", "saved", run=new_run_id(), file="plan.json", **record)
        assert not lost, lost


def measured(folder: Path, command: Sequence[str]) -> dict[str, Any]:
    """Return what one command costs.

    Raises:
        RuntimeError: it failed.
    """
    cost = [sys.executable, "-m", "benchmarks.swarm", "cost", str(folder), *command]
    done = subprocess.run(cost, cwd=ROOT, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    if figures["rc"] != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {figures}")
    return figures


def spread(values: Sequence[float]) -> str:
    """Return the middle of several figures, and how far they lie apart."""
    return f"{median(values):.2f} s ({min(values):.2f}-{max(values):.2f})"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, default=4096)
    parser.add_argument("--changes", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, arguments.hosts, arguments.changes)
        size = (folder / "plan.json").stat().st_size / 2**20
        quick = additions()
        for word, command in COMMANDS.items():
            rounds = [measured(folder, command) for _ in range(arguments.rounds)]
            wall, cpu = (spread([figures[key] for figures in rounds]) for key in ("wall", "cpu"))
            memory = max(figures["rss_mib"] for figures in rounds)
            rows.append(f"| `remedy {word}` | {wall} | {cpu} | {memory:,} MiB |")
            print(rows[-1], flush=True)
    typed = f"--hosts {arguments.hosts} --changes {arguments.changes} --rounds {arguments.rounds}"
    lines = [
        "# Looking at the plan of a very large fleet",
        "",
        f"Made by `python -m benchmarks.plans {typed}`; its docstring says what is measured. Seconds by the",
        "clock and of processor are the middle of the rounds, and in brackets the least and the most.",
        f"The goal is {GOAL:.0f} s each. Other work went on beside.",
        "",
        f"- {today()}, commit {commit()}: {describe()}; load {load():.1f}; ten million additions {quick:.2f} s",
        f"- {arguments.hosts:,} hosts with {arguments.changes} changes each; the plan file has {size:.1f} MiB",
        "",
        "| command | seconds | of processor | peak memory |",
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
    ]
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
