"""The screen of a rollback: in words what the hosts vouch for, whole what they do not, and what stays."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit.agreement import Agreement
from remedy.errors import HostKeyError, RefusedError, StaleError, UnreachableError
from remedy.plan import Change, CommandAction, FileAction, Plan, Risk, inverse, sha256
from remedy.plan.change import Splice
from remedy.plan.splice import placed
from remedy.report.console import VisibleConsole
from remedy.report.proposal import render_proposal
from remedy.runs.gate import Proposal
from remedy.runs.outcome import HostOutcome, HostStatus
from tests.unit.build import record

OLD, NEW = b"127.0.1.1 gpu01\n", b"10.0.0.1 gpu01\n10.0.0.2 gpu02\n"
BLOBS = {sha256(content): content for content in (OLD, NEW)}
SCRIPT = "old=$(hostname)\nhostname node"
NAME = CommandAction(observe="uname -n", before="node", after="gpu", do="hostname gpu", undo=SCRIPT)
HOSTS = FileAction(
    path="/etc/hosts",
    real_path="/etc/hosts",
    before=sha256(b"before"),
    after=sha256(b"after"),
    splices=(Splice(offset=9, line=2, length=len(OLD), before=sha256(OLD), after=sha256(NEW)),),
)
NAMES = ("gpu01", "gpu02", "gpu03")


def made(host: str) -> tuple[Change, ...]:
    common: dict[str, Any] = {"host": host, "reason": "names do not resolve", "risk": Risk.LOW}
    named = {"title": "name it", "does": "gives it the name", "undoes": "gives it the former name"}
    return (
        record(
            Change, id="01-hosts_file", remedy="hosts_file", title="write", action=HOSTS, **common
        ),
        record(Change, id="02-hostname", remedy="hostname", action=NAME, **common, **named),
    )


def proposal(*hosts: str, **fields: Any) -> Proposal:
    changes = [placed(step, BLOBS) for host in NAMES for step in inverse(made(host))]
    whole: Plan = record(Plan, changes=tuple(changes), blobs=BLOBS, purpose="rollback r1")
    return Proposal(
        "rollback", Agreement(whole, of="r1"), whole.restricted(hosts), scope=whole, **fields
    )


def shown(target: Proposal, *, commands: bool = False) -> str:
    text = io.StringIO()
    VisibleConsole(text, width=400).print(render_proposal(target, commands=commands))
    return text.getvalue()


def stale() -> HostOutcome:
    detail = f"/etc/hosts was changed since run r1: expected sha256 {'0' * 64}, found {'1' * 64}"
    result = ChangeResult(id="undo-01-hosts_file", status=ChangeStatus.STALE, detail=detail)
    return HostOutcome(HostStatus.FAILED, (result,))


def test_what_the_hosts_vouch_for_is_shown_in_words() -> None:
    text = shown(proposal(*NAMES))
    assert "Take back r1: 6 changes on 3 hosts" in text
    assert "was for  names do not resolve" in text
    assert "does     gives it the former name" in text
    assert "-10.0.0.1 gpu01" in text
    assert "+127.0.1.1 gpu01" in text
    assert "not taken back   nothing" in text
    assert f"  (plan {proposal().agreement.plan.digest[:12]}, " in text
    for hidden in ("sha256", SCRIPT.split("\n")[0], "undo-", "because", "cannot be undone"):
        assert hidden not in text


def test_with_commands_every_byte_is_shown_and_at_its_place() -> None:
    text = shown(proposal(*NAMES), commands=True)
    assert f"@@ line 2, byte 9, {len(NEW)} bytes go @@" in text
    assert "runs $    | old=$(hostname)" in text
    assert f"now       sha256 {HOSTS.after}" in text


@pytest.mark.parametrize("commands", [False, True])
def test_what_a_host_does_not_vouch_for_is_shown_to_the_last_byte(commands: bool) -> None:
    target = proposal(*NAMES)
    vouched = {(c.host, c.id): c.host != "gpu02" for c in target.plan.changes}
    text = shown(replace(target, authorship=vouched), commands=commands)
    assert "gpu02: what was done there is known from a file alone" in text
    assert "the host does not vouch for it: read every line" in text
    assert "runs $    | old=$(hostname)" in text
    assert text.index("~ gpu02: take back: name it") < text.index(
        "~ gpu[01,03]: take back: name it"
    )
    assert "remedy makes" not in text


def test_hosts_that_are_left_alone_are_not_counted_and_the_way_on_is_named() -> None:
    text = shown(proposal("gpu01", obstacles={"gpu02": stale(), "gpu03": stale()}))
    assert "Take back r1: 2 changes on 1 host" in text
    assert "left alone       gpu[02-03]: see below" in text
    whole = proposal().agreement.plan
    assert f"2 changes on 1 host  (part of plan {whole.digest[:12]}, " in text
    (line,) = (line for line in text.split("\n") if line.startswith("  stale"))
    assert line.startswith(
        "  stale       gpu[02-03]: take back: write: /etc/hosts was changed since"
    )
    assert line.endswith(f"expected sha256 {'0' * 12}, found {'1' * 12}")
    assert "the same command with --skip hosts_file" in text


def test_a_host_that_is_not_reached_is_left_alone_and_named_once() -> None:
    down = HostOutcome(HostStatus.UNREACHABLE, error=UnreachableError("gpu02: no answer"))
    text = shown(proposal("gpu01", obstacles={"gpu02": down}))
    assert "left alone       gpu02: see below" in text
    assert text.count("no answer") == 1
    assert "--skip" not in text


def test_what_nothing_takes_back_stands_above_and_where_there_is_nothing_else() -> None:
    ended = record(Change, id="03-orphans", host="gpu03", title="end 1 process", action=NAME)
    target = proposal(*NAMES, irreversible=(ended,))
    assert "not taken back   end 1 process (gpu03)" in shown(target)
    text = shown(replace(target, plan=target.plan.restricted(())))
    assert "gpu03: CANNOT be taken back: end 1 process" in text
    assert "Nothing to take back." in text


def test_a_plan_of_before_shows_who_made_it() -> None:
    target = proposal("gpu01")
    agreed = replace(target.agreement, by="ann@ops")
    assert "Plan file" in shown(replace(target, agreement=agreed))
    assert "Plan file" not in shown(target)


def test_a_refusal_without_results_is_shown() -> None:
    error = StaleError("gpu02: another run is at work", next_step="Wait for it.")
    text = shown(
        proposal("gpu01", obstacles={"gpu02": HostOutcome(HostStatus.FAILED, error=error)})
    )
    assert "another run is at work" in text
    assert "Wait for it." in text


def test_hosts_that_are_refused_are_not_called_unread() -> None:
    refused = HostOutcome(HostStatus.FAILED, error=RefusedError("gpu01: a different machine"))
    silent = HostOutcome(HostStatus.UNREACHABLE, error=UnreachableError("gpu02: no answer"))
    stranger = HostOutcome(HostStatus.UNREACHABLE, error=HostKeyError("gpu03: unknown key"))
    both = shown(proposal(obstacles={"gpu01": refused, "gpu02": silent, "gpu03": stranger}))
    assert "2 hosts could not be read; 1 host left alone; nothing is taken back" in both
    alone = shown(proposal(obstacles={"gpu01": refused}))
    assert "\n1 host left alone; nothing is taken back" in alone
    rest = shown(proposal("gpu03", obstacles={"gpu01": refused, "gpu02": silent}))
    assert "; 1 host could not be read\n" in rest
