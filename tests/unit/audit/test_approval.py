"""Approval with real ssh keys: what is not a valid signature of this plan counts for nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remedy.audit.approval import (
    NAMESPACE,
    PLANNER,
    Approval,
    approvals,
    planner_file,
    require,
    sign,
)
from remedy.errors import RefusedError, UsageError
from remedy.plan import Plan, write_plan


def plan(created: str = "2026-01-01T00:00:00+00:00", author: str = "ann@ops") -> Plan:
    return Plan(
        tool_version="test",
        created=created,
        author=author,
        inventory="inventory.py",
        inventory_digest="",
        spec_digest="",
    )


class Desk:
    """A folder with a plan, keys and the file of allowed signers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plan.json"
        self.signers = folder / "allowed_signers"
        self.signers.write_text("# who may approve\n")
        write_plan(plan(), self.path)

    def key(
        self, who: str, options: str = f'namespaces="{NAMESPACE}"', *, allowed: bool = True
    ) -> Path:
        path = self.folder / who.split("@")[0]
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
        subprocess.run(command, check=True)
        if allowed:
            public = path.with_suffix(".pub").read_text()
            self.signers.write_text(f"{self.signers.read_text()}{who} {options} {public}")
        return path

    def who(self) -> list[str]:
        return [a.principal for a in approvals(plan(), self.path, self.signers)]


def approved(
    made: Plan, path: Path, signers: Path, count: int, revoked: Path | None = None
) -> tuple[Approval, ...]:
    """Return who approved a plan that its planner has signed."""
    key = path.parent / "pat"
    if not key.exists():
        desk = Desk.__new__(Desk)
        desk.folder, desk.signers = path.parent, signers
        desk.key("pat@ops", f'namespaces="{PLANNER}"')
    sign(made, path, key, planner=True)
    planner, approvals = require(made, path, signers, count, revoked)
    assert (planner.principal, planner.signature) == ("pat@ops", planner_file(path))
    return approvals


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_signature_of_an_allowed_key_counts(desk: Desk) -> None:
    sign(plan(), desk.path, desk.key("bob@ops"))
    assert desk.who() == ["bob@ops"]
    assert len(approved(plan(), desk.path, desk.signers, 1)) == 1


@pytest.mark.parametrize(
    "options",
    [
        'namespaces="git"',
        f'namespaces="{NAMESPACE}",valid-before="20200101"',
        f'namespaces="{NAMESPACE}",valid-after="20990101"',
    ],
)
def test_keys_for_another_purpose_or_time_count_for_nothing(desk: Desk, options: str) -> None:
    sign(plan(), desk.path, desk.key("bob@ops", options))
    assert desk.who() == []


def test_a_key_that_nobody_allowed_counts_for_nothing(desk: Desk) -> None:
    desk.key("bob@ops")
    sign(plan(), desk.path, desk.key("eve@ops", allowed=False))
    assert desk.who() == []


def test_a_signature_of_another_plan_counts_for_nothing(desk: Desk) -> None:
    sign(plan(created="2026-01-02T00:00:00+00:00"), desk.path, desk.key("bob@ops"))
    assert desk.who() == []
    with pytest.raises(RefusedError, match="valid ones are from nobody"):
        approved(plan(), desk.path, desk.signers, 1)


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.full)])
def test_every_changed_byte_of_a_signature_counts(desk: Desk, step: int) -> None:
    signature = sign(plan(), desk.path, desk.key("bob@ops"))
    whole = signature.read_bytes()
    for at in range(0, len(whole), step):
        byte = whole[at]
        signature.write_bytes(whole[:at] + bytes([byte ^ 1]) + whole[at + 1 :])
        assert desk.who() == [], f"byte {at}"
    signature.write_bytes(whole)
    assert desk.who() == ["bob@ops"]


def test_a_revoked_key_counts_for_nothing(desk: Desk) -> None:
    key = desk.key("bob@ops")
    sign(plan(), desk.path, key)
    revoked = desk.folder / "revoked"
    with pytest.raises(UsageError, match="no such file of revoked keys"):
        approved(plan(), desk.path, desk.signers, 1, revoked)
    revoked.write_bytes(b"")
    assert len(approved(plan(), desk.path, desk.signers, 1, revoked)) == 1
    revoked.write_bytes(key.with_suffix(".pub").read_bytes())
    with pytest.raises(RefusedError, match="evoked"):
        approved(plan(), desk.path, desk.signers, 1, revoked)


def test_why_a_signature_does_not_count_is_told(desk: Desk) -> None:
    expired = f'namespaces="{NAMESPACE}",valid-before="20200101"'
    sign(plan(), desk.path, desk.key("bob@ops", expired))
    sign(plan(created="2026-01-02T00:00:00+00:00"), desk.path, desk.key("cleo@ops"))
    desk.path.with_name("plan.json.dora.sig").write_text("no signature")
    sign(plan(), desk.path, desk.key("ann@ops"))
    with pytest.raises(RefusedError) as caught:
        approved(plan(), desk.path, desk.signers, 2)
    told = caught.value.message
    assert "plan.json.ann.sig is the author's own" in told
    assert "plan.json.bob.sig: its key is not allowed for this purpose, or not at this time" in told
    assert "plan.json.cleo.sig: Signature verification failed" in told
    assert "plan.json.dora.sig: not a signature, or changed after it was made" in told


def test_two_approvals_are_of_two_people_and_not_the_author(desk: Desk) -> None:
    for who in ("bob@ops", "ann@ops"):
        sign(plan(), desk.path, desk.key(who))
    assert len(approved(plan(), desk.path, desk.signers, 1)) == 1
    with pytest.raises(RefusedError, match="2 approvals are required"):
        approved(plan(), desk.path, desk.signers, 2)
    sign(plan(), desk.path, desk.key("cleo@ops"))
    assert {a.principal for a in approved(plan(), desk.path, desk.signers, 2)} == {
        "bob@ops",
        "cleo@ops",
    }


@pytest.mark.parametrize(
    "principal",
    [
        "Ann@ops.example.org",
        *(pytest.param(n, marks=pytest.mark.full) for n in ("ann@example.org", "ann")),
    ],
)
def test_an_author_is_known_by_another_address_too(desk: Desk, principal: str) -> None:
    """Allowed signers are listed by mail address; who made a plan is login@machine."""
    keys = [desk.key(who) for who in ("bob@example.org", principal)]
    for key in keys:
        sign(plan(), desk.path, key)
    assert len(approved(plan(), desk.path, desk.signers, 1)) == 1
    with pytest.raises(RefusedError, match="is the author's own"):
        approved(plan(), desk.path, desk.signers, 2)
    of_another = plan(author="annabel@laptop")
    for key in keys:
        sign(of_another, desk.path, key)
    assert len(approved(of_another, desk.path, desk.signers, 2)) == 2


def test_the_same_person_twice_is_one_approval(desk: Desk) -> None:
    key = desk.key("bob@ops")
    first = sign(plan(), desk.path, key)
    first.with_name("plan.json.again.sig").write_bytes(first.read_bytes())
    assert desk.who() == ["bob@ops"]


def test_a_missing_or_empty_list_of_signers_is_told(desk: Desk) -> None:
    with pytest.raises(UsageError, match="nobody may approve"):
        approvals(plan(), desk.path, desk.signers)
    with pytest.raises(UsageError, match="No such file"):
        approvals(plan(), desk.path, desk.folder / "nowhere")


def test_a_key_that_cannot_sign_is_told(desk: Desk) -> None:
    (desk.folder / "garbage").write_text("no key\n")
    (desk.folder / "garbage").chmod(0o600)
    with pytest.raises(UsageError, match="cannot sign") as caught:
        sign(plan(), desk.path, desk.folder / "garbage")
    assert "others can read it" not in caught.value.message


def test_what_is_signed_is_one_line_that_names_the_plan(desk: Desk) -> None:
    """Anybody can check a signature with ssh-keygen and this line, without remedy."""
    key = desk.key("bob@ops")
    signature = sign(plan(), desk.path, key)
    assert signature == desk.path.with_name("plan.json.bob.sig")
    check = [
        "-Y",
        "verify",
        "-f",
        str(desk.signers),
        "-I",
        "bob@ops",
        "-n",
        NAMESPACE,
        "-s",
        str(signature),
    ]
    line = f"remedy plan {plan().digest}\n"
    done = subprocess.run(
        ["ssh-keygen", *check], input=line.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_too_few_approvals_are_told_with_the_plan_the_number_and_the_names(desk: Desk) -> None:
    for who in ("bob@ops", "ann@ops"):
        sign(plan(), desk.path, desk.key(who))
    with pytest.raises(RefusedError) as caught:
        approved(plan(), desk.path, desk.signers, 2)
    message = caught.value.message
    assert message.startswith(f"{desk.path}: 2 ")
    assert "bob@ops" in message
    # Only the author's own is named as that.
    assert message.count("the author's") == 1
    assert "plan.json.ann.sig" in message
    assert "plan.json.bob.sig" not in message
    assert f"remedy approve {desk.path}" in caught.value.next_step
    assert str(desk.signers) in caught.value.next_step


def test_the_author_may_not_give_the_only_approval(desk: Desk) -> None:
    sign(plan(), desk.path, desk.key("ann@ops"))
    with pytest.raises(RefusedError, match=r"ann\.sig is the author's own"):
        approved(plan(), desk.path, desk.signers, 1)


def test_files_that_cannot_be_used_are_named_with_what_to_do(desk: Desk) -> None:
    nobody, nowhere = desk.folder / "nobody", desk.folder / "nowhere"
    nobody.write_text("  # only a comment\n\n")
    with pytest.raises(UsageError) as caught:
        approvals(plan(), desk.path, nobody)
    assert str(nobody) in caught.value.message
    assert NAMESPACE in caught.value.next_step
    with pytest.raises(UsageError) as caught:
        approvals(plan(), desk.path, nowhere)
    assert str(nowhere) in caught.value.message
    assert "allowed signers" in caught.value.next_step
    nobody.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as caught:
        approvals(plan(), desk.path, nobody)
    assert str(nobody) in caught.value.message
    desk.key("bob@ops")
    with pytest.raises(UsageError) as caught:
        approvals(plan(), desk.path, desk.signers, nowhere)
    assert str(nowhere) in caught.value.message
    assert "approval.revoked_keys" in caught.value.next_step


def test_a_key_that_others_can_read_is_told_as_that(desk: Desk) -> None:
    key = desk.key("bob@ops")
    key.chmod(0o644)
    with pytest.raises(UsageError) as caught:
        sign(plan(), desk.path, key)
    assert caught.value.message.startswith(f"{key}: ")
    assert "others can read it" in caught.value.message
    assert "agent" in caught.value.next_step
    assert list(desk.folder.glob("*.sig")) == []


def test_without_ssh_keygen_the_package_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = desk.key("bob@ops")
    monkeypatch.setenv("PATH", str(desk.folder))
    with pytest.raises(UsageError, match="ssh-keygen") as caught:
        sign(plan(), desk.path, key)
    assert "openssh-client" in caught.value.next_step


def test_a_plan_that_its_planner_has_not_signed_is_refused_with_the_command(desk: Desk) -> None:
    sign(plan(), desk.path, desk.key("bob@ops"))
    file = desk.folder / "plan.json.planner"
    assert planner_file(desk.path) == file
    for reason in (
        "cannot be read: No such file or directory",
        "not a signature, or changed after it was made",
    ):
        with pytest.raises(RefusedError) as caught:
            require(plan(), desk.path, desk.signers, 1)
        assert caught.value.message == (
            f"{desk.path}: who made this plan has not signed it as its planner: plan.json.planner: {reason}"
        )
        assert caught.value.next_step == (
            f"Have it signed: remedy approve {desk.path} --planner --key KEY. {desk.signers} has to allow the "
            'key for that: namespaces="remedy-planner@v1".'
        )
        file.write_text("nonsense")


def test_an_ssh_keygen_that_does_not_answer_is_given_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = desk.key("bob@ops")
    limits = []

    def never(*_: object, **options: float) -> None:
        limits.append(options["timeout"])
        raise subprocess.TimeoutExpired("ssh-keygen", options["timeout"])

    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(RefusedError, match="did not answer within 300 s") as caught:
        sign(plan(), desk.path, key)
    assert limits == [300]
    assert "ssh-add -l" in caught.value.next_step
