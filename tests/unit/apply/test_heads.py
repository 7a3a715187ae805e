"""A host keeps heads of the journal and prints them whole, or they do not count."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remedy.apply import heads

NONCE = "a1b2c3d4"
HEAD = "genesis 3 hash place run; $(touch gone)"


def run(text: str) -> str:
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True)
    return done.stdout


def test_what_is_stored_is_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEADS", str(tmp_path / "a b" / "heads"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    assert heads.parse(run(heads.question(NONCE)), NONCE) == ()
    run(heads.store(HEAD))
    run(heads.store("second"))
    assert heads.parse(f"Welcome\n{run(heads.question(NONCE))}bye\n", NONCE) == (HEAD, "second")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    "stdout",
    [
        "",
        f"remedy-heads {NONCE} begin\nj 1 h p r\n",
        "remedy-heads other begin\nj 1 h p r\nremedy-heads other end\n",
    ],
)
def test_what_is_cut_off_or_foreign_does_not_count(stdout: str) -> None:
    assert heads.parse(stdout, NONCE) is None
