"""The command ``remedy`` on lab hosts, and what is true on the hosts themselves."""

from __future__ import annotations

import base64
import json
import os
import re
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import stub
from tests.lab import forks
from tests.lab.conftest import Cluster

COMMAND = Path(sysconfig.get_path("scripts")) / "remedy"
BEGIN, END = b"# BEGIN remedy", b"# END remedy"
DISABLED = b"#remedy disabled# "


@dataclass(frozen=True)
class RemedyOutput:
    """What a command said, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document that it has to be."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def text(self) -> str:
        """Everything that people see."""
        return self.stdout + self.stderr


@dataclass(frozen=True)
class HostNames:
    """What a host is called and what is in its files, read on the host without remedy.

    Args:
        running: the kernel's name.
        static: the bytes of /etc/hostname.
        hosts: the bytes of /etc/hosts.
        owner_mode: of /etc/hosts, links followed.
        link: where /etc/hosts leads to, "" where it is no link.
    """

    running: str
    static: bytes
    hosts: bytes
    owner_mode: str
    link: str


@dataclass(frozen=True)
class Site:
    """An inventory in a folder of its own, and the hosts that it lists."""

    cluster: Cluster

    @property
    def inventory(self) -> Path:
        """The inventory file."""
        return self.cluster.inventory_path

    @property
    def folder(self) -> Path:
        """The folder that the inventory is in."""
        return self.inventory.parent

    def command(self, name: str, *words: str) -> list[str]:
        """Return the command line of ``remedy NAME [RUN] INVENTORY WORDS``."""
        run = [words[0]] if name in ("rollback", "unlock") else []
        return [str(COMMAND), *name.split(), *run, str(self.inventory), *words[len(run) :]]

    def remedy(self, name: str, *words: str, stdin: str = "", seconds: float = 180) -> RemedyOutput:
        """Run a command of remedy on the inventory to its end, without a terminal."""
        return self.run(*self.command(name, *words), stdin=stdin, seconds=seconds)

    def show(self, run: str) -> RemedyOutput:
        """Show a run, with what the hosts noted of it."""
        return self.run(str(COMMAND), "show", run, "--inventory", str(self.inventory))

    def run(self, *command: str, stdin: str = "", seconds: float = 180) -> RemedyOutput:
        """Run a command line to its end, without a terminal."""
        environment = {**os.environ, "COLUMNS": "200"}
        done = forks.run(
            command,
            stdin=stdin,
            seconds=seconds,
            environment=environment,
            forked=command[0] == str(COMMAND),
        )
        answer = RemedyOutput(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in answer.text, answer.text
        return answer

    def names(self, host: str) -> HostNames:
        """Read what a host is called and what its files hold."""
        look = (
            "uname -n; base64 -w0 /etc/hostname; echo; base64 -w0 /etc/hosts; echo;"
            " stat -L -c %u:%g:%a /etc/hosts; readlink /etc/hosts || echo"
        )
        running, static, hosts, mode, link = self.cluster.run(host, look).stdout.splitlines()
        return HostNames(running, base64.b64decode(static), base64.b64decode(hosts), mode, link)

    def all_names(self) -> dict[str, HostNames]:
        """Read the names of every host."""
        return {host: self.names(host) for host in self.cluster.hosts}

    def resolved(self, host: str) -> dict[str, str]:
        """Return the first address that getent gives on ``host`` for each host of the lab."""
        names = " ".join(self.cluster.hosts)
        look = f"for n in {names}; do set -- $(getent ahostsv4 $n); echo $n $1; done"
        lines = self.cluster.run(host, look).stdout.splitlines()
        return {words[0]: "".join(words[1:]) for words in map(str.split, lines)}

    def addresses(self) -> dict[str, str]:
        """Return the cluster address of each host of the lab."""
        return {one.name: one.cluster_address for one in self.cluster.lab.record().hosts}

    def assert_right(self, *hosts: str, addresses: Mapping[str, str] | None = None) -> None:
        """Look at the hosts themselves: each one's name, and how it resolves everybody's."""
        for host in hosts or self.cluster.hosts:
            names = self.names(host)
            assert (names.running, names.static) == (host, f"{host}\n".encode())
            assert self.resolved(host) == dict(addresses or self.addresses())

    def copies(self, host: str) -> str:
        """Return what a run that is at work, or one that was cut off, has beside the files it writes."""
        return self.cluster.run(host, "ls -d /etc/.remedy.* /etc/site/.remedy.* 2>/dev/null").stdout

    def log_sessions(self) -> dict[str, str]:
        """Have every host's sshd write each session into its journal; return from where on."""
        marks = {}
        for host in self.cluster.hosts:
            self.cluster.host(host).must(
                "echo LogLevel VERBOSE >/etc/ssh/sshd_config.d/0-test.conf; systemctl reload ssh"
            )
            last = self.cluster.host(host).must(
                "journalctl --sync; journalctl -q -n 0 --show-cursor"
            )
            marks[host] = last.partition("cursor: ")[2].strip()
        return marks

    def sessions(self, marks: Mapping[str, str]) -> dict[str, Counter[str]]:
        """Return how many connections and commands each host's sshd has seen since ``log_sessions``."""
        seen = {}
        for host, mark in marks.items():
            log = self.cluster.host(host).must(
                f"journalctl --sync; journalctl -q -o cat -t sshd -t sshd-session --after-cursor '{mark}'"
            )
            self.cluster.host(host).must(
                "rm /etc/ssh/sshd_config.d/0-test.conf; systemctl reload ssh"
            )
            seen[host] = Counter(
                accepted=len(re.findall("^Accepted publickey ", log, re.M)),
                session=len(re.findall("^Starting session: ", log, re.M)),
            )
        return seen

    def edit_inventory(self, data: Mapping[str, Mapping[str, object]]) -> None:
        """Give hosts of the inventory other data."""
        with self.inventory.open("a", encoding="utf-8") as file:
            file.write(
                f"_own = {dict(data)!r}\n"
                "gpus = [(_name, {**_data, **_own.get(_name, {})}) for _name, _data in gpus]\n"
            )

    def run_on_stub(self) -> None:
        """Give the hosts an interpreter with a stub of torch: how a run ends needs no torch (docs/tests.md)."""
        hosts = {name: self.cluster.host(name) for name in self.cluster.hosts}
        self.edit_inventory({name: {"python": stub.install(host)} for name, host in hosts.items()})

    def make_ranks_cheap(self) -> None:
        """Have ranks run the stub, which sums little; with ``--full`` they run torch."""
        if forks.WHOLE in os.environ:
            return
        self.run_on_stub()
        with (self.folder / "remedy.yaml").open("a", encoding="utf-8") as file:
            file.write("verify: {sizes: [8]}\n")


def outside_block(hosts: bytes) -> list[bytes]:
    """Return the lines of a hosts file that remedy did not write, line ends and all."""
    lines = hosts.splitlines(keepends=True)
    marks = [at for at, line in enumerate(lines) if line.startswith((BEGIN, END))]
    if not marks:
        return lines
    begin, end = marks
    return lines[:begin] + lines[end + 1 :]


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so, and fail when it is not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.2)
