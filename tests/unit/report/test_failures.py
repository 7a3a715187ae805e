"""Failures in number: a page of them, whatever the number of hosts, and no host is lost."""

from __future__ import annotations

import re

import pytest
from ClusterShell.NodeSet import NodeSet
from rich.console import Group

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit.survival import Boot, Survival
from remedy.diagnose.diagnosis import (
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
    Quote,
)
from remedy.errors import ChangedKeyError, RemedyError, UnreachableError
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.culprits import accusations, link_lines, once
from remedy.report.diagnosis import render_explanation
from remedy.report.failures import error_lines
from remedy.report.keys import render_keys
from remedy.report.ladder import render_rung, render_verdict
from remedy.report.outcome import render_outcome
from remedy.report.results import QUOTES, HostResult, result_lines
from remedy.runs.host import unread
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.suspects import Suspect
from remedy.runs.wave import SHOWN, suspect_words
from remedy.text import folded
from remedy.trust import HostKeys, KeyState
from remedy.verify.verdict import Culprit, DeadLink, Rung, Verdict, summary
from tests.unit.build import record
from tests.unit.report.first import lines, names_of

EIGHT = names_of(8)
ENDS = (
    "are not tried, because the name resolves wrongly",
    "get no answer (dropped on the way)",
    "are rejected (by a firewall, or no route)",
)


def red(*, named_alike: bool) -> Verdict:
    """Return the verdict of a fleet of which each host has faults of its own, and all have one, or none."""
    culprits = [
        Culprit(
            name=", ".join(EIGHT),
            hosts=EIGHT,
            reason="8 hosts call themselves 'node'",
            facts=tuple(f"{name}: fact {n}" for name in EIGHT for n in range(3)),
            next_step="remedy apply inventory.py --limit 'gpu[001-008]'",
        )
    ] * named_alike
    for number, name in enumerate(EIGHT):
        ends = " and ".join(ENDS[number % 3 :] + ENDS[: number % 3])
        ports = ", ".join(str(29500 + 7 * number + n) for n in range(4))
        culprits.append(
            Culprit(
                name=name,
                hosts=(name,),
                reason=f"{name}: its connections to the other 7 hosts on ports {ports}, ... {ends}",
                facts=(
                    f"tried: {EIGHT[number - 1]} -> {name} port 32834: no answer: 3.5 s",
                    f"names do not resolve: {name}",
                    f"a fault that {name} alone has: {'x' * 40 * number}",
                    *(f"more that was seen of all {n}" for n in range(5)),
                ),
                next_step=f"remedy apply inventory.py --limit {name}",
            )
        )
    links = tuple(
        DeadLink(source=a, target=b, port=0, outcome="no name")
        for a in EIGHT
        for b in EIGHT
        if a != b
    )
    links += tuple(
        DeadLink(source=a, target=EIGHT[3], port=n, outcome="dropped")
        for a in EIGHT[:3]
        for n in range(9)
    )
    return Verdict(
        passed=False,
        reason=summary(culprits),
        culprits=tuple(culprits),
        dead_links=links,
        dead_count=len(links),
        evidence=tuple("e" * 300 for _ in range(50)),
    )


@pytest.mark.parametrize("named_alike", [True, False])
def test_a_red_verify_of_8_hosts_has_30_lines_at_most(*, named_alike: bool) -> None:
    verdict = red(named_alike=named_alike)
    text = lines(render_verdict(verdict, None))
    assert len(text) <= 24, "\n".join(text)  # the cause below it has six more
    assert max(map(len, text)) < 300
    heads = [line for line in text if re.match(r"  gpu\S+: ", line)]
    assert len(heads) == 1
    assert heads[0].startswith("  gpu[001-008]: ")
    assert "among gpu[001-008]: no name" in "\n".join(text)
    assert "remedy apply inventory.py --limit 'gpu[001-008]'" in "\n".join(text)


@pytest.mark.parametrize("named_alike", [True, False])
def test_with_its_cause_below_it_has_30_lines_at_most_as_well(*, named_alike: bool) -> None:
    labels = ("duplicate-hostname", "firewall-ports", "loopback-hostname")
    confirmations = tuple(
        Confirmation(
            label=label,
            status=ConfirmationStatus.CONFIRMED,
            hosts=EIGHT,
            evidence=tuple(f"{name}: seen there" for name in EIGHT),
            curable=True,
        )
        for label in labels
    )
    lead = Quote(file="gpu001", line=7, text="no route " * 99)
    diagnosis = Diagnosis(label=labels[0], confidence="certain", certainty=0.9, lead=lead)
    explanation = Explanation(
        diagnosis=diagnosis,
        confirmations=confirmations,
        command="remedy apply inventory.py --limit 'gpu[001-008]'",
    )
    text = lines(render_verdict(red(named_alike=named_alike), explanation))
    assert text[-1] == "see          remedy explain duplicate-hostname"
    assert sum(line.startswith("run  ") for line in text) == 1
    said = diagnosis.model_copy(
        update={"lead": lead.model_copy(update={"text": "8 hosts call themselves 'node'"})}
    )
    again = lines(
        render_verdict(
            red(named_alike=named_alike), explanation.model_copy(update={"diagnosis": said})
        )
    )
    assert any("gpu001: 8 hosts call" in line for line in again) is not named_alike
    assert len(text) <= 30, "\n".join(text)


def test_hosts_with_different_faults_are_not_one() -> None:
    culprits = [
        Culprit(name=name, hosts=(name,), reason=f"{name}: fault number {n}")
        for n, name in enumerate(EIGHT)
    ]
    assert [group.hosts for group in accusations(culprits)] == [(name,) for name in EIGHT]
    verdict = Verdict(passed=False, reason=summary(culprits), culprits=tuple(culprits))
    text = "\n".join(lines(render_verdict(verdict, None)))
    assert "gpu[007-008]: 2 more reasons" in text
    for n in range(6):
        assert f"gpu{n + 1:03d}: fault number {n}" in text


def test_every_culprit_keeps_its_hosts() -> None:
    for named_alike in (True, False):
        groups = accusations(red(named_alike=named_alike).culprits)
        assert [host for group in groups for host in group.hosts] == list(EIGHT)
        reasons = [reason for group in groups for reason in (group.reason, *group.also.values())]
        assert all(end in " ".join(reason.text for reason in reasons) for end in ENDS)


def test_what_was_seen_of_one_host_names_it() -> None:
    shared, alone = "seen of both", "seen of the second"
    pair = [
        Culprit(name="a1", hosts=("a1",), reason="broken", facts=(shared,)),
        Culprit(name="a2", hosts=("a2",), reason="broken", facts=(shared, alone)),
    ]
    verdict = Verdict(passed=False, reason="r", culprits=tuple(pair))
    text = [line.strip() for line in lines(render_verdict(verdict, None))]
    assert "a[1-2]: broken" in text
    assert shared in text
    assert f"a2: {alone}" in text


def test_each_piece_of_evidence_stands_once() -> None:
    closed, odd = "nftables closes the ports (policy drop)", "the clock is 3 s ahead"
    tried = "gpu001 -> gpu002 port 29500: no answer: 3.5 s"
    culprits = (
        Culprit(
            name="gpu003 -> gpu002",
            hosts=("gpu003", "gpu002"),
            reason="gpu003 -> gpu002 on port 29507: refused",
            facts=(
                "tried: gpu003 -> gpu002 port 29507: refused",
                f"gpu002: {closed}",
                f"gpu003: {odd}",
            ),
        ),
        Culprit(
            name="gpu002",
            hosts=("gpu002",),
            reason="gpu002: no answer from any of the other 7 hosts",
            facts=(f"tried: {tried}", closed),
        ),
        Culprit(
            name="gpu003 -> gpu004",
            hosts=("gpu003", "gpu004"),
            reason="gpu003 -> gpu004 on port 29511: no answer",
            facts=(f"gpu003: {odd}", f"gpu004: {closed}"),
        ),
    )
    verdict = Verdict(passed=False, reason=summary(culprits), culprits=culprits)
    assert [culprit.facts for culprit in once(culprits)] == [
        (culprits[0].facts[0], f"gpu003: {odd}"),
        culprits[1].facts,
        (f"gpu004: {closed}",),
    ]
    confirmation = Confirmation(
        label="firewall-ports",
        status=ConfirmationStatus.CONFIRMED,
        hosts=("gpu002",),
        evidence=(f"gpu002: {closed}",),
        curable=True,
    )
    diagnosis = Diagnosis(
        label="firewall-ports",
        confidence="certain",
        certainty=0.9,
        lead=Quote(file="remedy verify", line=3, text=tried),
    )
    explanation = Explanation(diagnosis=diagnosis, confirmations=(confirmation,))
    text = lines(render_verdict(verdict, explanation), 300)
    for evidence in (odd, tried, "tried: gpu003 -> gpu002"):
        assert sum(evidence in line for line in text) == 1, "\n".join(text)
    assert sum(closed in line for line in text) == 2, "one of each of the two hosts"
    assert "             firewall-ports: confirmed on gpu002" in text
    alone = lines(render_explanation(explanation), 300)
    assert any(closed in line for line in alone)
    assert any(tried in line for line in alone)


def test_a_rung_is_no_longer_than_a_line_of_people() -> None:
    message = summary(red(named_alike=True).culprits)
    (line,) = lines(render_rung(Rung(name="reachability", passed=False, message=message)), 2000)
    assert len(line) < 260 < len(message)


def test_dead_links_are_folded_on_both_sides() -> None:
    pairs = [(source, target) for source in EIGHT[:4] for target in EIGHT[4:]]
    links = [DeadLink(source=a, target=b, port=0, outcome="dropped") for a, b in pairs]
    (line,) = (text.plain for text in link_lines(links))
    assert line == "  gpu[001-004] -> gpu[005-008]: dropped"


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
    assert len(text) == 8
    assert "gpu[008-500]: 493 more reasons (--json has each)" in text[-1]


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
