"""Failures in number: a page of them, whatever the number of hosts, and no host is lost."""

from __future__ import annotations

import re

import pytest
from ClusterShell.NodeSet import NodeSet
from rich.console import Group

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit.survival import Boot, Survival
from remedy.errors import ChangedKeyError, RemedyError, UnreachableError
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.failures import error_lines
from remedy.report.keys import render_keys
from remedy.report.outcome import render_outcome
from remedy.report.results import QUOTES, HostResult, result_lines
from remedy.runs.host import unread
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.suspects import Suspect
from remedy.runs.wave import SHOWN, suspect_words
from remedy.text import folded
from remedy.trust import HostKeys, KeyState
from tests.unit.build import record
from tests.unit.report.first import lines, names_of

EIGHT = names_of(8)


def errors(number: int) -> dict[str, RemedyError]:
    """Return why many hosts cannot be reached, as the transport says it: with names, addresses and times."""
    result: dict[str, RemedyError] = {}
    for n, name in enumerate(names_of(number), 1):
        address = f"10.0.{n // 250}.{n % 250}"
        text = f"{name} ({address}:22): no connection: no answer within {9 + n % 7 / 10} s"
        if n > 300:
            text = f"{name} ({address}:22): no connection: Connection refused"
        step = f"Is the host up and its sshd reachable from here? ssh -p 22 {address}"
        result[name] = UnreachableError(text, next_step=step)
    result[name] = ChangedKeyError(
        f"{name} ({address}:22): the ssh host key has CHANGED",
        next_step=f"remedy trust inventory.py --replace {name}",
    )
    return result


def test_500_unreachable_hosts_have_20_lines_at_most() -> None:
    hosts = {name: unread(error) for name, error in errors(500).items()}
    run = RunOutcome("check", "", "inventory.py", hosts, record(Plan), unread=500)
    text = lines(render_outcome(run))
    assert len(text) <= 20, "\n".join(text)
    named = NodeSet()
    for line in text:
        match = re.match(r"  (gpu\S+?)(?: \(.*?\))?: ", line)
        named.update(match[1] if match else "")
    assert set(named) == set(hosts)
    assert "(as for gpu001)" in "\n".join(text)
    assert "CHANGED" in text[1], "what is not merely out of reach comes first"


def test_what_was_shown_with_the_plan_is_not_shown_a_second_time() -> None:
    known = errors(8)
    changed = dict(known, gpu009=UnreachableError("gpu009: lost after its changes"))
    hosts = {name: unread(error) for name, error in changed.items()}
    run = RunOutcome("apply", "r", "inventory.py", hosts, record(Plan))
    text = lines(render_outcome(run, known))
    assert "  gpu009: lost after its changes" in text, "its error is a new one"
    assert [line for line in text if "see above" in line] == [
        f"  {folded(known)}: see above for the reason and the next step"
    ]
    assert not any("no connection" in line or "CHANGED" in line for line in text)


def test_500_hosts_with_500_reasons_have_20_lines_at_most() -> None:
    reasons = {name: UnreachableError(f"{name}: reason {name[::-1]}") for name in names_of(500)}
    text = [line.plain for line in error_lines(reasons)]
    assert len(text) == 7
    assert "gpu[007-500]: 494 more reasons (--json has each)" in text[-1]


def test_the_next_step_is_for_all_hosts_where_it_can_be() -> None:
    unknown = {
        name: RemedyError(f"{name}: not known", next_step=f"remedy trust i.py --limit {name}")
        for name in EIGHT
    }
    assert [line.plain.strip() for line in error_lines(unknown)] == [
        "gpu[001-008]: not known",
        "remedy trust i.py --limit 'gpu[001-008]'",
    ]


def test_one_host_keeps_its_words() -> None:
    (name, error), *_ = errors(9).items()
    text = [line.plain.strip() for line in error_lines({name: error})]
    assert text == [error.message, error.next_step]


def failed(number: int) -> RunOutcome:
    """Return a rollback that failed on each host in the same way, in the host's own words."""
    action = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
    names = names_of(number)
    changes = tuple(
        record(Change, id="01-hostname", host=n, title=f"name it {n!r}", action=action)
        for n in names
    )
    hosts = {
        name: HostOutcome(
            HostStatus.FAILED,
            (
                ChangeResult(
                    id="01-hostname",
                    status=ChangeStatus.FAILED,
                    detail="\n".join([f"{name} is not there", *map(str, range(90))]),
                ),
            ),
            (record(Finding, host=name, kind=FindingKind.DRIFT, title=f"it is not {name}"),),
        )
        for name in names
    }
    return RunOutcome(
        "rollback", "r", "inventory.py", hosts, record(Plan, changes=changes), converged=False
    )


def test_changes_that_fail_alike_are_told_once() -> None:
    text = lines(render_outcome(failed(64)))
    assert len(text) <= 20, "\n".join(text)
    assert any("gpu[001-064]: name it 'gpu[001-064]'" in line for line in text)
    assert any("gpu[001-064]: still there: it is not gpu[001-064]" in line for line in text)
    assert any("and 82 more lines" in line for line in text)


@pytest.mark.parametrize(("hidden", "counted"), [(0, False), (2, False), (3, True)])
def test_a_line_that_counts_others_stands_for_three_or_more(hidden: int, counted: bool) -> None:
    detail = "\n".join(["it failed", *(f"line {n}" for n in range(QUOTES + hidden))])
    result = HostResult("gpu01", "01-x", ChangeStatus.FAILED.value, detail)
    text = lines(Group(*result_lines([result])))
    assert len(text) == 1 + QUOTES + (1 if counted else hidden)
    last = f"and {hidden} more lines (--json)" if counted else f"| line {QUOTES + hidden - 1}"
    assert text[-1].strip() == last
    suspect = Suspect(
        "gpu01", record(Change, title="t", action=record(CommandAction)), "changed alike"
    )
    suspected = list(suspect_words([suspect] * (SHOWN + hidden), "remedy show r1"))
    assert len(suspected) == SHOWN + (1 if counted else hidden)
    assert suspected[-1].endswith(f"and {hidden} more: remedy show r1") is counted


def test_what_a_boot_lost_is_folded() -> None:
    survival = {name: Survival(Boot.LOST, "r", (f"write {name}",)) for name in names_of(64)}
    hosts = {name: HostOutcome(HostStatus.OK) for name in survival}
    text = lines(render_outcome(RunOutcome("check", "", "i", hosts, survival=survival)))
    assert "  gpu[001-064]: write gpu[001-064]" in text
    assert len(text) < 6


def test_keys_that_nobody_has_to_compare_are_folded() -> None:
    keys = [HostKeys(name, KeyState.KNOWN) for name in names_of(64)]
    keys += [
        HostKeys(name, KeyState.SILENT, error=error)
        for name, error in list(errors(99).items())[64:98]
    ]
    text = lines(render_keys(keys))
    assert len(text) == 4, "\n".join(text)
    assert text[0].startswith("gpu[001-064]")


def test_hosts_that_do_not_fold_are_counted() -> None:
    scattered = [name for name in names_of(999) if int(name[3:]) % 3]
    text = folded(scattered)
    assert len(text) < 350
    shown, _, more = text.partition(" and ")
    assert len(NodeSet(shown)) + int(more.split()[0]) == len(scattered)
    assert folded(names_of(999)) == "gpu[001-999]"
    assert folded(["x" * 400]) == "x" * 400
