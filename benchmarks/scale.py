"""How the controller's work grows with the fleet: processor, memory and bytes on the wire, a host and in all.

    python -m benchmarks.scale [--hosts 64 256 1024 4096] [--commands check plan apply first change pyinfra]

Fleets of hosts that need nothing, made by ``benchmarks/swarm.py`` in one process on the same cores: so the wall
says little, and figures are those of the controller's process alone. ``apply`` is without verification;
``pyinfra`` is one trivial fact of pyinfra's own command (``uname -n``) from the same endpoints. ``first`` is a
plan that is saved for a fleet in which every host needs the whole block of its hosts file; what looking at it
costs is measured by ``benchmarks/plans.py``. ``change`` is a first apply to that fleet. Each size that is
measured takes its place in ``results/scale.json``; ``scale.md`` and ``scale.svg`` are made of that.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import describe
from benchmarks.scale_page import page, plot
from benchmarks.swarm import RECORDED, ROOT

RESULTS = Path(__file__).parent / "results"
SIZES = (64, 256, 1024, 4096)
REMEDY, PYINFRA = (str(Path(sys.executable).with_name(name)) for name in ("remedy", "pyinfra"))
COMMANDS = {
    "check": (REMEDY, "check", "inventory.py"),
    "plan": (REMEDY, "plan", "inventory.py"),
    "apply": (REMEDY, "apply", "inventory.py", "--yes", "--no-verify"),
    "first": (REMEDY, "plan", "inventory.py", "-o", "plan.json"),
    "change": (REMEDY, "apply", "inventory.py", "--yes", "--no-verify"),
    "pyinfra": (PYINFRA, "inventory.py", "fact", "server.Hostname"),
}
ADDITIONS = "x = 0\nfor i in range(10_000_000): x += i"


def additions() -> float:
    """Return the seconds of processor that ten million additions take: how quick the machine is just now."""
    code = f"import time\nt = time.process_time()\n{ADDITIONS}\nprint(time.process_time() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(size: int, command: str, *words: str) -> dict[str, Any]:
    """Return the figures of one command on so many hosts.

    Args:
        size: how many.
        command: one of ``COMMANDS``.
        words: further ones for the swarm.

    Raises:
        RuntimeError: it failed.
    """
    module = [sys.executable, "-m", "benchmarks.swarm"]
    share, port = str(float(command in ("first", "change"))), str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [
                *(*module, "serve", str(size), folder, str(RECORDED)),
                *("--broken", share, "--port", port, *words),
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            before = additions()
            done = subprocess.run(
                [*module, "cost", folder, *COMMANDS[command]],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            after = additions()
            plan = Path(folder) / "plan.json"
            more = {"plan_mib": round(plan.stat().st_size / 2**20, 2)} if command == "first" else {}
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        traffic = json.loads((Path(folder) / "traffic.json").read_text())
    figures = json.loads(done.stdout)
    if figures["rc"] != 0:
        raise RuntimeError(f"{command} of {size} hosts ended with {figures}")
    del figures["tail"]
    return {**figures, **traffic, **more, "additions": round((before + after) / 2, 2)}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))  # noqa: S104  (each host is an address of the loopback network)
        port: int = sock.getsockname()[1]
    return port


def where() -> dict[str, Any]:
    """Return what was measured, when, and on which machine."""
    commit = ["git", "rev-parse", "--short", "HEAD"]
    head = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    day = datetime.now(timezone.utc).date().isoformat()
    return {"commit": head.strip(), "day": day, "machine": describe()}


def keep(size: int, command: str, figures: dict[str, Any]) -> None:
    """Put the figures of one command into the data, and draw the table and the plot anew."""
    data = RESULTS / "scale.json"
    known = json.loads(data.read_text()) if data.exists() else {}
    known.setdefault(command, {})[str(size)] = figures
    data.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    (RESULTS / "scale.md").write_text(page(known))
    (RESULTS / "scale.svg").write_text(plot(known))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    arguments = parser.parse_args()
    for size in arguments.hosts:
        for command in arguments.commands:
            figures = measured(size, command)
            print(size, command, figures, flush=True)
            keep(size, command, figures | where())


if __name__ == "__main__":
    main()
