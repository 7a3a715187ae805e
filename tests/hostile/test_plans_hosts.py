"""What a plan shows of a file is what its host takes out of it, or the file stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remedy.plan import FileAction, Splice, sha256
from tests.unit.host_bench import Bench

BEFORE = b"# a comment\nPermitRootLogin no\nBanner /etc/issue\n"
AFTER = b"# a comment\nBanner /etc/issue\n"
COMMENT = b"# a comment\n"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr("remedy.apply.script.ROOT", str(tmp_path / "var"))
    monkeypatch.setattr("remedy.apply.script.LOG", str(tmp_path / "log"))
    return Bench(tmp_path)


def planned(bench: Bench, after: bytes, *splices: Splice) -> Path:
    """Plan splices that end with ``after``, whatever a reader was shown."""
    path = bench.spliced("sshd_config", BEFORE, after)
    action = bench.changes[-1].action
    assert isinstance(action, FileAction)
    changed = action.model_copy(update={"splices": splices})
    bench.changes = (bench.changes[-1].model_copy(update={"action": changed}),)
    bench.blobs = {sha256(content): content for content in (COMMENT, after)}
    return path


def splice(**values: Any) -> Splice:
    return Splice(**{"length": 0, "before": None, "after": None, **values})


@pytest.mark.parametrize(
    ("after", "lie"),
    [
        # "the comment goes", and the rule goes
        (AFTER, splice(offset=12, line=2, length=19, before=sha256(COMMENT))),
        # at a line where nobody minds it
        (BEFORE + COMMENT, splice(offset=len(BEFORE), line=1, after=sha256(COMMENT))),
        # "a line comes", and it is all that is left
        (COMMENT, splice(offset=0, line=1, after=sha256(COMMENT))),
        # from behind the end of the file
        (BEFORE, splice(offset=4000, line=4, length=12, before=sha256(COMMENT))),
    ],
    ids=["other-bytes", "other-line", "all-the-rest", "behind-the-end"],
)
def test_bytes_that_no_reader_was_shown_stay_in_the_file(
    bench: Bench, after: bytes, lie: Splice
) -> None:
    path = planned(bench, after, lie)
    report = bench.apply()
    assert path.read_bytes() == BEFORE
    assert not report.changed


def test_what_was_shown_is_done(bench: Bench) -> None:
    rule = b"PermitRootLogin no\n"
    path = planned(bench, AFTER, splice(offset=12, line=2, length=19, before=sha256(rule)))
    bench.apply()
    assert path.read_bytes() == AFTER
