"""The plan of many hosts: what they have alike stands once in its file, and is read, checked and shown once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from remedy.errors import PlanFileError
from remedy.plan import (
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Plan,
    make_plan,
    read_plan,
    reading,
    sha256,
    write_plan,
)
from remedy.plan.plan import plan_document
from remedy.plan.shared import FORMAT, LARGE, LARGE_FORMAT, format_for
from remedy.plan.splice import join, spliced
from remedy.report.whole import render_whole
from tests.unit.build import WHEN
from tests.unit.growth import fleet

AFTER = b"a setting of all hosts\n"
SETTING = FileAction(path="/etc/x", real_path="/etc/x", before=None, after=sha256(AFTER))
OF_FLEET = Finding(
    host=None, remedy="x", kind=FindingKind.REPORT, label="l", title="of the whole fleet"
)


def steps(host: str, number: int) -> list[Change]:
    """Return the changes of a host: one that all have, one of its own, and one more of every third."""
    name = CommandAction(
        observe="uname -n", before="node", after=host, do=f"hostname {host}", undo="hostname node"
    )
    actions: list[Any] = [SETTING, name]
    actions = actions if number % 3 else [name, SETTING, name.model_copy(update={"before": "x"})]
    return [
        Change(
            id=f"{at:02d}-x", host=host, remedy="x", title="t", reason="found", label="l", action=a
        )
        for at, a in enumerate(actions, 1)
    ]


def plan(count: int = LARGE + 20) -> Plan:
    hosts = [f"gpu{number:04}" for number in range(count)]
    findings = [
        Finding(host=h, remedy="x", kind=FindingKind.DRIFT, label="l", title="found")
        for h in (*hosts, "login1")
    ]
    return Plan(
        format_version=format_for(count),
        tool_version="1",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        inventory_digest="i",
        spec_digest="s",
        changes=tuple(c for n, host in enumerate(hosts) for c in steps(host, n)),
        findings=(OF_FLEET, *findings),
        blobs={SETTING.after: AFTER} if SETTING.after else {},
    )


def file_of(large: Plan, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    write_plan(large, path)
    return path


def test_a_large_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    large = plan()
    again = read_plan(file_of(large, tmp_path))
    assert large.format_version == LARGE_FORMAT
    assert again == large
    assert (again.digest, again.content_digest) == (large.digest, large.content_digest)
    assert again.hosts == large.hosts


def test_a_large_plan_with_each_change_by_itself_has_the_digest_of_its_file(tmp_path: Path) -> None:
    large = plan()
    apart = {
        **large.model_dump(mode="json"),
        "format_version": FORMAT,
    }  # as `show --json` prints it
    path = tmp_path / "shown.json"
    path.write_text(json.dumps({"digest": large.digest, "plan": apart}))
    assert read_plan(path) == large
    apart["changes"][0]["title"] = "harmless"
    path.write_text(json.dumps({"digest": large.digest, "plan": apart}))
    with pytest.raises(PlanFileError, match="its digest does not match"):
        read_plan(path)


def test_findings_come_back_host_after_host_and_the_digest_does_not_ask_for_their_order(
    tmp_path: Path,
) -> None:
    large = plan()
    turned = large.model_copy(update={"findings": large.findings[::-1]})
    again = read_plan(file_of(turned, tmp_path))
    assert again.digest == turned.digest == large.digest
    assert again.findings == large.findings


def test_what_all_hosts_have_stands_once_in_the_file(tmp_path: Path) -> None:
    path = file_of(plan(), tmp_path)
    text = path.read_text()
    assert text.count('"/etc/x"') == 2 * 2  # path and real path, at two places among the changes
    assert text.count('"of the whole fleet"') == 1
    document = json.loads(text)["plan"]
    shared = [change for change in document["changes"] if "hosts" in change]
    assert sorted(len(change["hosts"]) for change in shared) == [28, 56]


def test_a_small_plan_has_each_change_by_itself(tmp_path: Path) -> None:
    small = plan(LARGE)
    assert small.format_version == FORMAT
    document = json.loads(file_of(small, tmp_path).read_text())["plan"]
    assert len(document["changes"]) == len(small.changes)
    assert not {"order", "hosts"} & {*document, *document["changes"][0]}


def test_a_host_more_costs_its_name_and_what_is_its_own(tmp_path: Path) -> None:
    def size(count: int) -> int:
        alike = [c for c in plan(count).changes if c.action == SETTING and c.id == "01-x"]
        large = plan(count).model_copy(update={"changes": tuple(alike), "findings": ()})
        return file_of(large, tmp_path).stat().st_size

    # Two of three hosts have the change: their names, once there and once in the order of all.
    assert size(400) - size(100) == 200 * 2 * len('"gpu0000", ')


def edited(path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    """Change a plan file, with the digest that its text has then."""
    document = json.loads(path.read_text())
    edit(document["plan"])
    text = json.dumps(document["plan"], sort_keys=True, separators=(",", ":"))
    document["digest"] = sha256(text.encode())
    path.write_text(json.dumps(document))
    return path


def first_shared(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(change for change in body["changes"] if "hosts" in change)
    return found


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda p: first_shared(p)["hosts"].append("gpu0001"), "digest does not match"),
        (lambda p: first_shared(p)["hosts"].append("evil9"), "whole plan file"),
        (lambda p: first_shared(p)["hosts"].append(7), "whole plan file"),
        (lambda p: first_shared(p).update(hosts=[]), "whole plan file"),
        (lambda p: first_shared(p).update(hosts="gpu0001"), "whole plan file"),
        (lambda p: first_shared(p).update(hosts=[["gpu0001"]]), "whole plan file"),
        (lambda p: p.update(order=[None]), "whole plan file"),
        (lambda p: p.update(order=7), "whole plan file"),
        (lambda p: p["order"].reverse(), "digest does not match"),
        (lambda p: p["changes"].reverse(), "digest does not match"),
        (lambda p: p.update(order=[*p["order"], "-x"]), "digest does not match"),
        (lambda p: p.update(format_version=1), "03-x is change number 2 there"),
    ],
)
def test_what_no_large_plan_holds_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], words: str
) -> None:
    path = edited(file_of(plan(), tmp_path), edit)
    with pytest.raises(PlanFileError) as caught:
        read_plan(path)
    assert words in f"{caught.value.message}"


def test_a_change_that_stands_for_too_many_hosts_is_not_made_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(plan(), tmp_path)
    monkeypatch.setattr(reading, "MOST_COPIES", 100)
    with pytest.raises(PlanFileError, match="not a whole plan file"):
        read_plan(path)


def test_a_fault_of_what_many_hosts_have_is_found_once(tmp_path: Path) -> None:
    large = plan()
    bad = tuple(
        c.model_copy(update={"label": "No Label"}) if c.id == "01-x" else c for c in large.changes
    )
    with pytest.raises(PlanFileError, match="gpu0000: 01-x: its cause is no label"):
        read_plan(file_of(large.model_copy(update={"changes": bad}), tmp_path))
    found = list(reading.faults(large.model_copy(update={"changes": bad})))
    assert len(found) < LARGE


def test_a_later_field_of_a_large_plan_is_kept(tmp_path: Path) -> None:
    def add(body: dict[str, Any]) -> None:
        first_shared(body)["mood"] = ["calm"]

    again = read_plan(edited(file_of(plan(), tmp_path), add))
    moody = [c for c in again.changes if c.model_extra]
    assert {c.model_extra["mood"][0] for c in moody if c.model_extra} == {"calm"}
    assert len(moody) == len(first_shared(plan_document(again))["hosts"])


def test_all_of_a_large_plan_is_shown(tmp_path: Path) -> None:
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    large = read_plan(file_of(plan(), tmp_path))
    console.print(render_whole(large))
    text = console.export_text()
    assert "gpu[0000-0083]" in text
    assert "of the whole fleet" in text
    assert text.count("a setting of all hosts") == 1


def test_a_block_is_one_piece_for_all_hosts_however_near_their_own_lines_change() -> None:
    block = (
        b"# BEGIN remedy: hosts of the cluster (this block is replaced as a whole)\n"
        + b"".join(b"10.0.0.%d\tgpu%d\n" % (n, n) for n in range(200))
    )
    block += b"# END remedy\n"
    blobs: dict[str, bytes] = {}
    for number in range(5):
        own = b"127.0.1.1\tgpu%d\n" % number
        before, after = b"127.0.0.1 localhost\n" + own, b"127.0.0.1 localhost\n#" + own + block
        action = FileAction(
            path="/etc/hosts", real_path="/etc/hosts", before=sha256(before), after=sha256(after)
        )
        change = steps("gpu1", 1)[0].model_copy(update={"action": action})
        (lean,), parts = spliced([change], {sha256(b): b for b in (before, after)})
        assert isinstance(lean.action, FileAction)
        assert join(before, lean.action.splices or (), parts) == after
        blobs |= parts
    assert sorted(map(len, blobs.values()))[-1] == len(block)
    assert sum(map(len, blobs.values())) < len(block) + 5 * 2 * 20


@pytest.mark.parametrize("count", [100, 200])
def test_the_plan_of_a_first_run_holds_the_block_once(count: int, tmp_path: Path) -> None:
    large = make_plan(fleet(count, 1.0), WHEN)
    path = file_of(large, tmp_path)
    assert len(large.hosts) == count
    assert len(large.blobs) == 1
    assert read_plan(path).digest == large.digest
    # The block has a line a host, in base64; a host's change and findings are those of the others.
    assert path.stat().st_size < 12_000 + 180 * count


def test_what_hosts_have_alike_is_the_same_objects_in_a_plan_that_was_made_or_read(
    tmp_path: Path,
) -> None:
    made = make_plan(fleet(LARGE + 20, 1.0), WHEN)
    for large in (made, read_plan(file_of(made, tmp_path))):
        assert len(large.changes) >= LARGE + 20
        assert len({id(change.action) for change in large.changes}) <= len(large.shared_changes)
        drift = [f for f in large.findings if f.kind is FindingKind.DRIFT]
        assert len({id(f.evidence) for f in drift}) < LARGE


def test_each_change_and_finding_is_known_by_its_kind() -> None:
    large = plan()
    for items, kinds, shared in (
        (large.changes, large.change_kinds, large.shared_changes),
        (large.findings, large.finding_kinds, large.shared_findings),
    ):
        for item in items:
            kind = shared[kinds[id(item)]]
            assert item.host in kind.hosts
            assert kind.item.model_copy(update={"host": item.host}) == item
