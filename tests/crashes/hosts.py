"""Crash points on lab hosts: the controller killed, the connection cut, the host's power gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from remedy.audit.journal import FILE_NAME, verify_chain
from remedy.audit.story import read_stories
from remedy.lab.cluster import Lab
from remedy.lab.host import FRESH_HOSTS, Host
from tests.crashes.bench import FOREIGN, Outcome
from tests.lab import forks

T = TypeVar("T")

HOSTS = FRESH_HOSTS.encode() + FOREIGN
# Files that are edited and made, the live value of a setting, and a change that is guarded.
# How long they wait is more than a busy machine needs for the next command.
CONFIRM_SECONDS = 25
SPEC = f"""\
apply: {{confirm_seconds: {CONFIRM_SECONDS}}}
environment: {{interface: auto}}
port_range: {{range: 50000-51000}}
"""
FILES = (
    "/etc/hosts",
    "/etc/hostname",
    "/etc/environment",
    "/etc/nccl.conf",
    "/etc/profile.d/remedy.sh",
    "/etc/sysctl.d/90-remedy-ports.conf",
)
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
READ = (
    f"for f in {' '.join(FILES)}; do"
    ' if [ -e "$f" ]; then echo "$f $(base64 -w0 "$f")"; else echo "$f absent"; fi; done;'
    f" echo name $(uname -n); echo range $(cat {RANGE})"
)
LEFT = (
    "ls -A /etc /etc/profile.d /etc/sysctl.d | grep '^.remedy[.]';"
    " ls -d /var/lib/remedy/owner /var/lib/remedy/pending /var/lib/remedy/dead.*"
    " /etc/systemd/system/remedy-guard.service 2>/dev/null; :"
)
BUSY = "pgrep -f '[s]h -s'; ls /var/lib/remedy/pending 2>/dev/null"
# The cut and the loss of power come while a host works: there whatever goes to the disk takes that long.
SLOW = (
    "for tool in sync dd; do"
    " printf '#!/bin/sh\\nsleep {seconds}\\nexec /usr/bin/'$tool' \"$@\"\\n' >/usr/local/bin/$tool;"
    " chmod 755 /usr/local/bin/$tool; done"
)
STEP_SECONDS = 0.05
KEEP = (
    "cat >/etc/hosts; mkdir -p /root/before;"
    f" for f in {' '.join(FILES)} {RANGE}; do"
    ' [ ! -e "$f" ] || { mkdir -p "/root/before${f%/*}" && cat "$f" >"/root/before$f"; }; done'
)
FRESH = (
    "rm -rf /var/lib/remedy /var/log/remedy.jsonl /usr/local/bin/sync /etc/.remedy.*;"
    f" for f in {' '.join(FILES)} {RANGE}; do"
    ' if [ -e "/root/before$f" ]; then cat "/root/before$f" >"$f"; else rm -f "$f"; fi; done;'
    " hostname $(cat /etc/hostname)"
)
REMEDY = Path(sys.executable).with_name("remedy")
APPLY = ("apply", "inventory.py", "--yes", "--no-verify")
# Within this a host has ended what it was at when its controller died.
QUIET_SECONDS = 60.0
# No command takes that long, not even while guards wait for their time.
RUN_SECONDS = 600.0


@dataclass
class Site:
    """Lab hosts with an inventory, and the command on them.

    Args:
        lab: the hosts, up.
        folder: holds their ``inventory.py``; the commands run in it.
    """

    lab: Lab
    folder: Path

    @property
    def hosts(self) -> list[Host]:
        """The lab's hosts."""
        return self.lab.hosts()

    @property
    def home(self) -> Path:
        """Where the journal is."""
        return self.folder / ".remedy"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command in the folder of the inventory."""
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def remedy(self, *words: str) -> int:
        """Run remedy to its end, and return its exit code."""
        return self.run(*words).returncode

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run remedy to its end, and return how it ended and what it printed."""
        command = [str(REMEDY), *words]
        return forks.run(
            command, stdin="", seconds=RUN_SECONDS, environment=os.environ, folder=self.folder
        )

    def document(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Run remedy with --json, and return its exit code and its document."""
        done = self.run(*words, "--json")
        return done.returncode, json.loads(done.stdout or "{}")

    def waiting(self) -> list[str]:
        """Return the hosts on which something waits for a confirmation, or a timer for its time."""
        look = "ls /var/lib/remedy/pending 2>/dev/null; systemctl list-timers --no-legend 'remedy-guard*'"
        said = each(self.hosts, lambda host: host.run(["sh", "-c", look]).stdout)
        return [host.name for host, text in zip(self.hosts, said, strict=True) if text]

    def fresh(self) -> None:
        """Put the hosts and the folder back to what they were before the run."""
        each(self.hosts, lambda host: host.run(["sh", "-c", FRESH]))
        shutil.rmtree(self.home, ignore_errors=True)

    def keep(self, spec: str) -> None:
        """Keep on each host what it is like before the runs, with a line of others in its hosts file.

        Args:
            spec: what the runs shall do.
        """
        each(self.hosts, lambda host: host.run(["sh", "-c", KEEP], stdin=HOSTS.decode()))
        (self.folder / "remedy.yaml").write_text(spec, encoding="utf-8")

    def states(self) -> list[dict[str, str]]:
        """Return what each host holds, in words that can be compared."""
        told = each(self.hosts, lambda host: host.run(["sh", "-c", READ]).stdout)
        return [dict(line.split(" ", 1) for line in text.splitlines()) for text in told]

    def quiet(self) -> None:
        """Wait until no host works for a controller any more, and none waits to be confirmed."""
        end = time.monotonic() + QUIET_SECONDS
        while any(each(self.hosts, lambda host: host.run(["sh", "-c", BUSY]).stdout)):
            if time.monotonic() > end:
                raise TimeoutError("a host is still at work for a controller that is gone")
            time.sleep(0.1)


@dataclass(frozen=True)
class AtOnce:
    """What was said and done right after a controller was killed.

    Args:
        point: where it was killed.
        checked: the status of each host by a check right after it, and ``check_code`` its exit code.
        waiting: the hosts on which something waited for a confirmation after that check.
        code: the exit code of the next command, and ``answer`` its document.
        left: the hosts on which something waits after it.
        states: of the hosts after it.
    """

    point: str
    checked: dict[str, str]
    check_code: int
    waiting: list[str]
    code: int
    answer: dict[str, Any]
    left: list[str]
    states: list[dict[str, str]]


class Sweep:
    """Crashes of one run on lab hosts, and what the next command makes of each.

    Args:
        site: the hosts, up.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.site.keep(SPEC)
        self.before = self.site.states()
        if self.site.remedy(*APPLY) != 0:
            raise RuntimeError("the run that the sweep is about does not work on this lab")
        self.after = self.site.states()

    def boundaries(self) -> int:
        """Return how many boundaries the controller of a run has."""
        count = self.site.folder / "count"
        self.site.fresh()
        words = (sys.executable, "-m", "tests.crashes.controller", "0", str(count))
        self.site.start(*words, *APPLY).wait()
        return int(count.read_text())

    def controllers(self, points: int | None) -> Iterator[Outcome]:
        """Yield what follows from killing the controller at its boundaries.

        Args:
            points: so many of them, evenly over the run; None is all.
        """
        count = self.site.folder / "count"
        words = [sys.executable, "-m", "tests.crashes.controller"]
        every = range(1, self.boundaries() + 1)
        for at in every if points is None else every[:: len(every) // points]:
            self.site.fresh()
            died = self.site.start(*words, str(at), str(count), *APPLY).wait()
            if died == -signal.SIGKILL:
                yield self.judge("the controller, kill -9", f"boundary {at}", back=at % 2 == 0)

    def at_once(self, points: Iterable[str], *words: str) -> Iterator[AtOnce]:
        """Yield what a command says and does right after the controller of a guarded change was killed.

        Args:
            points: boundaries of the controller, by number or stage.
            words: the command, after a check; "RUN" stands for the run that was cut off.
        """
        count = self.site.folder / "count"
        for at in points:
            self.site.fresh()
            controller = (sys.executable, "-m", "tests.crashes.controller", at, str(count))
            if self.site.start(*controller, *APPLY).wait() != -signal.SIGKILL:
                continue
            run = next(iter(read_stories(self.site.home / FILE_NAME)), "")
            checked, document = self.site.document("check", "inventory.py")
            waiting = self.site.waiting()
            asked = [run if word == "RUN" else word for word in words]
            code, answer = self.site.document(*asked)
            yield AtOnce(
                at,
                {name: entry["status"] for name, entry in document["hosts"].items()},
                checked,
                waiting,
                code,
                answer,
                self.site.waiting(),
                self.site.states(),
            )

    def cuts(self, points: Iterable[int]) -> Iterator[Outcome]:
        """Yield what follows from a connection that is cut while a host makes its changes.

        Args:
            points: when, in steps of ``STEP_SECONDS`` after it began.
        """
        kill = "pkill -9 -f 'sshd: root@notty'"
        yield from self._while_working(points, "ssh cut", lambda host: host.run(kill))

    def powers(self, points: Iterable[int]) -> Iterator[Outcome]:
        """Yield what follows from a host whose power goes while it makes its changes.

        Args:
            points: as for ``cuts``.
        """

        def off(host: Host) -> None:
            self.site.lab.kill(host.name)
            self.site.lab.start(host.name)

        yield from self._while_working(points, "the host powered off", off)

    def _while_working(
        self, points: Iterable[int], kind: str, strike: Callable[[Host], object]
    ) -> Iterator[Outcome]:
        victim = self.site.hosts[0]
        for number in points:
            self.site.fresh()
            victim.run(["sh", "-c", SLOW.format(seconds=0.5)])
            run = self.site.start(str(REMEDY), *APPLY)
            end = time.monotonic() + QUIET_SECONDS
            while victim.run("test -e /var/lib/remedy/lock").returncode != 0:
                if time.monotonic() > end:
                    raise TimeoutError("the host did not begin to work")
            time.sleep(STEP_SECONDS * number)
            strike(victim)
            if run.wait() == 0:
                continue  # it had ended before it was struck
            victim.run("rm -f /usr/local/bin/sync")
            point = f"{1000 * STEP_SECONDS * number:.0f} ms after the host began"
            yield self.judge(kind, point, back=number % 2 == 0)

    def judge(self, kind: str, point: str, *, back: bool) -> Outcome:
        """Look at what a crash left, run the next command, and look again."""
        self.site.quiet()
        half = [
            f"{host.name}:{name}"
            for host, before, now, after in zip(
                self.site.hosts, self.before, self.site.states(), self.after, strict=True
            )
            for name in FILES
            if now[name] not in (before[name], after[name])
        ]
        runs = read_stories(self.site.home / FILE_NAME)
        story = next(iter(runs.values()), None)
        back = back and story is not None and bool(story.began)
        if back and story is not None:
            done = self.site.run("rollback", story.run, "inventory.py", "--yes")
        else:
            done = self.site.run(*APPLY)
        wanted = self.before if back else self.after
        reached = done.returncode == 0 and self.site.states() == wanted
        answer = "" if reached else f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        lost = sum(FOREIGN not in host.read("/etc/hosts") for host in self.site.hosts)
        left = [line for host in self.site.hosts for line in host.run(LEFT).stdout.split()]
        problem = verify_chain(self.site.home / FILE_NAME)[1]
        left += [problem] if problem else []
        what = "rollback" if back else "apply"
        return Outcome(point, kind, what, reached, tuple(half), lost, tuple(left), answer)


def each(hosts: Iterable[Host], work: Callable[[Host], T]) -> list[T]:
    """Do something to all hosts at a time; return the results in their order."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(work, hosts))
