"""What was agreed to: what the journal is told, what is kept beside it, and what takes it back."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from remedy.audit import Story
from remedy.audit.agreement import (
    Agreement,
    irreversible,
    keep,
    plan_path,
    read_agreed,
    titles,
    undoing,
)
from remedy.audit.approval import Approval
from remedy.errors import PlanFileError, RemedyError, StaleError
from remedy.plan import Choice, CommandAction, Plan, read_plan
from remedy.plan.shared import FORMAT
from tests.unit.audit.agreement_bench import WHEN, change, plan, story

# --- what the journal is told ------------------------------------------------------------------------------


def test_the_journal_is_told_what_was_agreed_to_and_by_whom() -> None:
    whole = plan()
    record = Agreement(whole).record(whole.restricted(["b"]), waves=2, proving=True)
    assert record == {
        "by": "ann@ops",
        "author": "ann@ops",
        "created": "2026-01-01T00:00:00+00:00",
        "inventory": "inventory.py",
        "inventory_digest": "of-inventory",
        "spec_digest": "of-spec",
        "tool_version": "0.0.1",
        "digest": whole.digest,
        "changes": {"b": ["step 1 of b", "step 2 of b"]},
        "waves": 2,
        "prove_waves": True,
    }


def test_the_journal_is_told_of_signatures_and_of_the_run_before(tmp_path: Path) -> None:
    signature = tmp_path / "plan.json.eve.sig"
    signature.write_text("signed")
    agreed = Agreement(
        plan(), (Approval("eve@ops", signature),), resumes="r0", of="r9", by="bob@ops"
    )
    record = agreed.record(plan(), waves=1)
    assert record["approvals"] == [{"principal": "eve@ops", "signature": "signed"}]
    assert (record["resumes"], record["of"]) == ("r0", "r9")
    assert (record["by"], record["author"]) == ("bob@ops", "ann@ops")


def test_titles_are_those_of_each_host_in_order() -> None:
    assert titles(plan(change("b", 2), change("a", 1), change("b", 3))) == {
        "b": ["step 2 of b", "step 3 of b"],
        "a": ["step 1 of a"],
    }


# --- what is kept ------------------------------------------------------------------------------------------


def test_the_plan_and_every_signature_are_kept_beside_the_journal(tmp_path: Path) -> None:
    signatures = []
    for name in ("bob", "eve"):
        signatures.append(tmp_path / f"plan.json.{name}.sig")
        signatures[-1].write_bytes(f"signed by {name}\r\n".encode())
    approvals = tuple(Approval(f"{path.name}@ops", path) for path in signatures)
    home = tmp_path / ".remedy"
    keep(Agreement(plan(), approvals), home, "r1")
    folder = home / "runs" / "r1"
    assert plan_path(home, "r1") == folder / "plan.json"
    assert read_plan(folder / "plan.json").digest == plan().digest
    kept = [path.read_bytes() for path in sorted(folder.glob("*.sig"))]
    assert kept == [path.read_bytes() for path in signatures]
    # By these names `remedy approve` and `apply --plan` look for signatures beside a plan.
    assert sorted(path.name for path in folder.glob("plan.json.*.sig")) == [
        "plan.json.1.sig",
        "plan.json.2.sig",
    ]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_cannot_be_kept_stops_the_run_and_names_the_place(tmp_path: Path) -> None:
    home = tmp_path / ".remedy"
    keep(Agreement(plan()), home, "r1")
    with pytest.raises(RemedyError, match="cannot be written") as caught:
        keep(Agreement(plan()), home, "r1")
    assert str(home / "runs" / "r1") in caught.value.message
    assert "File exists" in caught.value.message
    assert "Nothing was changed" in caught.value.next_step


def test_the_kept_plan_is_read_only_as_the_one_that_the_journal_names(tmp_path: Path) -> None:
    keep(Agreement(plan()), tmp_path, "r1")
    told = story({}, digest=plan().digest)
    told.began = {"a"}
    assert read_agreed(tmp_path, told).digest == plan().digest
    told.digest = "0" * 64
    with pytest.raises(StaleError) as caught:
        read_agreed(tmp_path, told)
    assert str(plan_path(tmp_path, "r1")) in caught.value.message
    assert "Bring the plan 000000000000 back from a backup" in caught.value.next_step
    with pytest.raises(PlanFileError):
        read_agreed(tmp_path, Story("r7", "apply", ""))


# --- what takes it back ------------------------------------------------------------------------------------


def test_what_was_made_or_may_have_been_made_is_taken_back_last_one_first() -> None:
    whole = plan(*(change(host, n) for host in ("a", "b", "c", "d") for n in (1, 2)))
    results = {
        "a": {"01-hostname": "done", "02-hostname": "done"},
        "b": {"01-hostname": "already", "02-hostname": "failed"},
        "c": {"01-hostname": "stale", "02-hostname": "not tried"},
        "d": {"01-hostname": "done"},
    }
    back = undoing(whole, story(results), WHEN)
    assert [(c.host, c.id) for c in back.changes] == [
        ("a", "undo-02-hostname"),
        ("a", "undo-01-hostname"),
        ("b", "undo-02-hostname"),
        ("d", "undo-02-hostname"),
        ("d", "undo-01-hostname"),
    ]
    assert all(isinstance(c.action, CommandAction) and c.action.do == "back" for c in back.changes)


def of_two_remedies() -> Plan:
    """Changes of two remedies on each host, one of them between two of the other."""
    hosts_file = {"remedy": "hosts_file", "id": "02-hosts_file"}
    steps = {host: [change(host, n) for n in (1, 2, 3)] for host in ("a", "b")}
    mixed = (
        (first, second.model_copy(update=hosts_file), third)
        for first, second, third in steps.values()
    )
    return plan(*(step for of_host in mixed for step in of_host))


@pytest.mark.parametrize(
    ("choice", "ids"),
    [
        (Choice(only=("hosts_file",)), ["undo-02-hosts_file"]),
        (Choice(skip=("hosts_file",)), ["undo-03-hostname", "undo-01-hostname"]),
        (Choice(), ["undo-03-hostname", "undo-02-hosts_file", "undo-01-hostname"]),
        (Choice(only=("limits",)), []),
    ],
)
def test_only_what_chosen_remedies_made_is_taken_back_in_the_same_order(
    choice: Choice, ids: list[str]
) -> None:
    back = undoing(of_two_remedies(), story({}), WHEN, choice)
    assert [(c.host, c.id) for c in back.changes] == [(h, i) for h in ("a", "b") for i in ids]
    record = Agreement(back, of="r1").record(back, waves=1)
    assert {k: record[k] for k in ("only", "skip") if k in record} == choice.record
    assert (back.digest == undoing(of_two_remedies(), story({}), WHEN).digest) is not bool(choice)


def test_what_nothing_takes_back_is_named_of_chosen_remedies_alone() -> None:
    whole = plan(change("a", 1, undo=""), change("b", 1, undo=""))
    assert len(irreversible(whole, story({}), Choice(only=("hostname",)))) == 2
    assert irreversible(whole, story({}), Choice(skip=("hostname",))) == ()


def test_a_run_of_which_nothing_was_heard_is_taken_back_as_a_whole() -> None:
    assert len(undoing(plan(), story({}), WHEN).changes) == 3


def test_the_plan_back_is_one_of_its_own_and_promises_nothing() -> None:
    back = undoing(
        plan().model_copy(update={"format_version": 1, "observed": {"a": "x"}}), story({}), WHEN
    )
    assert (back.created, back.author) == (WHEN.created, WHEN.author)
    assert (back.findings, back.observed) == ((), {})
    assert back.format_version == FORMAT
    assert back.tool_version != "0.0.1"
    assert back.inventory_digest == "of-inventory"


def test_what_nothing_takes_back_is_named_where_it_was_made() -> None:
    whole = plan(
        change("a", 1, undo=""), change("a", 2), change("b", 1, undo=""), change("c", 1, undo="")
    )
    results = {"a": {"01-hostname": "done", "02-hostname": "done"}, "b": {"01-hostname": "already"}}
    found = irreversible(whole, story(results))
    assert [(c.host, c.id) for c in found] == [("a", "01-hostname"), ("c", "01-hostname")]
    assert [(c.host, c.id) for c in undoing(whole, story(results), WHEN).changes] == [
        ("a", "undo-02-hostname")
    ]


def test_a_record_can_be_written_as_json() -> None:
    assert json.loads(json.dumps(Agreement(plan()).record(plan(), waves=1)))["waves"] == 1
