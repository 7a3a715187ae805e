"""Rehearsals: what would become of a plan, with nothing written on a host; and that looks are on record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.audit.journal import FILE_NAME, verify_chain
from remedy.audit.story import read_stories
from remedy.cli.main import main
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
    (var / "pending").write_text("r1\n")
    assert statuses(bench.rehearse()) == ["ready"]  # nothing is left that would take r1 back
    guard = [sys.executable, "-c", "input()", str(var / "runs" / "r1" / "guard")]
    with subprocess.Popen(guard, stdin=subprocess.PIPE) as waiting:
        assert bench.rehearse().refused.startswith("LOCKED run r1 waits")
        waiting.kill()


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.py"
    path.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n')
    return path


def remedy(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "mode", "event"),
    [
        (("check",), "check", "checked"),
        (("apply", "--rehearse"), "rehearsal", "rehearsed"),
        (("verify",), "verify", "ended"),
    ],
)
def test_who_looked_is_on_record(
    inventory: Path, words: tuple[str, ...], mode: str, event: str
) -> None:
    code, _ = remedy(*words, inventory)
    path = inventory.parent / ".remedy" / FILE_NAME
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["mode"], last["event"], last["data"]["exit_code"]) == (mode, event, code)
    assert last["data"]["by"]
    assert verify_chain(path)[1] == ""
    (story,) = read_stories(path).values()
    assert (story.mode, story.exit_code) == (mode, code)
    assert f"{mode} " in remedy("history", inventory)[1]
    assert remedy("rollback", story.run, inventory, "--yes")[0] == 2


def test_a_check_works_where_it_cannot_be_recorded_and_says_so(inventory: Path) -> None:
    (inventory.parent / ".remedy").write_text("")
    code, said = remedy("check", inventory)
    assert code == 5
    assert "not recorded: the journal" in said
    assert "unreachable gpu01" in said


def test_what_only_looked_is_not_taken_back(inventory: Path) -> None:
    remedy("check", inventory)
    (run,) = read_stories(inventory.parent / ".remedy" / FILE_NAME)
    code, said = remedy("rollback", run, inventory, "--yes")
    assert code == 2
    assert "is a check, which changed no host" in said
