"""What a run starts on a host, and when it waits for the disk: that is what a small change costs."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from remedy.apply.script import render_changes
from remedy.plan import sha256
from tests.crashes.bench import TOOLS
from tests.unit.host_bench import JOB, Bench, statuses

HOSTS = b"127.0.0.1 localhost\n127.0.1.1 gpu01\n10.1.2.3 storage\n"


@pytest.fixture
def log(bench: Bench, tmp_path: Path) -> Path:
    """The programs that a run starts, one a line with their arguments, in order."""
    folder, log = tmp_path / "bin", tmp_path / "programs"
    folder.mkdir()
    for tool in TOOLS:
        if real := shutil.which(tool):
            wrapper = folder / tool
            wrapper.write_text(f'#!/bin/sh\necho "{tool} $*" >>{log}\nexec {real} "$@"\n')
            wrapper.chmod(0o755)
    bench.prelude = f"PATH={folder}:$PATH\n"
    return log


def usual(bench: Bench, files: int = 3) -> None:
    """Changes of every kind: files that are edited and made, and a command."""
    blobs: dict[str, bytes] = {}
    for number in range(files):
        after = HOSTS.replace(b"127.0.1.1 gpu01", b"10.0.0.%d x" % number)
        bench.spliced(f"edited{number}", HOSTS, after)
        blobs |= bench.blobs or {}
        bench.file(f"made{number}", None, b"text %d\n" % number)
        blobs |= bench.blobs or {}
    flag = bench.root / "flag"
    flag.write_text("off")
    bench.command(f"cat {flag}", "off", "on", f"printf on >{flag}", f"printf off >{flag}")
    bench.blobs = blobs


def programs(log: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def test_a_run_starts_few_programs(bench: Bench, log: Path) -> None:
    usual(bench)
    assert set(statuses(bench.apply())) == {"done"}
    counted = programs(log)
    assert counted["sync"] == 2
    # Six files and a command: some fifty, where each file by itself had cost fifteen.
    assert counted.total() <= 56, counted


def test_a_file_more_is_no_flush_more(bench: Bench, log: Path) -> None:
    usual(bench, files=9)
    assert set(statuses(bench.apply())) == {"done"}
    flushes = [
        line.split()[2:] for line in log.read_text().splitlines() if line.startswith("sync ")
    ]
    assert len(flushes) == 2
    for paths in flushes:
        assert len(paths) == len(set(paths))
        assert not any(path.endswith("said") for path in paths)


def test_what_is_put_in_place_and_what_was_there_are_on_the_disk_before_the_first_rename(
    bench: Bench, log: Path
) -> None:
    usual(bench)
    bench.apply()
    lines = log.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("mv "))
    flushed = {word for line in lines[:first] if line.startswith("sync ") for word in line.split()}
    moved = [line.split() for line in lines if line.startswith("mv ")]
    assert len(moved) == 6
    assert {words[-2] for words in moved} <= flushed
    # Of three files, and what the command found.
    assert len([word for word in flushed if "/pre/" in word]) == 4


def test_a_content_that_cannot_be_prepared_is_tried_when_its_turn_comes(
    bench: Bench, log: Path
) -> None:
    """Its folder is made by a change before it."""
    folder = bench.root / "a.d"
    bench.command(f"test -d {folder} && echo yes || echo no", "no", "yes", f"mkdir {folder}")
    bench.file("a.d/b.conf", None, b"x\n")
    assert statuses(bench.apply()) == ["done", "done"]
    assert (folder / "b.conf").read_bytes() == b"x\n"
    lines = log.read_text().splitlines()
    moved = next(number for number, line in enumerate(lines) if line.startswith("mv "))
    assert lines[moved - 1].startswith(f"sync -- {folder}/.remedy.")


def test_what_was_prepared_and_is_not_wanted_any_more_is_removed(bench: Bench) -> None:
    bench.command("echo off", "off", "on", "false")
    edited = bench.file("edited", b"old", b"new")
    bench.file("made", None, b"x")
    assert statuses(bench.apply()) == ["failed", "skipped", "skipped"]
    assert sorted(path.name for path in bench.root.iterdir()) == ["edited"]
    assert edited.read_bytes() == b"old"


def test_a_new_content_that_is_sent_as_a_whole_costs_no_program(bench: Bench, log: Path) -> None:
    after = HOSTS.replace(b"127.0.1.1 gpu01", b"10.0.0.1 gpu01")
    counts = []
    for name, whole in (("one", {}), ("two", {sha256(after): after})):
        bench.changes, bench.blobs = (), {}
        path = bench.spliced(name, HOSTS, after)
        text = render_changes(JOB, bench.changes, bench.blobs or {}, whole=whole)
        log.unlink(missing_ok=True)
        assert statuses(bench._run(text, bench.changes)) == ["done"]
        assert path.read_bytes() == after
        counts.append(programs(log))
    without, sent = counts
    assert without - sent == Counter(dd=2, cat=2, wc=1, sha256sum=1, rm=1)
    assert sent - without == Counter(chmod=1)  # of folders that the first had made


def test_the_record_has_what_readers_of_the_plan_saw(bench: Bench, tmp_path: Path) -> None:
    after = HOSTS.replace(b"127.0.1.1 gpu01", b"10.0.0.1 gpu01")
    bench.spliced("hosts", HOSTS, after)
    text = render_changes(JOB, bench.changes, bench.blobs or {}, whole={sha256(after): after})
    assert statuses(bench._run(text, bench.changes)) == ["done"]
    record = (tmp_path / "var" / "runs" / JOB.run / "changes.json").read_text()
    assert "storage" not in record
    assert len(json.loads(record)[0]["action"]["splices"]) == 1
