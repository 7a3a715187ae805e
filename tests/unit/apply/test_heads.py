"""A host keeps heads of the journal and prints them whole, or they do not count."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remedy.apply import heads
from remedy.plan.identities import machine_mark

NONCE = "a1b2c3d4"
HEAD = "genesis 3 hash place run; $(touch gone)"


def run(text: str) -> str:
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True)
    return done.stdout


def test_what_is_stored_is_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEADS", str(tmp_path / "a b" / "heads"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    empty = heads.parse(run(heads.question(NONCE)), NONCE)
    assert empty is not None
    assert empty.lines == ()
    run(heads.store(HEAD))
    run(heads.store("second"))
    kept = heads.parse(f"Welcome\n{run(heads.question(NONCE))}bye\n", NONCE)
    assert kept == heads.Heads(empty.machine, (HEAD, "second"))
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("first", "machine"),
    [("0123456789abcdef", machine_mark("0123456789abcdef")), ("", ""), (" ", "")],
)
def test_a_host_prints_which_machine_it_is(first: str, machine: str) -> None:
    text = f"remedy-heads {NONCE} begin\n{first}\n{HEAD}\nremedy-heads {NONCE} end\n"
    assert heads.parse(text, NONCE) == heads.Heads(machine, (HEAD,))


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
