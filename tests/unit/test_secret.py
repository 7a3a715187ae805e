"""Keyed digests: they show that a secret has changed, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from remedy.errors import RefusedError, RemedyError
from remedy.inventory import Inventory, Node
from remedy.plan import Change, FileAction, Plan, read_plan, sha256, write_plan
from remedy.plan.plan import canonical
from remedy.plan.seal import changed_secrets, sealed, secret_lines
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
        with pytest.raises(RefusedError, match="is not a key"):
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
    assert changed_secrets(made, inventory(), SEAL) == ()
    (line,) = changed_secrets(made, inventory("changed"), SEAL)
    assert line == "gpu01: _sudo_password has changed since the plan was made"
    again = sealed(plan(), inventory("changed"), SEAL)
    assert secret_lines(again) != secret_lines(made)
    assert secret_lines(again)[0].startswith("secret _sudo_password of gpu01: ")


@pytest.mark.parametrize("seal", [None, Seal(b"x" * 32)])
def test_without_the_key_nothing_can_be_said(tmp_path: Path, seal: Seal | None) -> None:
    made = saved(sealed(plan(), inventory(), SEAL), tmp_path)
    (line,) = changed_secrets(made, inventory(), seal)
    assert "cannot be compared" in line


def test_a_plan_without_secrets_is_as_it_was() -> None:
    bare = replace(inventory(), nodes=(Node("gpu01", "10.0.0.1"),))
    assert sealed(plan(), bare, SEAL).secrets == {}
    assert changed_secrets(plan(), bare, None) == ()
