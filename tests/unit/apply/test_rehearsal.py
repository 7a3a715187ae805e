"""Rehearsals on a host: whether each change can be made, with nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.host_bench import Bench, statuses


def everything(folder: Path) -> dict[str, bytes | str]:
    """Return what a folder holds, links as their targets."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def test_what_could_be_made_is_ready_and_nothing_is_written(bench: Bench, tmp_path: Path) -> None:
    bench.spliced("hosts", b"127.0.0.1 localhost\nold\n", b"127.0.0.1 localhost\nnew\n")
    bench.file("new.d/new", None, b"x")
    bench.file("right", b"x", b"y").write_bytes(b"y")
    before = everything(tmp_path)
    report = bench.rehearse()
    assert statuses(report) == ["ready", "ready", "already"]
    assert report.finished
    assert everything(tmp_path) == before


def test_a_stale_object_holds_the_whole_host_back(bench: Bench) -> None:
    bench.file("one", b"a", b"b")
    path = bench.file("two", b"a", b"b")
    path.write_bytes(b"of somebody")
    report = bench.rehearse()
    assert statuses(report) == ["skipped", "stale"]
    assert statuses(bench.apply()) == ["skipped", "stale"]


def test_a_place_that_takes_no_files_is_told(bench: Bench, tmp_path: Path) -> None:
    bench.file("one", b"a", b"b")
    (tmp_path / "var").write_text("a file where a folder has to be")
    assert "var cannot be written" in bench.rehearse().refused
    (tmp_path / "var").unlink()
    (bench.root / "there").write_text("")
    bench.file("there/new", None, b"x")
    report = bench.rehearse()
    assert statuses(report) == ["ready", "failed"]
    assert "there cannot be written" in list(report.results.values())[1].detail


def test_a_host_that_another_run_holds_is_told(bench: Bench, tmp_path: Path) -> None:
    bench.file("one", b"a", b"b")
    var = tmp_path / "var"
    var.mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    (var / "owner").symlink_to(f"token r0 {boot} {os.getpid()} {ticks} 2026-01-01 you@there")
    assert bench.rehearse().refused.startswith("LOCKED run r0 by you@there")
    (var / "owner").unlink()
    (var / "owner").symlink_to(f"token r0 another-boot {os.getpid()} {ticks} 2026-01-01 you@there")
    assert statuses(bench.rehearse()) == ["ready"]
    run = f"r{os.getpid()}"  # no other test beside this one has it
    (var / "pending").write_text(f"{run}\n")
    assert statuses(bench.rehearse()) == ["ready"]  # nothing is left that would take it back
    guard = [sys.executable, "-c", "input()", str(var / "runs" / run / "guard")]
    with subprocess.Popen(guard, stdin=subprocess.PIPE) as waiting:
        assert bench.rehearse().refused.startswith(f"LOCKED run {run} waits")
        waiting.kill()
