"""The script that changes a host, run for real by sh on files of this machine."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.apply import script as script_module
from remedy.apply.script import (
    ChangeStatus,
    HostReport,
    Job,
    parse_report,
    render_changes,
    render_undo,
)
from remedy.plan import Change, CommandAction, FileAction, inverse, sha256

JOB = Job(run="20260101T000000Z-00000000", nonce="n0nce", by="me@here")


@dataclass
class Bench:
    """A folder that plays the host, and the script that works on it."""

    root: Path
    changes: tuple[Change, ...] = ()
    blobs: dict[str, bytes] | None = None

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
        return self._run(render_undo(JOB, self.changes), inverse(self.changes))

    def _run(self, text: str, changes: tuple[Change, ...]) -> HostReport:
        done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return parse_report(JOB, changes, done.stdout)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(script_module, "ROOT", str(tmp_path / "var"))
    monkeypatch.setattr(script_module, "LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "etc").mkdir()
    return Bench(tmp_path / "etc")


def statuses(report: HostReport) -> list[str]:
    assert report.finished or report.refused
    return [result.status.value for result in report.results.values()]


def test_a_file_is_replaced_and_put_back(bench: Bench) -> None:
    path = bench.file("hosts", b"old\xff\n", b"new\x00\n")
    path.chmod(0o640)
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == b"new\x00\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert statuses(bench.apply()) == ["already"]
    assert statuses(bench.undo()) == ["done"]
    assert path.read_bytes() == b"old\xff\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert statuses(bench.undo()) == ["already"]


def test_a_new_file_is_made_and_removed_again(bench: Bench) -> None:
    path = bench.file("conf.d.conf", None, b"x\n")
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == b"x\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert statuses(bench.undo()) == ["done"]
    assert not path.exists()


def test_a_missing_folder_is_made(bench: Bench) -> None:
    path = bench.root / "a.d" / "b.conf"
    bench.blobs = {sha256(b"x"): b"x"}
    bench._add(FileAction(path=str(path), real_path=str(path), before=None, after=sha256(b"x")))
    assert statuses(bench.apply()) == ["done"]


def test_a_link_stays_a_link(bench: Bench) -> None:
    real = bench.root / "real"
    real.write_bytes(b"old")
    (bench.root / "hosts").symlink_to(real)
    bench.file("hosts", b"old", b"new")
    assert statuses(bench.apply()) == ["done"]
    assert (bench.root / "hosts").is_symlink()
    assert real.read_bytes() == b"new"


def test_a_link_that_leads_elsewhere_now_is_stale(bench: Bench) -> None:
    path = bench.file("hosts", b"old", b"new")
    other = bench.root / "other"
    other.write_bytes(b"old")
    path.unlink()
    path.symlink_to(other)
    assert statuses(bench.apply()) == ["stale"]
    assert other.read_bytes() == b"old"


def test_a_second_hard_link_stays_one_file(bench: Bench) -> None:
    path = bench.file("hosts", b"old", b"new")
    os.link(path, bench.root / "twin")
    assert statuses(bench.apply()) == ["done"]
    assert (bench.root / "twin").read_bytes() == b"new"
    assert path.stat().st_nlink == 2


def test_one_stale_object_leaves_the_whole_host_untouched(bench: Bench) -> None:
    first = bench.file("first", b"1", b"one")
    second = bench.file("second", b"2", b"two")
    second.write_bytes(b"somebody's")
    report = bench.apply()
    assert statuses(report) == ["skipped", "stale"]
    assert "changed since the plan" in report.results["02-test"].detail
    assert first.read_bytes() == b"1"
    assert second.read_bytes() == b"somebody's"


def test_undo_leaves_alone_what_somebody_changed_since(bench: Bench) -> None:
    path = bench.file("hosts", b"old", b"new")
    bench.apply()
    path.write_bytes(b"a human's fix")
    assert statuses(bench.undo()) == ["stale"]
    assert path.read_bytes() == b"a human's fix"


def test_a_command_runs_between_two_looks(bench: Bench) -> None:
    flag = bench.root / "flag"
    flag.write_text("off")
    bench.command(f"cat {flag}", "off", "on", f"printf on >{flag}", f"printf off >{flag}")
    assert statuses(bench.apply()) == ["done"]
    assert statuses(bench.apply()) == ["already"]
    assert statuses(bench.undo()) == ["done"]
    assert flag.read_text() == "off"


def test_a_command_that_changes_nothing_is_a_failure_and_stops_the_host(bench: Bench) -> None:
    later = bench.root / "later"
    bench.command("echo off", "off", "on", "echo I tried >&2", "true")
    bench.command(f"cat {later} 2>/dev/null || echo no", "no", "yes", f"echo yes >{later}")
    report = bench.apply()
    assert statuses(report) == ["failed", "skipped"]
    assert "I tried" in report.results["01-test"].detail
    assert not later.exists()


def test_pre_images_and_receipt_are_there_before_the_first_write(
    bench: Bench, tmp_path: Path
) -> None:
    run = tmp_path / "var" / "runs" / JOB.run
    path = bench.file("hosts", b"old", b"new")
    proof = bench.root / "proof"
    bench.command(f"test -e {proof} && echo yes || echo no", "no", "yes", f"cp -r {run} {proof}")
    bench.changes = bench.changes[::-1]
    assert statuses(bench.apply()) == ["done", "done"]
    assert (proof / "pre" / "01-test").read_bytes() == b"old"
    assert '"state":"started"' in (proof / "receipt.jsonl").read_text()
    assert (proof / "undo").exists()
    assert path.read_bytes() == b"new"
    assert run.stat().st_mode & 0o077 == 0


def test_the_undo_on_the_host_works_without_a_controller(bench: Bench, tmp_path: Path) -> None:
    path = bench.file("hosts", b"old", b"new")
    bench.apply()
    undo = tmp_path / "var" / "runs" / JOB.run / "undo"
    done = subprocess.run(["sh", str(undo)], capture_output=True, text=True, check=False)
    assert "undo-01-test done" in done.stdout
    assert path.read_bytes() == b"old"


def test_a_run_that_holds_the_host_is_not_disturbed(bench: Bench, tmp_path: Path) -> None:
    path = bench.file("hosts", b"old", b"new")
    (tmp_path / "var").mkdir()
    lock = tmp_path / "var" / "lock"
    with subprocess.Popen(["flock", str(lock), "sleep", "30"]) as holder:
        try:
            for _ in range(100):
                busy = subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode
                if busy:
                    break
            report = bench.apply()
        finally:
            holder.kill()
    assert report.refused.startswith("LOCKED")
    assert path.read_bytes() == b"old"


def test_a_host_without_room_for_receipts_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where a folder has to be")
    path = bench.file("hosts", b"old", b"new")
    report = bench.apply()
    assert report.refused
    assert path.read_bytes() == b"old"


def test_names_and_contents_with_shell_syntax_are_data(bench: Bench) -> None:
    path = bench.file("a '$(touch pwned)' `b` {{c}}", b"old", b"$(touch pwned) {{ 7*7 }}\n")
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == b"$(touch pwned) {{ 7*7 }}\n"
    assert not list(bench.root.rglob("pwned"))


def test_lines_without_the_nonce_are_no_outcome(bench: Bench) -> None:
    bench.file("hosts", b"old", b"new")
    report = parse_report(JOB, bench.changes, "other 01-test done\n01-test done\nn0nce\n")
    assert report.results["01-test"].status is ChangeStatus.LOST
