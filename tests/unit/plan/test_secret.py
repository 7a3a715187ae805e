"""Keyed digests: they tell that a secret or a line is another one, and nothing else."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from remedy.apply.job import Job
from remedy.apply.stale import SHOWN, WITHHELD, answers, differences, question, visible
from remedy.errors import RefusedError, RemedyError
from remedy.inventory import Inventory, Node
from remedy.plan import Change, FileAction, Plan, read_plan, sha256, write_plan
from remedy.plan.plan import canonical
from remedy.plan.seal import LINES, other_secrets, sealed, secrets_told
from remedy.plan.splice import spliced
from remedy.secret import KEY_NAME, Seal, make_seal, read_seal

SEAL = Seal(b"k" * 32)
BEFORE = b"127.0.0.1 localhost\n127.0.1.1 gpu01\n10.1.1.1 storage\n"
AFTER = b"127.0.0.1 localhost\n10.1.1.1 storage\n10.0.0.1 gpu01\n"


def inventory(password: str = "open sesame") -> Inventory:  # noqa: S107 - a canary
    data = {"_sudo_password": password, "ssh_key": "/root/.ssh/id", "note": "plain"}
    nodes = (Node("gpu01", "10.0.0.1", data=data), Node("gpu02", "10.0.0.2", data=data))
    return Inventory(Path("inventory.py"), nodes)


def plan(before: bytes = BEFORE, after: bytes = AFTER) -> Plan:
    contents = {sha256(one): one for one in (before, after)}
    action = FileAction(
        path="/etc/hosts", real_path="/etc/hosts", before=sha256(before), after=sha256(after)
    )
    change = Change(
        id="01-x", host="gpu01", remedy="x", title="t", reason="r", label="l", action=action
    )
    changes, blobs = spliced([change], contents)
    return Plan(
        tool_version="test",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        inventory_digest="i",
        spec_digest="s",
        changes=changes,
        blobs=blobs,
        contents=contents,
    )


def saved(made: Plan, folder: Path) -> Plan:
    """Return a plan as it is after it was written and read: it knows no whole files."""
    write_plan(made, folder / "plan.json")
    return read_plan(folder / "plan.json")


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    home = tmp_path / ".remedy"
    assert read_seal(home) is None
    first = make_seal(home)
    assert make_seal(home) == read_seal(home) == first
    assert (home / KEY_NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == [KEY_NAME]
    assert first.key.hex() not in repr(first)
    assert make_seal(tmp_path / "other") != first


def test_a_key_that_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    make_seal(tmp_path)
    (tmp_path / KEY_NAME).chmod(0o640)
    with pytest.raises(RefusedError, match="can be read by others") as caught:
        make_seal(tmp_path)
    assert "chmod 600" in caught.value.next_step
    (tmp_path / KEY_NAME).chmod(0o600)
    for text in ("", "no hex", "abcd"):
        (tmp_path / KEY_NAME).write_text(text)
        with pytest.raises(RefusedError, match="is no key"):
            read_seal(tmp_path)
    (tmp_path / "file").write_text("")
    assert read_seal(tmp_path / "file") is None
    with pytest.raises(RemedyError, match="cannot be made"):
        make_seal(tmp_path / "file")


def test_a_plan_tells_that_a_secret_changed_and_not_what_it_is(tmp_path: Path) -> None:
    made = saved(sealed(plan(), inventory(), SEAL), tmp_path)
    assert list(made.secrets) == ["gpu01 _sudo_password"]  # of the host that is changed
    text = canonical(made)
    assert "open sesame" not in text
    assert SEAL.key.hex() not in text
    assert sha256(b"open sesame") not in text
    assert other_secrets(made, inventory(), SEAL) == ()
    (line,) = other_secrets(made, inventory("changed"), SEAL)
    assert line == "gpu01: _sudo_password is not what it was when the plan was made"
    again = sealed(plan(), inventory("changed"), SEAL)
    assert secrets_told(again) != secrets_told(made)
    assert secrets_told(again)[0].startswith("secret _sudo_password of gpu01: ")


@pytest.mark.parametrize("seal", [None, Seal(b"x" * 32)])
def test_without_the_key_nothing_can_be_said(tmp_path: Path, seal: Seal | None) -> None:
    made = saved(sealed(plan(), inventory(), SEAL), tmp_path)
    (line,) = other_secrets(made, inventory(), seal)
    assert "cannot be compared" in line
    assert differences(made.changes[0], made, {"now": b"x\n"}, seal) == ()


def test_a_plan_without_secrets_is_as_it_was() -> None:
    bare = replace(inventory(), nodes=(Node("gpu01", "10.0.0.1"),))
    assert sealed(plan(), bare, SEAL).secrets == {}
    assert other_secrets(plan(), bare, None) == ()
    assert '"secrets"' not in canonical(plan())
    assert '"lines"' not in canonical(plan())


def test_what_changed_in_a_stale_file_is_told_by_its_marks(tmp_path: Path) -> None:
    made = saved(sealed(plan(), inventory(), SEAL), tmp_path)
    assert made.contents == {}
    (change,) = made.changes

    def told(now: bytes) -> tuple[str, ...]:
        return differences(change, made, {"now": now}, SEAL)

    assert told(BEFORE) == ()
    assert told(BEFORE + b"10.9.9.9 fix\n") == ("@@ line 4 @@", "+10.9.9.9 fix")
    # What the plan would take out it has; lines of others it has not.
    gone = told(b"127.0.0.1 localhost\n10.1.1.1 storage\n")
    assert gone == ("@@ line 2 @@", "-127.0.1.1 gpu01")
    other = told(BEFORE.replace(b"10.1.1.1", b"10.1.1.2"))
    assert other == (
        "@@ line 3 @@",
        "-(1 lines that the plan does not hold)",
        "+10.1.1.2 storage",
    )


def test_what_is_shown_is_short_harmless_and_no_secret() -> None:
    made = plan()
    (change,) = made.changes
    now = BEFORE + b"".join(b"line %d\n" % number for number in range(100))
    lines = differences(change, made, {"now": now}, None)
    assert len(lines) == SHOWN + 1
    assert lines[-1] == f"and {101 - SHOWN} more lines"
    hostile = differences(change, made, {"now": BEFORE + b"\x1b[2J\xff\x9b\n"}, None)
    assert hostile[1] == "+\\x1b[2J\\xff\\x9b"
    assert differences(change, made, {"now": BEFORE + b"HF_TOKEN=canary\n"}, None)[1:] == (
        f"+{WITHHELD}",
    )
    assert len(visible(b"x" * 1000)) < 200


def test_files_of_many_lines_have_no_marks() -> None:
    long = b"x\n" * (LINES + 1)
    (change,) = sealed(plan(long, long + b"y\n"), inventory(), SEAL).changes
    assert isinstance(change.action, FileAction)
    assert change.action.lines == ""


def test_a_host_tells_what_everybody_there_can_read(tmp_path: Path) -> None:
    job = Job(run="r2", nonce="n0nce", by="")
    path = tmp_path / "hosts"
    path.write_bytes(b"now\n")
    path.chmod(0o644)
    action = FileAction(path=str(path), real_path=str(path), before=sha256(b"was\n"), after=None)
    change = plan().changes[0].model_copy(update={"action": action})
    kept = tmp_path / "runs" / "r1" / "new"
    kept.mkdir(parents=True)
    (kept / sha256(b"was\n")).write_bytes(b"was\n")

    def told(of: str) -> dict[str, dict[str, bytes]]:
        text = question(job, [change], str(tmp_path), of)
        done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return answers(job, done.stdout)

    assert told("r1") == {"01-x": {"now": b"now\n", "was": b"was\n"}}
    assert told("") == {"01-x": {"now": b"now\n"}}
    assert differences(change, plan(), told("r1")["01-x"], None) == (
        "@@ line 1 @@",
        "-was",
        "+now",
    )
    path.chmod(0o640)
    assert told("r1") == {}
    path.unlink()
    assert told("r1") == {}
    assert answers(job, "other 01-x now eA==\nn0nce 01-x now !\nn0nce 01-x now\n") == {}
