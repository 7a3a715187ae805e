"""Carrying out plans of a test's own, without the command line."""

from __future__ import annotations

from pathlib import Path

from remedy.apply.start import origin
from remedy.audit.agreement import Agreement
from remedy.plan import Change, CommandAction, FileAction, Plan, sha256
from remedy.runs.apply import apply
from remedy.runs.gate import Proposal
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session, open_session
from tests.lab.conftest import Cluster

TABLE = "inet remedy_test_lockout"
LOCKOUT = CommandAction(
    observe=f"nft list table {TABLE} >/dev/null 2>&1 && echo there || echo gone",
    before="gone",
    after="there",
    do=f"nft add table {TABLE} && nft add chain {TABLE} input "
    "'{ type filter hook input priority -300; policy accept; }' && "
    f"nft add rule {TABLE} input tcp dport 22 drop",
    undo=f"nft delete table {TABLE}",
)


def plan_of(host: str, action: CommandAction | FileAction, blobs: dict[str, bytes]) -> Plan:
    who = origin()
    change = Change(
        id="01-test",
        host=host,
        remedy="test",
        title="a change that can cut the connection",
        reason="test",
        label="firewall-ports",
        guarded=True,
        action=action,
    )
    return Plan(
        tool_version="test",
        created=who.created,
        author=who.author,
        inventory="inventory.py",
        inventory_digest="",
        spec_digest="",
        changes=(change,),
        blobs=blobs,
    )


def carry_out(session: Session, plan: Plan, result: ProbeResult) -> RunOutcome:
    """Carry out a plan without asking and without verifying."""
    proposal = Proposal("apply", Agreement(plan), plan, result)
    return apply(session, proposal, consent=lambda _: None, prove=False)


def open_hosts(inventory: Path, seconds: int, *hosts: str) -> Session:
    return open_session(inventory, limit=hosts, settings={"apply": {"confirm_seconds": seconds}})


def new_file(path: str) -> tuple[FileAction, dict[str, bytes]]:
    action = FileAction(path=path, real_path=path, before=None, after=sha256(b"guarded\n"))
    return action, {sha256(b"guarded\n"): b"guarded\n"}


def pending(cluster: Cluster, host: str) -> str:
    return cluster.run(
        host,
        "ls /var/lib/remedy/pending /etc/systemd/system/remedy-guard.service "
        "/etc/systemd/system/multi-user.target.wants/remedy-guard.service 2>/dev/null; "
        "systemctl list-timers --all --no-legend 'remedy-guard*'",
    ).stdout
