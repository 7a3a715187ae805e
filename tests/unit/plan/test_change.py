"""Changes: what they say they do, and the changes that take them back."""

from __future__ import annotations

import hashlib

import pytest

from remedy.plan.change import (
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Splice,
    command,
    inverse,
    sha256,
    undo_id,
)

FILE = FileAction(
    path="/etc/link", real_path="/etc/a file", before=None, after="a" * 64, mode=0o600
)
COMMAND = CommandAction(observe="look", before="old", after="new", do="there", undo="back")


def change(
    number: int, action: FileAction | CommandAction = COMMAND, *, reversible: bool = True
) -> Change:
    return Change(
        id=f"{number:02d}-x", host="a", remedy="x", title=f"step {number}", reason="r", label="l",
        reversible=reversible, action=action,
    )  # fmt: skip


def test_an_action_is_described_as_exactly_as_a_command() -> None:
    assert COMMAND.describe() == "there"
    written = FILE.describe()
    assert "'/etc/a file'" in written
    assert "a" * 12 in written
    assert "a" * 13 not in written
    assert FILE.inverse().describe() == "rm '/etc/a file'"


def test_taking_back_turns_everything_round_and_twice_is_nothing() -> None:
    splice = Splice(offset=3, line=2, length=4, before="b" * 64, after=None)
    file = FILE.model_copy(update={"before": "c" * 64, "splices": (splice,)})
    back = file.inverse()
    assert (back.before, back.after, back.mode) == ("a" * 64, "c" * 64, 0o600)
    assert back.splices == (splice.model_copy(update={"before": None, "after": "b" * 64}),)
    assert back.inverse() == file
    assert FILE.inverse().splices is None
    turned = COMMAND.inverse()
    assert (turned.observe, turned.before, turned.after) == ("look", "new", "old")
    assert (turned.do, turned.undo) == ("back", "there")


def test_changes_are_taken_back_last_one_first_without_those_that_cannot_be() -> None:
    back = inverse([change(1), change(2, reversible=False), change(3, FILE)])
    assert [c.id for c in back] == ["undo-03-x", "undo-01-x"]
    assert [c.title for c in back] == ["take back: step 3", "take back: step 1"]
    again = inverse(back)
    assert [(c.id, c.title, c.action) for c in again] == [
        ("01-x", "step 1", COMMAND),
        ("03-x", "step 3", FILE),
    ]
    assert (undo_id("01-x"), undo_id("undo-01-x")) == ("undo-01-x", "01-x")


def test_digests_and_commands() -> None:
    assert sha256(b"text") == hashlib.sha256(b"text").hexdigest()
    assert command(["echo", "a b", "$(id)"]) == "echo 'a b' '$(id)'"


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        ((), "/etc/hosts lacks hosts"),
        (("gpu01",), "/etc/hosts lacks hosts (gpu01)"),
        (("gpu01", "gpu02", "gpu03"), "/etc/hosts lacks hosts (gpu01; and 2 more)"),
    ],
)
def test_a_finding_in_a_line_says_how_much_evidence_is_left_out(
    evidence: tuple[str, ...], sentence: str
) -> None:
    finding = Finding(
        host="gpu01",
        remedy="hosts_file",
        kind=FindingKind.DRIFT,
        label="hostname-unresolvable",
        title="/etc/hosts lacks hosts",
        evidence=evidence,
    )
    assert finding.sentence == sentence
