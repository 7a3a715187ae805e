"""Processes of this machine that stand for the hosts of a verification."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.errors import RemedyError
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.script import script
from remedy.verify.onhost.agent import host_marker
from remedy.verify.onhost.procs import LISTEN, marked, read, sockets
from remedy.verify.verdict import Verdict

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the agent reads /proc: Linux only")
HAS_TORCH = importlib.util.find_spec("torch") is not None
NO_TORCH = "torch is not installed here: pip install 'remedy-cluster[torch]'"
NEEDS = [LINUX, pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)]
# Gives what follows the boot-id of the file $1 and the name $2.
OWN = 'hostname "$2" && mount --bind "$1" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@"'


@dataclass(frozen=True)
class LocalOutput:
    """What the transport would give: see ``remedy.transport.Output``."""

    host: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    error: RemedyError | None = None


class Hosts:
    """The processes that stand for the hosts of one plan.

    Args:
        plan: who takes part.
        tmp_path: where they have their files.
        networks: the network namespace of each host; none where all share this machine's.
    """

    def __init__(
        self, plan: RankPlan, tmp_path: Path, networks: Mapping[str, str] | None = None
    ) -> None:
        self.plan = plan
        self.tmp = tmp_path
        self.networks = networks or {}
        self.began = time.monotonic()
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str, own_boot_id: bool = True, **environment: str) -> None:
        """Start the scripts of these hosts as the transport does: a shell under a time limit.

        Args:
            names: the hosts.
            own_boot_id: whether each sees a boot-id and a host name of its own, where root allows it.
            environment: what they have beside this process's; ``{host}`` in a value is the host's name.
        """
        for node, host in enumerate(self.plan.hosts):
            if host.name not in names:
                continue
            command = ["timeout", "-k", "5", "120", "sh", "-s"]
            if own_boot_id and os.geteuid() == 0:
                boot_id = self.tmp / f"boot_id.{host.name}"
                boot_id.write_text(f"{uuid.uuid4()}\n")
                own = ["unshare", "-m", "-u", "sh", "-c", OWN, "sh", str(boot_id), host.name]
                command = [*own, *command]
            if host.name in self.networks:
                command = ["nsenter", f"--net=/run/netns/{self.networks[host.name]}", *command]
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    **os.environ,
                    "TMPDIR": str(self.tmp),
                    **{name: value.format(host=host.name) for name, value in environment.items()},
                },
            )
            self.running[host.name] = process
            assert process.stdin is not None
            process.stdin.write(script(self.plan, node).encode())
            process.stdin.close()
            process.stdin = None

    def outputs(self) -> dict[str, LocalOutput]:
        """Wait for all, as the transport does."""
        outputs: dict[str, LocalOutput] = {}
        for name, process in self.running.items():
            stdout, stderr = process.communicate(timeout=120)
            outputs[name] = LocalOutput(name, stdout.decode(), stderr.decode(), process.returncode)
        return outputs

    def verdict(self) -> Verdict:
        """Wait for all, and judge."""
        return judge(self.plan, self.outputs(), time.monotonic() - self.began)  # type: ignore[arg-type]

    def marker(self, name: str) -> str:
        """``NAME=value`` of a host's processes of this run."""
        node = [host.name for host in self.plan.hosts].index(name)
        return host_marker({"nonce": self.plan.nonce, "node": node})

    def tree(self) -> list[int]:
        """Everything that carries a marker of this run."""
        return [pid for host in self.plan.hosts for pid in marked(self.marker(host.name))]

    def kill(self) -> None:
        """End whatever a test has left."""
        for process in self.running.values():
            process.kill()
        for pid in self.tree():
            os.kill(pid, signal.SIGKILL)

    def worker(self, name: str) -> int:
        """The process id of a host's worker, once it has reached the rendezvous."""
        node = [host.name for host in self.plan.hosts].index(name)
        found: list[int] = []

        def there() -> bool:
            for pid in self.tree():
                command = read(f"/proc/{pid}/cmdline").split(b"\0")
                rank = f"RANK={node}".encode() in read(f"/proc/{pid}/environ").split(b"\0")
                if rank and any(part.endswith(b"/worker.py") for part in command):
                    found.append(pid)
            return bool(found)

        wait_for(there, 30)
        return found[0]

    def assert_nothing_left(self, within: float = 6.0) -> None:
        """No process, no folder, no listener on the rendezvous port."""
        wait_for(lambda: not self.tree() and not list(self.tmp.glob("remedy-verify-*")), within)
        port = self.plan.port
        assert not [s for s in sockets() if s.state == LISTEN and s.local[1] == port]


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
