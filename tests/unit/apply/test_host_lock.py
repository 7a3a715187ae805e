"""The lock of a host, held and released by the script that changes it, run for real by sh."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from remedy.apply.job import Job
from remedy.apply.report import parse_unlocked
from remedy.apply.script import render_unlock
from tests.unit.host_bench import JOB, Bench, statuses


def owner(tmp_path: Path) -> Path:
    return tmp_path / "var" / "owner"


def hold(tmp_path: Path, pid: int, start: str, boot: str = "") -> None:
    boot = boot or Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (tmp_path / "var").mkdir(exist_ok=True)
    owner(tmp_path).symlink_to(f"token r0 {boot} {pid} {start} 2026-01-01T00:00:00Z you@there")


def start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.fixture(params=["flock", "no flock"])
def tools(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A host with flock, and one without."""
    if request.param == "no flock":
        folder = tmp_path / "bin"
        folder.mkdir()
        for place in ("/usr/bin", "/bin"):
            for tool in Path(place).iterdir():
                if tool.name != "flock" and not (folder / tool.name).exists():
                    (folder / tool.name).symlink_to(tool)
        monkeypatch.setenv("PATH", str(folder))
    return str(request.param)


def test_the_lock_is_released_at_the_end(bench: Bench, tmp_path: Path, tools: str) -> None:
    assert tools
    bench.file("hosts", b"old", b"new")
    bench.apply()
    assert not os.path.lexists(owner(tmp_path))


@pytest.mark.parametrize("dead", ["another boot", "no process", "another process with its number"])
def test_a_dead_owner_needs_no_hands(bench: Bench, tmp_path: Path, tools: str, dead: str) -> None:
    assert tools
    path = bench.file("hosts", b"old", b"new")
    if dead == "another boot":
        hold(tmp_path, os.getpid(), start_of(os.getpid()), boot="other")
    elif dead == "no process":
        hold(tmp_path, 2**22 + 1, "1")
    else:
        hold(tmp_path, os.getpid(), "1")
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == b"new"
    assert sorted(p.name for p in (tmp_path / "var").glob("dead.*")) == []


@pytest.mark.parametrize("tools", ["no flock"], indirect=True)
def test_without_flock_a_live_owner_is_not_disturbed(
    bench: Bench, tmp_path: Path, tools: str
) -> None:
    assert tools
    path = bench.file("hosts", b"old", b"new")
    hold(tmp_path, os.getpid(), start_of(os.getpid()))
    report = bench.apply()
    assert report.refused.startswith("LOCKED run r0 by you@there since 2026-01-01")
    assert f"process {os.getpid()} is at work" in report.refused
    assert path.read_bytes() == b"old"
    assert os.path.lexists(owner(tmp_path))


def test_a_run_that_lost_its_lock_makes_no_further_change(bench: Bench, tmp_path: Path) -> None:
    bench.command("echo off", "off", "on", "true")
    bench.changes = ()
    flag = bench.root / "flag"
    bench.command(
        f"cat {flag} 2>/dev/null || echo no",
        "no",
        "yes",
        f"rm {owner(tmp_path)}; printf yes >{flag}",
    )
    path = bench.file("hosts", b"old", b"new")
    report = bench.apply()
    assert statuses(report) == ["done", "failed"]
    assert "lock of this run was taken away" in report.results["02-test"].detail
    assert path.read_bytes() == b"old"


def unlock(run: str, *, force: bool = False) -> str:
    job = Job(run=run, nonce="n0nce", by="me@here")
    text = render_unlock(job, run, force=force)
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return parse_unlocked(job, done.stdout).state


def test_a_lock_is_opened_by_its_id_only(bench: Bench, tmp_path: Path) -> None:
    assert bench
    (tmp_path / "var" / "runs" / "r0").mkdir(parents=True)
    assert unlock("r0") == "free"
    hold(tmp_path, 2**22 + 1, "1")
    assert unlock("r9", force=True) == "other"
    assert unlock("r0") == "removed"
    hold(tmp_path, os.getpid(), start_of(os.getpid()))
    assert unlock("r0") == "alive"
    assert os.path.lexists(owner(tmp_path))
    assert unlock("r0", force=True) == "fenced"
    assert not os.path.lexists(owner(tmp_path))


@pytest.mark.parametrize(
    ("run", "force", "answer"),
    [
        ("r2", True, "other"),
        (JOB.run, False, "pending"),
        (JOB.run, True, "reverted"),
    ],
)
def test_what_waits_for_a_confirmation_is_taken_back_by_its_id_and_force(
    bench: Bench, tmp_path: Path, run: str, force: bool, answer: str
) -> None:
    assert bench
    folder = tmp_path / "var" / "runs" / JOB.run
    folder.mkdir(parents=True)
    pending = tmp_path / "var" / "pending"
    pending.write_text(f"{JOB.run}\n1043 boot\n")
    (folder / "guard").write_text(f"rm {pending}\n")
    assert unlock(run, force=force) == answer
    assert pending.exists() == (answer != "reverted")


def test_a_run_that_came_and_went_before_the_lock_is_waited_for(
    bench: Bench, tmp_path: Path, tools: str
) -> None:
    """Between the look whether something waits for its confirmation and the lock, all can happen."""
    assert tools
    path = bench.file("hosts", b"old", b"new")
    # The lock is taken by a link: a moment before it, another run ends, and waits.
    pending = tmp_path / "var" / "pending"
    bench.prelude = f"ln() {{ printf 'r7\\n' >{pending}; command ln \"$@\"; }}\n"
    report = bench.apply()
    assert report.refused.startswith("LOCKED run r7 waits for its confirmation")
    assert statuses(report) == ["skipped"]
    assert path.read_bytes() == b"old"
    assert pending.read_text() == "r7\n"
    assert not os.path.lexists(owner(tmp_path))
