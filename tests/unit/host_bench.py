"""A folder that plays a host, and the script that hosts get, run on it by a shell of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.apply.job import Job
from remedy.apply.report import HostReport, parse_report
from remedy.apply.script import render_changes, render_look, render_rehearsal, render_undo
from remedy.plan import Change, CommandAction, FileAction, inverse, sha256
from remedy.plan.splice import spliced

JOB = Job(run="20260101T000000Z-00000000", nonce="n0nce", by="me@here")
AGAIN = Job(run="20260103T000000Z-00000000", nonce="n0nce", by="me@here")
BACK = Job(run="20260102T000000Z-00000000", nonce="n0nce", by="me@here")


def shell_of(param: str) -> tuple[str, ...]:
    """Return the command of a shell; skip the test where this machine does not have it."""
    shell = tuple(param.split())
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed here")
    return shell


@dataclass
class Bench:
    """A folder that plays the host, and the script that works on it."""

    root: Path
    shell: tuple[str, ...] = ("sh",)
    changes: tuple[Change, ...] = ()
    blobs: dict[str, bytes] | None = None
    # Comes before the script: a function stands in for a tool even where the shell has tools built in.
    prelude: str = ""

    def file(self, name: str, before: bytes | None, after: bytes | None) -> Path:
        path = self.root / name
        if before is not None:
            path.write_bytes(before)
        action = FileAction(
            path=str(path),
            real_path=os.path.realpath(path),
            before=None if before is None else sha256(before),
            after=None if after is None else sha256(after),
        )
        self._add(action)
        self.blobs = {
            **(self.blobs or {}),
            **{sha256(b): b for b in (before, after) if b is not None},
        }
        return path

    def spliced(self, name: str, before: bytes, after: bytes) -> Path:
        """A file whose change holds splices in place of its content, as those of a plan do."""
        path = self.file(name, before, after)
        lean, blobs = spliced(self.changes[-1:], self.blobs or {})
        self.changes = (*self.changes[:-1], *lean)
        self.blobs = blobs
        return path

    def command(self, observe: str, before: str, after: str, do: str, undo: str = "") -> None:
        self._add(CommandAction(observe=observe, before=before, after=after, do=do, undo=undo))

    def _add(self, action: FileAction | CommandAction) -> None:
        change = Change(
            id=f"{len(self.changes) + 1:02d}-test",
            host="h",
            remedy="test",
            title="t",
            reason="r",
            label="l",
            action=action,
        )
        self.changes = (*self.changes, change)

    def apply(self) -> HostReport:
        return self._run(render_changes(JOB, self.changes, self.blobs or {}), self.changes)

    def undo(self) -> HostReport:
        back = inverse(self.changes)
        return self._run(render_undo(BACK, back, JOB.run), back)

    def look(self) -> HostReport:
        back = inverse(self.changes)
        return self._run(render_look(BACK, back, JOB.run), back)

    def rehearse(self) -> HostReport:
        return self._run(render_rehearsal(JOB, self.changes), self.changes)

    def redo(self) -> HostReport:
        """Take the rollback back."""
        again = inverse(inverse(self.changes))
        return self._run(render_undo(AGAIN, again, BACK.run), again)

    def _run(self, text: str, changes: tuple[Change, ...]) -> HostReport:
        done = subprocess.run(
            [*self.shell, "-s"],
            input=self.prelude + text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == "", (done.stderr, done.stdout)
        return parse_report(JOB, changes, done.stdout)


# What /bin/sh is somewhere: dash here, bash on RHEL, busybox on Alpine, a ksh where somebody chose it.
OTHERS = [pytest.param(shell, marks=pytest.mark.full) for shell in ("busybox sh", "mksh", "ksh93")]
BOTH_SHELLS = ("sh", "bash --posix", "mksh", "ksh93", OTHERS[0])
SHELLS = ("sh", pytest.param("bash --posix", marks=pytest.mark.full), *OTHERS)


def statuses(report: HostReport) -> list[str]:
    assert report.finished or report.refused
    return [result.status.value for result in report.results.values()]
