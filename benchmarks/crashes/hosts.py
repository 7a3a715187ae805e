"""Crash points on lab hosts: the controller killed, the connection cut, the host's power gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crashes.bench import FOREIGN, Outcome
from benchmarks.harness.cluster import Cluster, each
from remedy.audit.journal import FILE_NAME, verify_chain
from remedy.audit.story import read_stories
from remedy.lab.host import FRESH_HOSTS, FRESH_NAME, Host

BEFORE = FRESH_HOSTS.encode() + FOREIGN
READ = "cat /etc/hosts; echo ==; cat /etc/hostname; uname -n"
LEFT = "ls -A /etc | grep '^.remedy[.]'; ls -d /var/lib/remedy/owner /var/lib/remedy/dead.* 2>/dev/null; :"
# The cut and the loss of power come while a host works: there each flush takes that long.
SLOW = (
    "printf '#!/bin/sh\\nsleep %s\\nexec /usr/bin/sync \"$@\"\\n' {seconds} >/usr/local/bin/sync;"
    " chmod 755 /usr/local/bin/sync"
)
FRESH = (
    "rm -rf /var/lib/remedy /var/log/remedy.jsonl /usr/local/bin/sync /etc/.remedy.*;"
    f" echo {FRESH_NAME} >/etc/hostname; hostname {FRESH_NAME}; cat >/etc/hosts"
)
REMEDY = Path(sys.executable).with_name("remedy")
APPLY = ("apply", "inventory.py", "--yes", "--no-verify")
# Within this a host has ended what it was at when its controller died.
QUIET_SECONDS = 60.0


@dataclass
class Site:
    """Lab hosts with an inventory, and the command on them."""

    cluster: Cluster

    @property
    def hosts(self) -> list[Host]:
        """The lab's hosts."""
        return list(self.cluster.lab.hosts())

    @property
    def home(self) -> Path:
        """Where the journal is."""
        return self.cluster.folder / ".remedy"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command in the folder of the inventory."""
        return subprocess.Popen(
            words,
            cwd=self.cluster.folder,
            env={**self.cluster.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def remedy(self, *words: str) -> int:
        """Run remedy to its end, and return its exit code."""
        return self.start(str(REMEDY), *words).wait()

    def fresh(self) -> None:
        """Put the hosts and the folder back to what they were before the run."""
        each(self.hosts, lambda host: host.run(["sh", "-c", FRESH], stdin=BEFORE.decode()))
        subprocess.run(["rm", "-rf", str(self.home)], check=True)

    def states(self) -> list[str]:
        """Return what each host holds."""
        return each(self.hosts, lambda host: host.run(["sh", "-c", READ]).stdout)

    def quiet(self) -> None:
        """Wait until no host works for a controller any more."""
        end = time.monotonic() + QUIET_SECONDS
        while any(each(self.hosts, lambda h: h.run("pgrep -f '[s]h -s'").stdout)):
            if time.monotonic() > end:
                raise TimeoutError("a host is still at work for a controller that is gone")
            time.sleep(0.1)


class Sweep:
    """Crashes of one run on lab hosts, and what the next command makes of each.

    Args:
        cluster: the hosts, up.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.site = Site(cluster)
        self.site.fresh()
        self.before = self.site.states()
        if self.site.remedy(*APPLY) != 0:
            raise RuntimeError("the run that the sweep is about does not work on this lab")
        self.after = self.site.states()

    def controllers(self) -> Iterator[Outcome]:
        """Yield what follows from killing the controller at each of its boundaries."""
        count = self.site.cluster.folder / "count"
        words = [sys.executable, "-m", "benchmarks.crashes.controller"]
        self.site.fresh()
        self.site.start(*words, "0", str(count), *APPLY).wait()
        for at in range(1, int(count.read_text()) + 1):
            self.site.fresh()
            died = self.site.start(*words, str(at), str(count), *APPLY).wait()
            if died == -signal.SIGKILL:
                yield self.judge("the controller, kill -9", f"boundary {at}", back=at % 2 == 0)

    def cuts(self, points: int) -> Iterator[Outcome]:
        """Yield what follows from a connection that is cut while a host makes its changes."""
        kill = "pkill -9 -f 'sshd: root@notty'"
        yield from self._while_working(points, "ssh cut", lambda host: host.run(kill) and None)

    def powers(self, points: int) -> Iterator[Outcome]:
        """Yield what follows from a host whose power goes while it makes its changes."""

        def off(host: Host) -> None:
            self.site.cluster.lab.kill(host.name)
            self.site.cluster.lab.start(host.name)

        yield from self._while_working(points, "the host powered off", off)

    def _while_working(
        self, points: int, kind: str, strike: Callable[[Host], None]
    ) -> Iterator[Outcome]:
        victim = self.site.hosts[0]
        for number in range(points):
            self.site.fresh()
            victim.run(["sh", "-c", SLOW.format(seconds=0.4)])
            run = self.site.start(str(REMEDY), *APPLY)
            end = time.monotonic() + QUIET_SECONDS
            while victim.run("test -e /var/lib/remedy/lock").returncode != 0:
                if time.monotonic() > end:
                    raise TimeoutError("the host did not begin to work")
            time.sleep(0.05 * number)
            strike(victim)
            run.wait()
            victim.run("rm -f /usr/local/bin/sync")
            yield self.judge(kind, f"{50 * number} ms after the host began", back=number % 2 == 0)

    def judge(self, kind: str, point: str, *, back: bool) -> Outcome:
        """Look at what a crash left, run the next command, and look again."""
        self.site.quiet()
        crashed = each(self.site.hosts, lambda host: host.read("/etc/hosts"))
        good = [
            {state.partition("\n==")[0] + "\n" for state in pair}
            for pair in zip(self.before, self.after, strict=True)
        ]
        half = [
            host.name
            for host, now, states in zip(self.site.hosts, crashed, good, strict=True)
            if now.decode() not in states
        ]
        runs = read_stories(self.site.home / FILE_NAME)
        story = next(iter(runs.values()), None)
        back = back and story is not None and bool(story.used)
        if back and story is not None:
            self.site.remedy("rollback", story.run, "inventory.py", "--yes")
        else:
            self.site.remedy(*APPLY)
        reached = self.site.states() == (self.before if back else self.after)
        lost = sum(FOREIGN not in host.read("/etc/hosts") for host in self.site.hosts)
        left = [line for host in self.site.hosts for line in host.run(LEFT).stdout.split()]
        problem = verify_chain(self.site.home / FILE_NAME)[1]
        left += [problem] if problem else []
        what = "rollback" if back else "apply"
        return Outcome(point, kind, what, reached, tuple(half), lost, tuple(left))
