"""A folder that plays a host, a run that holds every kind of change, and dying in the middle of it.

The script is the one that hosts get, run by the same shell. Before and after each program that it starts is a
boundary: a wrapper counts them and kills the script with all its children at the one that was asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from remedy.apply import script as script_module
from remedy.apply.job import Job
from remedy.apply.report import HostReport, parse_report
from remedy.apply.script import render_changes, render_undo
from remedy.plan import Change, CommandAction, FileAction, inverse, sha256
from remedy.plan.splice import spliced

FOREIGN = b"10.1.2.3 storage  # of others\n"
# fmt: off
TOOLS = (
    "base64", "cat", "chmod", "cp", "date", "dd", "df", "dirname", "find", "flock", "grep", "head", "ln",
    "mkdir", "mktemp", "mv", "readlink", "rm", "rmdir", "sha256sum", "stat", "sync", "tail", "tr", "wc",
)
# fmt: on
# Programs of one pipeline start at once. Each takes the first number that is free,
# by a file that one alone can make.
WRAPPER = """#!/bin/sh
n=1
set -C
until {{ true >"$CRASH_COUNT/$n"; }} 2>/dev/null; do n=$((n + 1)); done
set +C
[ "$n" = "$CRASH_AT" ] || exec {real} "$@"
[ "$CRASH_WHEN" = before ] || {real} "$@"
kill -9 0
"""


@dataclass(frozen=True)
class Outcome:
    """What was true after a crash and the run that followed.

    Args:
        point: where it crashed.
        kind: what crashed.
        next: what was run then, apply or rollback.
        reached: whether that reached the planned, or the former, state.
        half: files that were neither as before nor as planned, from the crash until the next run.
        lost: foreign lines that were gone after it.
        left: what the crash left behind that the next run did not clean: locks, temporary files.
        answer: the exit code of the next run and the end of what it printed, where it reached nothing.
    """

    point: str
    kind: str
    next: str
    reached: bool
    half: tuple[str, ...] = ()
    lost: int = 0
    left: tuple[str, ...] = ()
    answer: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong; a file with a second name cannot be replaced by a rename."""
        return self.reached and set(self.half) <= {"hard"} and not self.lost and not self.left


class Bench:
    """One host that is made anew for each crash.

    Args:
        folder: where it lives.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etc, self.var = folder / "etc", folder / "var"
        self.count = folder / "count"
        script_module.ROOT = str(self.var)
        script_module.LOG = str(folder / "log.jsonl")
        self._make_wrappers()
        self.fresh()
        self.changes, self.blobs = self._plan()

    def fresh(self) -> None:
        """Put everything back to what it was before the run."""
        for place in (self.etc, self.var):
            if place.is_mount():
                subprocess.run(["umount", str(place)], check=True)
            shutil.rmtree(place, ignore_errors=True)
        self.etc.mkdir()
        for name, content in self.before.items():
            if content is not None:
                (self.etc / name).write_bytes(content)
        (self.etc / "link").symlink_to("real")
        os.link(self.etc / "hard", self.etc / "twin")

    before: dict[str, bytes | None] = {  # noqa: RUF012 - never changed
        "hosts": b"127.0.0.1 localhost\n127.0.1.1 gpu01\n" + FOREIGN,
        "real": FOREIGN + b"old\n",
        "hard": FOREIGN + b"old\n",
        "gone": b"of an earlier run\n",
        "new": None,
        "flag": b"off",
    }
    after: dict[str, bytes | None] = {  # noqa: RUF012 - never changed
        "hosts": b"127.0.0.1 localhost\n" + FOREIGN + b"# BEGIN\n10.0.0.1 gpu01\n# END\n",
        "real": FOREIGN + b"new\n",
        "hard": FOREIGN + b"new\n",
        "gone": None,
        "new": b"block\n",
        "flag": b"on",
    }

    def state(self) -> dict[str, bytes | None]:
        """Return what the files hold now."""
        return {
            name: path.read_bytes() if (path := self.etc / name).exists() else None
            for name in self.before
        }

    def apply(self, run: str, *, at: int = 0) -> HostReport:
        """Make what is left to be made, as a new plan would; with ``at`` the script dies at that boundary."""
        now = self.state()
        left = tuple(c for c in self.changes if now[self._name(c)] != self.after[self._name(c)])
        job = Job(run=run, nonce="nonce", by="me@here")
        return self._run(job, left, render_changes(job, left, self.blobs), at=at)

    def rollback(self, run: str, of: str) -> HostReport:
        """Take a run back."""
        back = inverse(self.changes)
        job = Job(run=run, nonce="nonce", by="me@here")
        return self._run(job, back, render_undo(job, back, of), at=0)

    def boundaries(self) -> int:
        """Return how many boundaries a run has: before and after each program that it starts."""
        self.fresh()
        self.apply("count", at=-1)
        return 2 * len(list(self.count.iterdir()))

    def judge(self, kind: str, point: str, *, back: bool) -> Outcome:
        """Look at what the crash of run ``r1`` left, run the next one, and look again."""
        crashed = self.state()
        half = tuple(n for n, now in crashed.items() if now not in (self.before[n], self.after[n]))
        if back:
            self.rollback("r2", "r1")
        else:
            self.apply("r2")
        now = self.state()
        lost = sum(FOREIGN not in (now[n] or b"") for n in ("hosts", "real", "hard"))
        target = self.before if back else self.after
        reached = now == target and (self.etc / "link").is_symlink()
        reached = reached and (self.etc / "hard").stat().st_nlink == 2
        left = [p.name for p in self.etc.glob(".remedy.*")]
        left += [p.name for p in self.var.glob("dead.*")]
        left += ["owner"] if os.path.lexists(self.var / "owner") else []
        for receipt in self.var.glob("runs/*/receipt.jsonl"):
            for line in receipt.read_text().splitlines():
                try:
                    json.loads(line)
                except ValueError:
                    left.append(f"torn line in {receipt.parent.name}")
        return Outcome(
            point, kind, "rollback" if back else "apply", reached, half, lost, tuple(left)
        )

    def _name(self, change: Change) -> str:
        action = change.action
        return Path(action.real_path).name if isinstance(action, FileAction) else "flag"

    def _plan(self) -> tuple[tuple[Change, ...], dict[str, bytes]]:
        contents: dict[str, bytes] = {}
        changes = []
        for number, name in enumerate(self.before, 1):
            before, after = self.before[name], self.after[name]
            action: FileAction | CommandAction
            if name == "flag":
                flag = self.etc / "flag"
                action = CommandAction(
                    observe=f"cat {flag}",
                    before="off",
                    after="on",
                    do=f"printf on >{flag}.part && mv {flag}.part {flag}",
                    undo=f"printf off >{flag}.part && mv {flag}.part {flag}",
                )
            else:
                contents |= {sha256(one): one for one in (before, after) if one is not None}
                action = FileAction(
                    path=str(self.etc / ("link" if name == "real" else name)),
                    real_path=str(self.etc / name),
                    before=None if before is None else sha256(before),
                    after=None if after is None else sha256(after),
                )
            changes.append(
                Change(
                    id=f"{number:02d}-{name}",
                    host="h",
                    remedy="test",
                    title=name,
                    reason="r",
                    label="l",
                    action=action,
                )
            )
        lean, blobs = spliced(changes, contents)
        return lean, blobs

    def _make_wrappers(self) -> None:
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for tool in TOOLS:
            real = shutil.which(tool)
            if real is not None:
                (folder / tool).write_text(WRAPPER.format(real=real))
                (folder / tool).chmod(0o755)

    def _run(self, job: Job, changes: tuple[Change, ...], text: str, *, at: int) -> HostReport:
        path = os.environ["PATH"]
        number, after = (at + 1) // 2, at % 2 == 0
        if at:
            shutil.rmtree(self.count, ignore_errors=True)
            self.count.mkdir()
            path = f"{self.folder / 'bin'}:{path}"
        crash = {
            "CRASH_COUNT": str(self.count),
            "CRASH_AT": str(number if at > 0 else -1),
            "CRASH_WHEN": "after" if after else "before",
        }
        done = subprocess.run(
            ["sh", "-s"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            env={**os.environ, "PATH": path, **crash},
        )
        return parse_report(job, changes, done.stdout)
