"""What a fleet behind gateways costs the controller, beside the same fleet reached from it.

    python -m benchmarks.gateways [--hosts 256 1024] [--gateways 16] [--ways gateways flat jump]

Gateways are ClusterShell's own, as processes of this machine; the ssh that leads to them, and from them to
hosts, is a stand-in that goes to this program, which answers as ``benchmarks/swarm.py`` does. So no ssh is
measured but the command's own share: its process, the relay, and the 16 programs that stand in for ssh to
gateways (a real one takes some 64 ms each). What gateways and hosts take is on the same cores and not counted.
The ways ``flat`` and ``jump`` are the same fleet reached from here, and through one login node by
``ProxyJump``, over real ssh as in ``benchmarks/scale.py``. Each figure is kept in ``results/gateways.json``,
of which ``gateways.md`` is made; one of ``flat`` is also among those of ``benchmarks/scale.py``.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, cast

from benchmarks import scale
from benchmarks.swarm import RECORDED, ROOT, Swarm, write_files

RESULT = Path(__file__).parent / "results" / "gateways.md"
DATA = RESULT.with_suffix(".json")
WIDTH = 65_532
FANOUT = 16
# In the command of a script that does not pack by itself what it prints.
PACKS = "gzip -1 -c"
_GATEWAY = b"gateway\n"
_HEAD = re.compile(r"remedy-(?:shell|script|end)-[0-9a-f]{16}")

# Options, then for a gateway "--", then where to and what to run there.
_SSH = """\
#!/bin/bash
for word; do host=$command; command=$word; [ "$word" != -- ] || door=1; done
[ -z "$door" ] || exec {python} {pump} {port}
exec 3<>/dev/tcp/127.0.0.1/{port}
printf 'host %s %s\\n' "$host" "${{command//$'\\n'/ }}" >&3
cat >&3
printf '\\n.\\n' >&3
read -r errors <&3
printf '%b' "$errors" >&2
exec cat <&3
"""
_PUMP = """\
import os, select, socket, sys
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
there.sendall(b"gateway\\n")
open_ = [0, there.fileno()]
while True:
    for fd in select.select(open_, [], [])[0]:
        chunk = os.read(fd, 1 << 16)
        if not chunk and fd:
            sys.exit()
        if not chunk:
            there.shutdown(socket.SHUT_WR)
            open_.remove(0)
        elif fd:
            os.write(1, chunk)
        else:
            there.sendall(chunk)
"""


class Fleet(socketserver.ThreadingTCPServer):
    """Answers for hosts, and starts a gateway for whoever asks for one.

    Args:
        swarm: the hosts.
        environment: of gateways.
    """

    daemon_threads = True
    request_queue_size = 4096

    def __init__(self, swarm: Swarm, environment: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.swarm = swarm
        self.environment = environment
        self.numbers = {swarm.door(number): number for number in range(swarm.count)}
        self.answered = 0


class _Answer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        fleet = cast(Fleet, self.server)
        # What follows the line of a gateway is for the gateway itself.
        kind = self.request.recv(len(_GATEWAY), socket.MSG_PEEK | socket.MSG_WAITALL)
        if kind == _GATEWAY:
            self.request.recv(len(_GATEWAY))
            subprocess.run(
                [sys.executable, "-m", "ClusterShell.Gateway", "-Bu"],
                stdin=self.request.fileno(),
                stdout=self.request.fileno(),
                stderr=subprocess.DEVNULL,
                env=fleet.environment,
                check=False,
            )
            return
        asked = bytearray()
        while not asked.endswith(b"\n.\n"):
            chunk = self.request.recv(1 << 18)
            if not chunk:
                return
            asked += chunk
        head, _, text = asked.decode(errors="surrogateescape").partition("\n")
        _, host, command = head.split(" ", 2)
        words = {kind: word for word in _HEAD.findall(command) for kind in [word.split("-")[1]]}
        answer = fleet.swarm.answer(fleet.numbers[host], text)
        if PACKS in command:
            answer = base64.b64encode(gzip.compress(answer.encode(), 1)).decode()
        lines = [
            line[at : at + WIDTH]
            for line in answer.split("\n")
            for at in range(0, max(len(line), 1), WIDTH)
        ]
        errors = f"\\n{words['shell']}\\n\\n{words['end']} 0\\n"
        out = "\n".join(["", words["shell"], words["script"], *lines, ""])
        self.request.sendall(f"{errors}\n{out}".encode())
        fleet.answered += 1


def measured(count: int, gateways: int, command: str) -> dict[str, Any]:
    """Return the figures of one command on so many hosts behind gateways.

    Raises:
        RuntimeError: it failed.
    """
    swarm = Swarm(count, RECORDED.read_text(encoding="utf-8", errors="surrogateescape"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(swarm, folder, "ssh-ed25519 AAAA")
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        environment["CLUSTERSHELL_GW_LOG_DIR"] = os.devnull
        with Fleet(swarm, environment) as fleet:
            port = fleet.server_address[1]
            (folder / "pump.py").write_text(_PUMP)
            ssh = folder / "ssh"
            ssh.write_text(_SSH.format(python=sys.executable, pump=folder / "pump.py", port=port))
            ssh.chmod(0o755)
            (folder / "remedy.yaml").write_text(
                f"ssh: {{gateways: {{'gw[01-{gateways:02}]': '*'}}, gateway_fanout: {FANOUT}}}\n"
            )
            threading.Thread(target=fleet.serve_forever, daemon=True).start()
            before = scale.additions()
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.swarm", "cost", name, *scale.COMMANDS[command]],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
            after = scale.additions()
            fleet.shutdown()
    figures: dict[str, Any] = json.loads(done.stdout)
    if figures["rc"] != 0 or fleet.answered < count:
        raise RuntimeError(f"{command} of {count} hosts ended with {figures}")
    return {**figures, "answered": fleet.answered, "additions": round((before + after) / 2, 2)}


WAYS = ("gateways", "flat", "jump")
TITLES = {
    "gateways": "behind {gateways} gateways",
    "flat": "from here",
    "jump": "behind one login node, by ProxyJump",
}
COLUMNS = (
    "way",
    "hosts",
    "processor",
    "a host",
    "ten million additions",
    "largest process",
    "wall",
)


def row(figures: dict[str, Any]) -> str:
    """Return a line of the table."""
    cpu, size = figures["cpu"], figures["hosts"]
    cells = (
        *(TITLES[figures["way"]].format(**figures), f"{size:,}", f"{cpu:.1f} s"),
        *(f"{1000 * cpu / size:.1f} ms", f"{figures['additions']:.2f} s"),
        *(f"{figures['rss_mib']:,} MiB", f"{figures['wall']:.0f} s", figures["commit"]),
    )
    return f"| {' | '.join(cells)} |"


def page(known: list[dict[str, Any]]) -> str:
    """Return the table, as Markdown."""
    order = sorted(known, key=lambda f: (f["hosts"], WAYS.index(f["way"]), f["day"]))
    machines = sorted({(f["day"], f["machine"]) for f in known})
    return "\n".join(
        [
            "# Behind gateways, and from here",
            "",
            "`remedy check` of hosts that need nothing, by `python -m benchmarks.gateways`, one round a row,",
            "other work beside; what is counted, and what stands in for ssh, is in the module's docstring, ten",
            "million additions in Python are as of [scale.md](scale.md). Last is the commit measured.",
            "",
            "The goal is 5 ms a host with 10,000 of them behind 16 gateways.",
            "",
            *(f"- {day}: {machine}" for day, machine in machines),
            "",
            f"| {' | '.join((*COLUMNS, 'commit'))} |",
            f"| --- {'| ---: ' * (len(COLUMNS) - 1)}| --- |",
            *map(row, order),
            "",
        ]
    )


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--gateways", type=int, default=16)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["gateways"])
    arguments = parser.parse_args()
    known = json.loads(DATA.read_text()) if DATA.exists() else []
    for size in arguments.hosts:
        for way in arguments.ways:
            if way == "gateways":
                figures = measured(size, arguments.gateways, "check")
            else:
                figures = scale.measured(size, "check", *(["--jump"] if way == "jump" else []))
            figures |= scale.where()
            if way == "flat":
                scale.keep(size, "check", figures)
            figures |= {"way": way, "hosts": size, "gateways": arguments.gateways}
            figures.pop("tail", None)
            print(row(figures), flush=True)
            known.append(figures)
            DATA.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
            RESULT.write_text(page(known))


if __name__ == "__main__":
    main()
