"""Plans that somebody agreed to, and stories of their runs."""

from __future__ import annotations

from remedy.audit import Story
from remedy.plan import Change, CommandAction, Finding, FindingKind, Origin, Plan

WHEN = Origin(created="2026-02-01T00:00:00+00:00", author="bob@ops")


def change(host: str, number: int, *, undo: str = "back") -> Change:
    return Change(
        id=f"{number:02d}-hostname",
        host=host,
        remedy="hostname",
        title=f"step {number} of {host}",
        reason="two hosts have one name",
        label="duplicate-hostname",
        reversible=bool(undo),
        action=CommandAction(observe="uname -n", before="node", after=host, do="there", undo=undo),
    )


def plan(*changes: Change) -> Plan:
    return Plan(
        tool_version="0.0.1",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        inventory_digest="of-inventory",
        spec_digest="of-spec",
        changes=changes or (change("a", 1), change("b", 1), change("b", 2)),
        findings=(
            Finding(host="a", remedy="hostname", kind=FindingKind.DRIFT, label="duplicate-hostname", title="t"),
        ),
    )  # fmt: skip


def story(results: dict[str, dict[str, str]], **fields: str) -> Story:
    told = {"run": "r1", "mode": "apply", "time": "2026-01-01T00:00:00+00:00", **fields}
    return Story(**told, results=results)  # type: ignore[arg-type]
