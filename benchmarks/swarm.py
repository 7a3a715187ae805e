"""Thousands of ssh endpoints in one process, to measure what a fleet costs the controller.

    python -m benchmarks.swarm serve N FOLDER RECORDED [--domain rack1.example] [--broken SHARE]
                                                     [--port 2222] [--jump]
    python -m benchmarks.swarm cost FOLDER COMMAND...

``serve`` makes N hosts on 127.x.y.z port 2222 (or --port, REMEDY_SWARM_PORT), writes inventory.py, remedy.yaml
and known_hosts into FOLDER, prints "ready" and answers until it is ended. ``cost`` runs a command in FOLDER and
prints its wall seconds, its own CPU seconds and its peak memory as JSON. When ``serve`` is ended it leaves the
bytes that it was asked and that it answered in FOLDER/traffic.json. ``benchmarks/scale.py`` does all of it for
fleets of several sizes.
With ``--jump`` one more of them is the login node through which the others are reached (ProxyJump).

RECORDED is a decoded answer of the probe (tests/unit/data/probe/lab-idle.txt). An endpoint follows the protocol
of the probe: it prints the marks of its command line, takes the script, finds the nonce in it and answers as a
healthy host whose name and hosts file are right, so that there is nothing to do there; ``--broken`` is the
share of hosts that have no peers in their hosts file, until a script of changes comes, which a host says it has
made. A script of the verification is answered by ``benchmarks/ranks.py``: calls between hosts, and ranks that
meet. Any other script gets no answer. Endpoints cost one exchange of keys and some text each, on the cores of
the controller: seconds on the wall say little, and nothing is said about the work of a host.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.pieces import gzipped
from benchmarks.ranks import Meetings, Member, config_of
from deploys._hosts_block import HostsBlock, HostsEntry
from remedy.edit.hosts import managed_block
from remedy.probe.blocks import SECTION
from remedy.probe.request import mark

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "unit" / "data" / "probe" / "lab-idle.txt"
# Another one for a second swarm on the same machine.
PORT = int(os.environ.get("REMEDY_SWARM_PORT", "2222"))
ZERO = "0" * 32
PATIENCE = 1800
LOOPBACK = "127.0.0.1\tlocalhost\n::1     localhost ip6-localhost ip6-loopback\n"
# Around the name of what a host fills in, where the recorded answer has what its own host had there.
_SIGN = "\1"
# The host through which all others are reached, with --jump; it is none of them.
HEAD = "127.0.0.1"
# Hosts of a network, and networks of the next larger one, as they are numbered.
IN_A_NETWORK = 250


def _numbered(first: int, number: int) -> str:
    networks, host = divmod(number, IN_A_NETWORK)
    return f"{first + networks // IN_A_NETWORK}.{networks % IN_A_NETWORK}.{host + 1}"


_JUMP = """\
Host head
  HostName {head}
  Port {port}
  User root
  IdentityFile {folder}/id
  UserKnownHostsFile {folder}/known_hosts
Host 127.*
  ProxyJump head
"""


def _field(name: str) -> str:
    return f"{_SIGN}{name}{_SIGN}"


def _size_of(path: str) -> str:
    return rf"(?m)^(81a4 0 0 )\d+(?=(?: .*)? {re.escape(path)}$)"


# What the recorded host says of itself, and what stands in its place, behind the first group.
_FIELDS = (
    (r"(?m)^()\d{10}\.\d{9}$", _field("clock")),
    (_size_of("/etc/hostname"), _field("size of name")),
    (_size_of("/etc/hosts"), _field("size of hosts")),
    (rf"(@{ZERO} begin {SECTION} .*\n)", _field("around")),
    (rf"(@{ZERO} end {SECTION} \S+ )none .*", _field("is around")),
    (r"(/etc/hostname:)node\n", f"{_field('name')}\n{_field('hosts')}"),
    (r"(/proc/sys/kernel/hostname:)node", _field("name")),
    (r"(/etc/machine-id:)[0-9a-f]{32}", _field("machine-id")),
    (r"(boot_id:)[0-9a-f-]{36}", _field("boot-id")),
    (r"()02:4c:41:42:02:01", _field("card")),
    (r"()\b10\.214\.\d+\.11\b", _field("address")),
    (r"()\b10\.213\.\d+\.11\b", _field("address for ssh")),
    (rf"(@){ZERO}", _field("nonce")),
)


def _filled(parts: Sequence[str], values: Mapping[str, str]) -> bytes:
    """Return a text of which every second part is the name of a value."""
    filled = (values[part] if at % 2 else part for at, part in enumerate(parts))
    return "".join(filled).encode("utf-8", "surrogateescape")


def _printed(content: str) -> tuple[int, bytes]:
    lines = "".join(f"/etc/hosts:{line}\n" for line in content.splitlines())
    return len(content), lines.encode()


@dataclass(frozen=True)
class Swarm:
    """Hosts that answer.

    Args:
        count: how many.
        recorded: the decoded answer of one host.
        domain: what their names end in; "" for nothing.
        broken: the share of them, from 0 to 1, that have no peers in their hosts file.
        port: of their sshd.
    """

    count: int
    recorded: str
    domain: str = ""
    broken: float = 0.0
    port: int = PORT
    repaired: set[int] = field(default_factory=set)

    def name(self, number: int) -> str:
        """The name of a host."""
        return f"gpu{number:05}" + (f".{self.domain}" if self.domain else "")

    def door(self, number: int) -> str:
        """The address at which ssh finds a host."""
        return f"127.{_numbered(1, number)}"

    def address(self, number: int) -> str:
        """The cluster address of a host."""
        return f"10.{_numbered(1, number)}"

    def member(self, number: int) -> Member:
        """Who a host is, as its ranks say it."""
        return Member(self.name(number), f"{number:08x}-0000-4000-8000-000000000000")

    @cached_property
    def block(self) -> str:
        """The block of a hosts file that is right."""
        entries = []
        for number in range(self.count):
            name = self.name(number)
            names = tuple(dict.fromkeys((name, name.split(".")[0])))
            entries.append(HostsEntry(self.address(number), names))
        return managed_block(HostsBlock(tuple(entries)).text).decode()

    def is_broken(self, number: int) -> bool:
        """Whether a host has no peers in its hosts file; these are spread evenly, until they are repaired."""
        return number not in self.repaired and int((number + 1) * self.broken) > int(
            number * self.broken
        )

    @cached_property
    def _form(self) -> tuple[list[str], list[str]]:
        """The recorded answer around the lines of the hosts file; every second part is what a host fills in."""
        text = re.sub(r"(?m)^/etc/hosts:.*\n", "", self.recorded)
        # All are in one network, which a recorded lab of a few hosts had no need of.
        text = re.sub(r'("local":"10\.214\.\d+\.11","prefixlen":)24', r"\g<1>8", text)
        text = re.sub(r"10\.214\.\d+\.0/24", "10.0.0.0/8", text)
        first = text.index("\n", text.index(f"@{ZERO} begin names")) + 1
        last = text.index(f"\n@{ZERO} end names")
        text = text[:first] + _field("names") + text[last:]
        for pattern, there in _FIELDS:
            text, count = re.subn(pattern, rf"\g<1>{there}", text)
            if not count:
                raise ValueError(f"the recorded answer has nothing that is {pattern}")
        before, _, after = text.partition(_field("hosts"))
        return before.split(_SIGN), after.split(_SIGN)

    @cached_property
    def _marks(self) -> str:
        marks = (mark(at) for at in range(1, self.count + 1))
        return "".join(f"{sign:<15} STREAM {sign}\n" for sign in marks)

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.block.encode()).hexdigest()

    @cached_property
    def _around_block(self) -> str:
        whole = hashlib.sha256((LOOPBACK + self.block).encode()).hexdigest()
        return f"{LOOPBACK.count(chr(10)) + 1} {self._digest} {whole}\n{LOOPBACK}"

    @cached_property
    def _hosts_broken(self) -> tuple[int, bytes]:
        return _printed(LOOPBACK)

    @cached_property
    def _hosts_right(self) -> tuple[int, bytes]:
        return _printed(LOOPBACK + self.block)

    def _body(self, number: int, nonce: str, digests: Sequence[str]) -> tuple[bytes, bytes, bytes]:
        """Return the decoded answer of a host: what is before its hosts file, that, and what follows."""
        size, lines = self._hosts_broken if self.is_broken(number) else self._hosts_right
        around = "" if self.is_broken(number) or self._digest not in digests else self._around_block
        lines = b"" if around else lines
        name, now = self.name(number), time.time_ns()
        values = {
            "nonce": nonce,
            "clock": f"{now // 10**9}.{now % 10**9:09}",
            "name": name,
            "size of name": str(len(name) + 1),
            "size of hosts": str(size),
            "machine-id": f"{number + 1:032x}",
            "boot-id": self.member(number).boot_id,
            "card": f"02:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}:02:01",
            "address": self.address(number),
            "address for ssh": f"172.{_numbered(16, number)}",
            "names": self._names(number),
            "around": around,
            "is around": "ok " if around else "none the block is another",
        }
        before, after = (_filled(parts, values) for parts in self._form)
        return before, lines, after

    def _names(self, number: int) -> str:
        """Return what the host's resolver says: the own name, and that all others are as the file says."""
        name, ends = self.name(number), mark(0)
        answer = f"{self.address(number):<15} STREAM {name}\n{ends:<15} STREAM {ends}\nasked root\n"
        answer += f"whole {mark(1)} {mark(self.count)}\n"
        return answer if not self.is_broken(number) else answer + self._marks

    def answer(self, number: int, script: str) -> str:
        """Return what a host prints for a script; "" for one that is neither a probe nor makes changes."""
        match = re.search(r"(?m)^nonce='?([0-9a-f]{32})'?$", script)
        if match is None:
            return self._changed(number, script)
        digests = re.search(r"(?m)^block_digests='?([0-9a-f\n]*)'?$", script)
        asked = digests[1].split("\n") if digests else ()
        packed = gzipped(*self._body(number, match[1], asked))
        lines = base64.b64encode(packed).decode()
        return f"\nremedy-probe {match[1]} gzip\n{lines}\n\nremedy-probe {match[1]} end\n"

    def _changed(self, number: int, script: str) -> str:
        """Return the report of a host that made all changes of a script; then its hosts file is right."""
        job = re.search(r"(?m)^NONCE=([0-9a-z]+)$", script)
        made = re.findall(r"(?m)^make \w+ (\d\S+) ", script)
        if job is None or not made:
            return ""
        self.repaired.add(number)
        lines = [*(f"{change} done" for change in dict.fromkeys(made)), "- finished"]
        return "".join(f"{job[1]} {line}\n" for line in lines)


def write_files(swarm: Swarm, folder: Path, host_key: str, *, jump: bool = False) -> None:
    """Write what finds the hosts: inventory.py, known_hosts, and the key of the user.

    Args:
        swarm: the hosts.
        folder: where.
        host_key: of all of them.
        jump: whether they are reached through one host (ProxyJump).
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "id"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (folder / "authorized").write_text((folder / "id.pub").read_text())
    numbers = range(swarm.count)
    doors = [HEAD, *map(swarm.door, numbers)]
    (folder / "known_hosts").write_text(
        "".join(f"[{door}]:{swarm.port} {host_key}\n" for door in doors)
    )
    hosts = [
        (
            swarm.name(number),
            {"ssh_hostname": swarm.door(number), "cluster_address": swarm.address(number)},
        )
        for number in numbers
    ]
    shared = {
        "ssh_user": "root",
        "ssh_port": swarm.port,
        "ssh_key": str(key),
        "ssh_known_hosts_file": str(folder / "known_hosts"),
    }
    if jump:
        config = folder / "ssh_config"
        config.write_text(_JUMP.format(head=HEAD, port=swarm.port, folder=folder))
        shared["ssh_config_file"] = str(config)
    (folder / "inventory.py").write_text(f"hosts = ({hosts!r}, {shared!r})\n")
    # All endpoints are one process, which may be waited for as no host is.
    stages = ("connect", "key_exchange", "login", "channel", "command", "silence")
    limits = "".join(f"  {stage}: {PATIENCE}\n" for stage in stages)
    (folder / "remedy.yaml").write_text(f"ssh:\n{limits}")


async def serve(swarm: Swarm, folder: Path, *, jump: bool = False) -> None:
    """Answer as the hosts until somebody ends this."""
    import asyncssh

    host_key = asyncssh.generate_private_key("ssh-ed25519")
    write_files(swarm, folder, host_key.export_public_key().decode().strip(), jump=jump)
    numbers = {swarm.door(number): number for number in range(swarm.count)}

    meetings = Meetings()
    traffic = {"commands": 0, "asked": 0, "answered": 0}

    async def handle(process: Any) -> None:
        number = numbers[process.get_extra_info("sockname")[0]]
        marks = re.findall(r"remedy-(?:shell|script)-[0-9a-f]{16}", process.command)
        if not marks:  # a fact of another tool, such as uname -n
            process.stdout.write(f"{swarm.name(number)}\n")
            process.exit(0)
            return
        shell, script = (next(m for m in marks if kind in m) for kind in ("shell", "script"))
        process.stderr.write(f"\n{shell}\n")
        process.stdout.write(f"\n{shell}\n{script}\n")
        asked = await process.stdin.read()
        config = config_of(asked)
        if config is None:
            answered = swarm.answer(number, asked)
        else:
            answered = await meetings.answer(config, swarm.member(number))
        process.stdout.write(answered)
        # The exit code would overtake what waits for its window.
        await process.stdout.drain()
        process.exit(0)
        for what, count in (("commands", 1), ("asked", len(asked)), ("answered", len(answered))):
            traffic[what] += count

    class Door(asyncssh.SSHServer):
        def connection_requested(self, *_: object) -> bool:
            """Let connections through to hosts, as a login node does."""
            return True

    await asyncssh.listen(
        "0.0.0.0",  # noqa: S104  (each host is an address of the loopback network)
        swarm.port,
        server_factory=Door,
        server_host_keys=[host_key],
        authorized_client_keys=str(folder / "authorized"),
        process_factory=handle,
        backlog=4096,
        login_timeout=600,
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print("ready", flush=True)
    await ended.wait()
    (folder / "traffic.json").write_text(json.dumps(traffic))


def cost(folder: Path, command: list[str]) -> dict[str, Any]:
    """Run a command; return its exit code, seconds, processor seconds, MiB, and the end of what it said."""
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "rc": done.returncode,
        "wall": round(seconds, 2),
        "cpu": round(usage.ru_utime + usage.ru_stime, 2),
        "rss_mib": usage.ru_maxrss // 1024,
        "tail": done.stdout[-300:] + done.stderr[-300:],
    }


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve")
    serving.add_argument("count", type=int)
    serving.add_argument("folder", type=Path)
    serving.add_argument("recorded", type=Path)
    serving.add_argument("--domain", default="")
    serving.add_argument("--broken", type=float, default=0.0)
    serving.add_argument("--port", type=int, default=PORT)
    serving.add_argument("--jump", action="store_true")
    costing = commands.add_parser("cost")
    costing.add_argument("folder", type=Path)
    costing.add_argument("words", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.command == "serve":
        recorded = arguments.recorded.read_text(encoding="utf-8", errors="surrogateescape")
        swarm = Swarm(arguments.count, recorded, arguments.domain, arguments.broken, arguments.port)
        asyncio.run(serve(swarm, arguments.folder, jump=arguments.jump))
    else:
        print(json.dumps(cost(arguments.folder, arguments.words)))


if __name__ == "__main__":
    main()
