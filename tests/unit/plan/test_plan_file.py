"""Plan files: what is read is what was written, or it is refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remedy.audit import Journal, hosts_of_plan
from remedy.errors import PlanFileError, RemedyError
from remedy.plan import Change, CommandAction, FileAction, Plan, read_plan, sha256, write_plan

# Written once; what changes the format has to change its number.
STORED = Path(__file__).parents[1] / "data" / "plans" / "format-1.json"


def plan() -> Plan:
    common: dict[str, Any] = {
        "host": "gpu01",
        "remedy": "hosts_file",
        "reason": "r",
        "label": "loopback-hostname",
    }
    before, after = b"127.0.1.1 gpu01\n\xff", b"10.0.0.1 gpu01\n\xff"
    return Plan(
        tool_version="0.1.0",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        inventory_digest="i",
        spec_digest="s",
        changes=(
            Change(
                id="01-hosts_file",
                title="write",
                action=FileAction(
                    path="/etc/hosts",
                    real_path="/etc/hosts",
                    before=sha256(before),
                    after=sha256(after),
                ),
                **common,
            ),
            Change(
                id="02-hostname",
                title="set",
                action=CommandAction(
                    observe="uname -n", before="node", after="gpu01", do="hostname gpu01", undo=""
                ),
                **common,
            ),
        ),
        blobs={sha256(after): after},
    )


def written(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    write_plan(plan(), path)
    return path


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    again = read_plan(written(tmp_path))
    assert again == plan()
    assert again.digest == plan().digest


def test_a_plan_of_this_format_that_was_written_before_is_still_read() -> None:
    before = read_plan(STORED)
    action = before.changes[0].action
    assert isinstance(action, FileAction)
    assert action.splices is not None
    assert [before.blobs[one.after or ""] for one in action.splices] == [b"10.0.0.1 gpu01\n"]
    assert set(before.observed) == {"gpu01"}


def test_what_the_hosts_were_like_is_in_the_plan_and_counts(tmp_path: Path) -> None:
    seen = plan().model_copy(update={"observed": {"gpu01": "f" * 64}})
    path = tmp_path / "plan.json"
    write_plan(seen, path)
    assert read_plan(path).observed == {"gpu01": "f" * 64}
    assert seen.digest != plan().digest


def test_a_plan_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(RemedyError, match="cannot be written"):
        write_plan(plan(), tmp_path / "plan.json")
    with pytest.raises(RemedyError, match="cannot be written"):
        write_plan(plan(), tmp_path / "nowhere" / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_how_it_is_laid_out_does_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert read_plan(path) == plan()


def test_no_change_of_a_byte_is_accepted(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for at, byte in enumerate(whole):
        path.write_bytes(whole[:at] + bytes([byte ^ 1]) + whole[at + 1 :])
        try:
            assert read_plan(path) == plan(), f"byte {at} can be changed unseen"
        except PlanFileError:
            continue


@pytest.mark.parametrize("size", [0, 1, 40, 900])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(PlanFileError, match="not a whole plan file"):
        read_plan(path)


def test_a_field_of_a_later_version_is_kept_and_its_digest_holds(tmp_path: Path) -> None:
    newer = Plan.model_validate_json(json.dumps({**plan().model_dump(mode="json"), "mood": "calm"}))
    path = tmp_path / "plan.json"
    write_plan(newer, path)
    assert newer.digest != plan().digest
    assert read_plan(path).digest == newer.digest
    assert read_plan(path).changes == plan().changes


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    document = json.loads(path.read_text())
    document["plan"]["format_version"] = 3
    path.write_text(json.dumps(document))
    with pytest.raises(PlanFileError, match="is of format 3"):
        read_plan(path)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"plan": 1, "digest": ""}', '{"plan": {}, "digest": ""}']
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanFileError) as caught:
        read_plan(path)
    assert "remedy plan INVENTORY -o" in caught.value.next_step


def test_the_journal_knows_where_a_plan_was_carried_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path, run="r1", mode="apply")
    journal.write("planned", digest="d1", changes={"gpu01": ["x"], "gpu02": ["x"], "gpu03": ["x"]})
    journal.write("began", hosts=["gpu01"])
    journal.write("began", hosts=["gpu02"])
    Journal(tmp_path, run="r2", mode="rollback").write(
        "planned", digest="d2", changes={"gpu03": []}
    )
    assert hosts_of_plan(journal.path, "d1") == {"gpu01", "gpu02"}
    assert hosts_of_plan(journal.path, "d2") == set()
    assert hosts_of_plan(tmp_path / "nowhere", "d1") == set()


def test_what_is_asked_of_a_plan_changes_neither_it_nor_its_copies() -> None:
    fresh, asked = plan(), plan()
    assert [change.id for change in asked.for_host("gpu01")] == ["01-hosts_file", "02-hostname"]
    assert asked.for_host("gpu02") == () == asked.findings_of("gpu01")
    assert asked == fresh
    assert asked.digest == fresh.digest
    assert asked.restricted(["gpu02"]).for_host("gpu01") == ()
    assert len(asked.model_copy(update={"changes": asked.changes[:1]}).for_host("gpu01")) == 1
