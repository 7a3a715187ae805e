"""Journal and head cut together, hosts that answer without bounds, and what is kept for how long."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from remedy.apply import script
from remedy.apply.job import Job
from remedy.apply.report import LONGEST_DETAIL, parse_report
from remedy.audit import Journal, witness
from remedy.audit.agreement import forget
from remedy.audit.journal import (
    FILE_NAME,
    LONGEST_TEXT,
    Head,
    read_records,
    verify_chain,
)
from remedy.audit.presence import hold
from remedy.files import make_folder
from remedy.probe import Guards
from tests.hostile.cutting import cut
from tests.unit import host_bench
from tests.unit.host_bench import Bench
from tests.unit.probe_data import parse, recorded, replaced

SHELLS = [["sh"], ["bash"], *([["busybox", "sh"]] if shutil.which("busybox") else [])]


@pytest.fixture(autouse=True)
def _host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder plays the host, and keeps what hosts keep."""
    monkeypatch.setattr(script, "ROOT", str(tmp_path / "var"))
    monkeypatch.setattr(script, "LOG", str(tmp_path / "log"))


def known(text: str) -> Guards:
    """Return what a probe reads of a host whose section `guards` holds a text."""
    guards = parse(replaced(recorded("lab-idle"), "guards", f"now 1.0 boot\n{text}")).guards
    assert isinstance(guards, Guards)
    return guards


def written(home: Path, run: str, count: int) -> Head:
    """Write some records of a run; return the last head."""
    journal = Journal(home, run=run, mode="apply")
    for number in range(count):
        head = journal.write("began", hosts=[f"gpu{number}"])
    return head


def asked(shell: list[str], home: Path, kept: Path) -> str:
    """Return the head that a host prints to a probe, by the probe's own text."""
    text = (Path(__file__).parents[2] / "remedy/probe/host/guards.sh").read_text()
    probe = f"root={kept} heads_of='{witness.lines_of(home)}' nl='\n'\n{text}\nlast_head\n"
    done = subprocess.run(shell, input=probe, capture_output=True, text=True, check=True)
    return known(done.stdout).head


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_a_cut_of_journal_and_head_together_is_found_by_what_a_host_remembers(
    tmp_path: Path, shell: list[str]
) -> None:
    home, kept = tmp_path / ".remedy", tmp_path / "host"
    kept.mkdir()
    elsewhere = f"{'a' * 64} 900 {'b' * 64} {'c' * 16} 20260101T000000Z-00000000"
    early = witness.words(written(home, "20260102T000000Z-00000000", 2), home, "r1")
    late = witness.words(written(home, "20260103T000000Z-00000000", 3), home, "r2")
    (kept / "heads").write_text(f"{early}\n{late}\n{elsewhere}\n")
    assert asked(shell, home, kept) == late
    assert witness.forgotten({"gpu01": late, "gpu02": ""}, home) == {}
    cut(home, 3)
    assert verify_chain(home / FILE_NAME) == (3, "")  # nothing beside the journal tells
    head = asked(shell, home, kept)
    problems = witness.forgotten({"gpu01": head, "gpu02": ""}, home)
    assert problems == {"gpu01": "run r2 left record 4 on it, and the journal ends with 2"}
    # Written on beyond what was cut off, it has a record of that number, and another one.
    written(home, "20260104T000000Z-00000000", 9)
    problems = witness.forgotten({"gpu01": asked(shell, home, kept)}, home)
    assert problems == {"gpu01": "record 4 is not the one that run r2 left on it"}
    # The whole folder is gone: the place remembers.
    shutil.rmtree(home)
    for _ in ("no journal", "a new one"):
        problems = witness.forgotten({"gpu01": asked(shell, home, kept)}, home)
        assert "of another journal in this folder" in problems["gpu01"]
        written(home, "20260105T000000Z-00000000", 9)


def test_what_is_no_head_is_no_witness_and_no_error() -> None:
    for text in ("x", "j 1 h p r", "a" * 64 + " " + "9" * 5000, "\x1b]52;c;eA==\x07 1 x y z"):
        assert known(f"head {text}\n").head == ""


def test_words_of_a_host_are_bounded_in_the_report_and_in_the_journal(tmp_path: Path) -> None:
    job = Job(run="r", nonce="n0nce", by="me")
    bench = Bench(tmp_path)
    bench.command("o", "b", "a", "d")
    flood = base64.b64encode(b"x" * (8 << 20)).decode()
    report = parse_report(
        job, bench.changes, f"n0nce 01-test failed {flood}\nn0nce - refused {flood}\n"
    )
    assert len(report.results["01-test"].detail) <= LONGEST_DETAIL + 4
    assert len(report.refused) <= LONGEST_DETAIL + 4
    Journal(tmp_path / "j", run="r", mode="apply").write("x", hosts={"h": ["y" * (1 << 20)]})
    assert (tmp_path / "j" / FILE_NAME).stat().st_size < LONGEST_TEXT + 1000
    (record,) = read_records(tmp_path / "j" / FILE_NAME)
    assert record.body["data"]["hosts"]["h"][0].endswith("characters left out]")
    assert verify_chain(tmp_path / "j" / FILE_NAME) == (1, "")


def test_folders_that_a_change_needs_are_for_everybody(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    bench = Bench(tmp_path)
    # The folder of the change, and two above it, are missing.
    bench.file("missing", None, b"x\n")
    (change,) = bench.changes
    target = tmp_path / "a" / "b" / "c" / "new"
    action = change.action.model_copy(update={"path": str(target), "real_path": str(target)})
    bench.changes = (change.model_copy(update={"action": action}),)
    assert bench.apply().changed
    modes = {str(p.relative_to(tmp_path)): p.stat().st_mode & 0o777 for p in target.parents[:3]}
    assert modes == {"a/b/c": 0o755, "a/b": 0o755, "a": 0o755}


def test_folders_of_the_journal_are_its_owners_alone_and_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def remember(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", remember)
    make_folder(tmp_path / "a" / "b")
    assert {str(tmp_path), str(tmp_path / "a")} <= set(flushed)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    flushed.clear()
    Journal(tmp_path / ".remedy", run="r", mode="apply").write("began")
    home = tmp_path / ".remedy"
    assert {str(tmp_path), str(home), str(home / FILE_NAME)} <= set(flushed)


def test_one_setting_says_how_long_what_taking_back_needs_is_kept(tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, tzinfo=timezone.utc)
    old, new, at_work = (
        f"{day}T000000Z-0000000{n}" for n, day in enumerate((20260101, 20260220, 20260102))
    )
    for name in (old, new, at_work, "not-a-run"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    presence = hold(tmp_path, at_work)
    forget(tmp_path, None, now)
    assert (tmp_path / "runs" / old).exists()
    forget(tmp_path, 30, now)
    assert presence is not None
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {new, at_work, "not-a-run"}


EARLIER = "20250101T000000Z-00000000"


@pytest.mark.parametrize(
    ("days", "earlier_run", "left"),
    [
        (None, EARLIER, True),
        (30, EARLIER, False),
        (90, EARLIER, True),  # the host's clock calls it two months old
        (30, "20251231T000000Z-00000000", True),  # of yesterday, when the host's clock was wrong
        (30, "2x025T000000Z", True),
        (30, "a folder of somebody", True),
    ],
)
def test_a_host_forgets_earlier_runs_that_both_clocks_call_old(
    tmp_path: Path,
    days: int | None,
    earlier_run: str,
    left: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(tmp_path)
    bench.file("x", b"a\n", b"b\n")
    earlier = tmp_path / "var" / "runs" / earlier_run / "pre"
    earlier.mkdir(parents=True)
    sixty_days = datetime.now(timezone.utc).timestamp() - 60 * 86400
    os.utime(earlier.parent, (sixty_days, sixty_days))
    monkeypatch.setattr(
        host_bench, "JOB", Job("20260101T000000Z-00000000", "n0nce", "me", keep_days=days)
    )
    assert bench.apply().changed
    assert earlier.exists() is left
    assert (tmp_path / "var" / "runs" / "20260101T000000Z-00000000").exists()
