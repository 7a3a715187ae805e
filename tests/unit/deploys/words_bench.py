"""What a plan says of a host, as an operator reads it: whole sentences and commands to hold against it."""

from __future__ import annotations

from typing import Any, NamedTuple

from remedy.plan import CommandAction, FileAction, Fleet, Plan, make_plan, section_models
from remedy.probe import HostState
from tests.unit.build import WHEN, fleet, with_section


class Said(NamedTuple):
    """What is wrong, what shows it, and what to do."""

    kind: str
    title: str
    evidence: tuple[str, ...]
    fix: str


class Run(NamedTuple):
    """What a plan runs, how that is seen, and what takes it back."""

    title: str
    risk: str
    guarded: bool
    disrupts: str
    observe: str
    before: str
    after: str
    do: str
    undo: str


class Write(NamedTuple):
    """What a plan writes, None for a file that it removes."""

    title: str
    risk: str
    guarded: bool
    disrupts: str
    path: str
    content: bytes | None


def planned(remedy: str, *states: HostState, absent: tuple[str, ...] = (), **settings: Any) -> Plan:
    """Return what one remedy plans for these hosts with these settings."""
    spec = with_section(remedy, section_models()[remedy](**settings))
    return planned_for(remedy, fleet(*states, spec=spec, absent=absent))


def planned_for(remedy: str, hosts: Fleet) -> Plan:
    return make_plan(hosts, WHEN, only=remedy)


def said(plan: Plan, host: str | None = "a") -> list[Said]:
    """Return what is said of a host, or of the fleet (None)."""
    return [Said(f.kind.value, f.title, f.evidence, f.fix) for f in plan.findings if f.host == host]


def run(plan: Plan, host: str = "a") -> list[Run]:
    """Return the commands that a plan runs on a host."""
    return [
        Run(
            change.title, change.risk.value, change.guarded, change.disrupts,
            action.observe, action.before, action.after, action.do, action.undo,
        )
        for change in plan.for_host(host)
        if isinstance(action := change.action, CommandAction)
    ]  # fmt: skip


def written(plan: Plan, host: str = "a") -> list[Write]:
    """Return the files that a plan writes on a host."""
    return [
        Write(
            change.title, change.risk.value, change.guarded, change.disrupts,
            action.path, None if action.after is None else plan.contents[action.after],
        )
        for change in plan.for_host(host)
        if isinstance(action := change.action, FileAction)
    ]  # fmt: skip
