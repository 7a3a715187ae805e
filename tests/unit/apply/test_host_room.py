"""A host whose folder for runs takes nothing: refused before the first write, with what is missing there."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.host_bench import JOB, Bench


def test_a_host_without_room_for_receipts_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where a folder has to be")
    path = bench.file("hosts", b"old", b"new")
    report = bench.apply()
    assert report.refused
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is mounted by root")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("size=64k", "0 KB; inodes: [1-9]"),
        *(
            # The folders, and so many of the files that a run makes first.
            (f"nr_inodes={number}", "[1-9][0-9]* KB; inodes: [01]")
            for number in range(2, 13)
        ),
        ("ro", "is mounted read-only"),
    ],
)
def test_a_file_system_without_room_is_named_with_what_it_lacks(
    bench: Bench, tmp_path: Path, options: str, reason: str
) -> None:
    path = bench.file("hosts", b"old", b"new")
    root = tmp_path / "var"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "none", root], check=True)
    try:
        if options != "ro":
            _fill(root, 0 if "inodes" in options else 100)
        report = bench.apply()
    finally:
        subprocess.run(["umount", root], check=True)
    assert re.search(f"the file system at {re.escape(str(root))}:? {reason}", report.refused), (
        report
    )
    assert path.read_bytes() == b"old"


def _fill(root: Path, files: int) -> None:
    """Leave no room, once the folders of a run are there."""
    with contextlib.suppress(OSError):
        (root / "runs" / JOB.run / "pre").mkdir(parents=True)
        (root / "runs" / JOB.run / "new").mkdir()
        for number in range(files):
            (root / f"filling.{number}").write_bytes(bytes(4096))
