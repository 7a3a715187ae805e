"""The script that changes a host, run for real by sh on files of this machine."""

from __future__ import annotations

import base64
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from remedy.apply.report import ChangeStatus, parse_report
from remedy.apply.script import render_changes, render_look
from remedy.plan import FileAction, sha256
from tests.unit.host_bench import BOTH_SHELLS, JOB, Bench, statuses


@pytest.mark.parametrize("bench", BOTH_SHELLS, indirect=True)
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


def test_a_new_content_that_cannot_be_read_back_is_put_nowhere(bench: Bench) -> None:
    path = bench.file("hosts", b"old", b"new")
    # As on a disk that fails: of what was sent there is no digest.
    bench.prelude = (
        'sha256sum() { case "$*" in */new/*) return 1 ;; esac; command sha256sum "$@"; }\n'
    )
    report = bench.apply()
    assert statuses(report) == ["failed"]
    assert "has a different digest" in report.results["01-test"].detail
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("bench", BOTH_SHELLS, indirect=True)
def test_what_a_command_made_of_a_file_stays_when_the_file_is_written(bench: Bench) -> None:
    path = bench.root / "hosts"
    bench.command(f"stat -c %a {path}", "600", "644", f"chmod 644 {path}", f"chmod 600 {path}")
    bench.file("hosts", b"old", b"new")
    path.chmod(0o600)
    os.utime(path, (1, 1))
    assert statuses(bench.apply()) == ["done", "done"]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o644)
    assert path.stat().st_mtime > 1
    assert statuses(bench.undo()) == ["done", "done"]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"old", 0o600)


@pytest.mark.parametrize("bench", BOTH_SHELLS, indirect=True)
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


def test_a_command_that_fails_without_a_word_is_told_by_its_status(bench: Bench) -> None:
    bench.command("echo off", "off", "on", "exit 7", "true")
    (result,) = bench.apply().results.values()
    assert result.status.value == "failed"
    assert result.detail == "the command ended with status 7 and printed nothing"


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


def test_names_and_contents_with_shell_syntax_are_data(bench: Bench) -> None:
    path = bench.file("a '$(touch pwned)' `b` {{c}}", b"old", b"$(touch pwned) {{ 7*7 }}\n")
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == b"$(touch pwned) {{ 7*7 }}\n"
    assert not list(bench.root.rglob("pwned"))


def test_lines_without_the_nonce_are_no_outcome(bench: Bench) -> None:
    bench.file("hosts", b"old", b"new")
    report = parse_report(JOB, bench.changes, "other 01-test done\n01-test done\nn0nce\n")
    assert report.results["01-test"].status is ChangeStatus.LOST


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\nb\nc\n", b"a\nb\nc\nd\n"),
        (b"a\nb\nc\n", b"b\nc\n"),
        (b"", b"new\n"),
        (b"\xff\x00 no end", b"first\n\xff\x00 no end"),
        (b"1\n2\n3\n4\n5\n", b"one\n2\n3\nfour\n5\nsix\n"),
    ],
)
def test_splices_make_the_new_content_on_the_host(
    bench: Bench, before: bytes, after: bytes
) -> None:
    path = bench.spliced("hosts", before, after)
    assert statuses(bench.apply()) == ["done"]
    assert path.read_bytes() == after
    assert statuses(bench.undo()) == ["done"]
    assert path.read_bytes() == before


def test_what_others_wrote_into_a_file_is_not_sent_and_not_kept_in_the_record(
    bench: Bench, tmp_path: Path
) -> None:
    bench.spliced("hosts", b"canary-of-others\nold\n", b"canary-of-others\nnew\n")
    text = render_changes(JOB, bench.changes, bench.blobs or {})
    assert b"canary" not in text.encode()
    assert base64.b64encode(b"canary-of-others") not in text.encode()
    bench.apply()
    run = tmp_path / "var" / "runs" / JOB.run
    holders = {p.parent.name for p in run.rglob("*") if p.is_file() and b"canary" in p.read_bytes()}
    assert holders == {"pre", "new"}


def test_a_file_that_changed_is_not_spliced(bench: Bench) -> None:
    path = bench.spliced("hosts", b"a\nb\n", b"a\nc\n")
    path.write_bytes(b"x\na\nb\n")
    report = bench.apply()
    assert statuses(report) == ["stale"]
    detail = report.results["01-test"].detail
    assert sha256(b"a\nb\n") in detail
    assert "last written 20" in detail
    assert path.read_bytes() == b"x\na\nb\n"


def test_a_splice_without_its_bytes_changes_nothing(bench: Bench) -> None:
    path = bench.spliced("hosts", b"a\nb\n", b"a\nc\n")
    bench.blobs = dict.fromkeys(bench.blobs or {}, b"other")
    report = bench.apply()
    assert statuses(report) == ["failed"]
    assert "has a different digest" in report.results["01-test"].detail
    assert path.read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("bench", BOTH_SHELLS, indirect=True)
def test_a_rollback_can_be_taken_back(bench: Bench) -> None:
    first = bench.spliced("hosts", b"old\n", b"new\n")
    second = bench.file("extra", None, b"x\n")
    bench.apply()
    assert statuses(bench.undo()) == ["done", "done"]
    assert statuses(bench.redo()) == ["done", "done"]
    assert (first.read_bytes(), second.read_bytes()) == (b"new\n", b"x\n")


def test_what_a_run_found_right_is_not_taken_back(bench: Bench) -> None:
    path = bench.file("hosts", b"old\n", b"new\n")
    flag = bench.root / "flag"
    flag.write_text("on")
    bench.command(f"cat {flag}", "off", "on", f"printf on >{flag}", f"printf off >{flag}")
    assert statuses(bench.apply()) == ["done", "already"]
    assert sorted(statuses(bench.undo())) == ["already", "done"]
    assert flag.read_text() == "on"
    assert path.read_bytes() == b"old\n"


def test_without_its_receipt_a_run_is_not_taken_back(bench: Bench, tmp_path: Path) -> None:
    path = bench.file("hosts", b"old\n", b"new\n")
    bench.apply()
    (tmp_path / "var" / "runs" / JOB.run / "receipt.jsonl").unlink()
    report = bench.undo()
    assert statuses(report) == ["failed"]
    assert "no receipt" in report.results["undo-01-test"].detail
    assert path.read_bytes() == b"new\n"


def test_looking_tells_conflicts_and_writes_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.file("one", b"1", b"one")
    second = bench.file("two", b"2", b"two")
    bench.apply()
    second.write_bytes(b"a human's fix")
    before = sorted(p for p in tmp_path.rglob("*"))
    report = bench.look()
    assert statuses(report) == ["stale", "skipped"]
    detail = report.results["undo-02-test"].detail
    assert f"since run {JOB.run}" in detail
    assert sha256(b"two") in detail
    assert sha256(b"a human's fix") in detail
    assert sorted(p for p in tmp_path.rglob("*")) == before


def test_what_a_host_gets_holds_the_library_once(bench: Bench) -> None:
    bench.file("hosts", b"old\n", b"new\n")
    bench.changes = tuple(c.model_copy(update={"guarded": True}) for c in bench.changes)
    text = render_changes(JOB, bench.changes, bench.blobs or {})
    assert "store guard " in text
    assert "store undo " in text
    assert text.count("file_check() {") == 1
    assert len(text) < 1.3 * len(render_look(JOB, bench.changes, JOB.run))


def test_the_host_keeps_what_it_is_told_of_the_journal(bench: Bench, tmp_path: Path) -> None:
    bench.file("hosts", b"old", b"new")
    job = replace(JOB, head="j 3 h place run")
    subprocess.run(
        ["sh", "-s"],
        input=render_changes(job, bench.changes, bench.blobs or {}),
        text=True,
        check=True,
    )
    assert (tmp_path / "var" / "heads").read_text() == "j 3 h place run\n"


def half_written(bench: Bench, tmp_path: Path, content: bytes) -> Path:
    """A file with two names, as a run left it that was killed while it wrote in place."""
    path = bench.file("hosts", b"foreign\nold\n", b"foreign\nnew\n")
    os.link(path, bench.root / "twin")
    bench.apply()
    whole = tmp_path / "var" / "runs" / JOB.run / "new" / sha256(b"foreign\nnew\n")
    (tmp_path / "var" / "inplace").write_text(f"{path}\n{whole}\n{whole.name}\n")
    (tmp_path / "var" / "temps").write_text(f"{bench.root}/.remedy.abcdef\n")
    (bench.root / ".remedy.abcdef").write_bytes(b"x")
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b"", b"fore", b"foreign\nnew"])
def test_a_write_in_place_that_was_cut_off_is_completed(
    bench: Bench, tmp_path: Path, content: bytes
) -> None:
    path = half_written(bench, tmp_path, content)
    assert statuses(bench.undo()) == ["done"]
    assert path.read_bytes() == b"foreign\nold\n"
    assert path.stat().st_nlink == 2
    assert not (tmp_path / "var" / "inplace").exists()
    assert not list(bench.root.glob(".remedy.*"))


def test_what_somebody_wrote_since_is_not_completed(bench: Bench, tmp_path: Path) -> None:
    path = half_written(bench, tmp_path, b"a human's fix\n")
    assert statuses(bench.undo()) == ["stale"]
    assert path.read_bytes() == b"a human's fix\n"


def test_a_plan_made_from_a_half_written_file_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = half_written(bench, tmp_path, b"fore")
    other = Bench(bench.root)
    other.file("hosts", None, None)
    action = FileAction(
        path=str(path), real_path=str(path), before=sha256(b"fore"), after=sha256(b"fore\nblock")
    )
    other.changes = (other.changes[0].model_copy(update={"action": action}),)
    other.blobs = {sha256(b"fore\nblock"): b"fore\nblock"}
    report = other.apply()
    assert statuses(report) == ["stale"]
    assert "run the command again" in report.results["01-test"].detail
    assert path.read_bytes() == b"foreign\nnew\n"


def test_texts_and_other_bytes_arrive_as_they_are(bench: Bench) -> None:
    text = bench.file("text", None, b'it\'s \\n $HOME `id` "%s" \\\\ *\n\n\ttab, no end')
    other = bench.file("other", b"old", bytes(range(256)) * 3 + b"\r\n")
    assert statuses(bench.apply()) == ["done", "done"]
    assert text.read_bytes() == b'it\'s \\n $HOME `id` "%s" \\\\ *\n\n\ttab, no end'
    assert other.read_bytes() == bytes(range(256)) * 3 + b"\r\n"
    assert statuses(bench.undo()) == ["done", "done"]
    assert not text.exists()
    assert other.read_bytes() == b"old"
