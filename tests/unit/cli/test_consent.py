"""Consent: given by an option, asked for on a terminal, a second time for what is marked as high risk."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from itertools import chain, repeat

import click
import pytest
from rich.console import Console

from remedy.audit.agreement import Agreement
from remedy.cli.consent import ask, consent_to, hosts_question
from remedy.errors import (
    ChangedKeyError,
    RefusedError,
    RemedyError,
    UnreachableError,
    UsageError,
)
from remedy.plan import Change, CommandAction, Plan, Risk
from remedy.plan.identities import Claim
from remedy.probe import HostState
from remedy.report.proposal import render_proposal
from remedy.runs.gate import Proposal
from remedy.runs.probe import ProbeResult
from tests.unit.build import fleet, host_state, record

ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")


def proposal(*risks: Risk) -> Proposal:
    changes = tuple(
        record(Change, id="01-x", host=f"gpu{n:02d}", title=f"step {n}", risk=risk, action=ACTION)
        for n, risk in enumerate(risks, 1)
    )
    plan: Plan = record(Plan, changes=changes)
    return Proposal("apply", Agreement(plan), plan)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that were asked on a terminal; the first is answered with yes, the others with no."""
    questions: list[str] = []
    answers = chain([True], repeat(False))

    def confirm(text: str, **_: object) -> bool:
        questions.append(text)
        return next(answers)

    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setattr("remedy.cli.consent.is_terminal", lambda: True)
    return questions


def test_one_question_names_the_hosts(asked: list[str]) -> None:
    consent_to(hosts_question("Change"), yes=False)(proposal(Risk.LOW, Risk.LOW))
    assert asked == ["Change 2 hosts?"]


def test_high_risk_is_asked_for_a_second_time(asked: list[str]) -> None:
    with pytest.raises(RefusedError, match="not confirmed; nothing was changed"):
        consent_to(hosts_question("Change"), yes=False)(proposal(Risk.LOW, Risk.HIGH))
    assert asked == ["Change 2 hosts?", "High risk: step 2. Go ahead?"]


def test_yes_covers_high_risk_only_where_it_is_accepted(asked: list[str]) -> None:
    risky = proposal(Risk.HIGH)
    question = hosts_question("Change")
    consent_to(question, yes=True, accept_high_risk=True)(risky)
    with pytest.raises(RefusedError, match="gpu01: step 1: marked as high risk"):
        consent_to(question, yes=True, accept_high_risk=False)(risky)
    assert asked == []


ERRORS = {
    "gpu07": UnreachableError("down"),
    "gpu08": UnreachableError("stuck"),
    "gpu09": ChangedKeyError("changed"),
}
AT_GPU01 = host_state("gpu01", "10.0.0.1", running="gpu02", static="gpu02")


def probed(state: HostState, errors: dict[str, RemedyError]) -> ProbeResult:
    return ProbeResult(fleet(state, absent=("gpu02", *errors)), errors)


CLAIMS = probed(AT_GPU01, {}).claims
CLAIMED = replace(proposal(Risk.LOW), probe=probed(AT_GPU01, {}), claims=CLAIMS)


def test_the_question_counts_the_hosts_that_nothing_is_known_of(asked: list[str]) -> None:
    read = probed(host_state("gpu01", "10.0.0.1"), dict(ERRORS))
    consent_to(hosts_question("Change"), yes=False)(replace(proposal(Risk.LOW), probe=read))
    assert asked == ["Change 1 host, 2 not reachable, 1 with a CHANGED key?"]


def test_what_is_shown_before_the_question_names_those_hosts() -> None:
    read = probed(AT_GPU01, dict(ERRORS))
    console = Console(width=200, record=True, file=StringIO())
    console.print(render_proposal(replace(proposal(Risk.LOW), plan=read.plan, probe=read)))
    shown = console.export_text()
    for text in ("down", "stuck", "changed", "answers the machine of gpu02", "without --yes asks"):
        assert text in shown


def test_another_entrys_machine_is_asked_for_first_and_yes_does_not_cover_it(
    asked: list[str],
) -> None:
    with pytest.raises(
        RefusedError, match=r"at the address of gpu01 .* --yes does not cover"
    ) as no:
        consent_to(hosts_question("Change"), yes=True)(CLAIMED)
    assert "Correct the addresses" in no.value.next_step
    assert asked == []
    with pytest.raises(RefusedError, match="not confirmed"):
        consent_to(hosts_question("Change"), yes=False)(CLAIMED)
    assert len(asked) == 2
    assert "Is the inventory right, and are the machines to be changed?" in asked[0]
    assert asked[1] == "Change 1 host?"


def test_it_is_asked_for_where_nothing_is_to_be_changed_either(asked: list[str]) -> None:
    consent_to(hosts_question("Change"), yes=False)(replace(CLAIMED, plan=record(Plan, changes=())))
    assert len(asked) == 1
    assert "the machine of another entry" in asked[0]


@pytest.mark.parametrize("yes", [True, False])
def test_one_machine_at_two_entries_is_refused_whatever_is_answered(
    asked: list[str], yes: bool
) -> None:
    double = replace(CLAIMED, claims=(Claim("gpu02", "gpu01", ("one boot-id",), same=True),))
    with pytest.raises(RefusedError, match=r"gpu01 and gpu02: two entries .* one machine") as no:
        consent_to(hosts_question("Change"), yes=yes)(double)
    assert "--limit '*!gpu02'" in no.value.next_step
    assert asked == []


def test_what_was_taken_back_before_the_question_is_not_called_nothing(asked: list[str]) -> None:
    ask("first", yes=False)  # answered with yes
    with pytest.raises(RefusedError, match="not confirmed; nothing else was changed"):
        consent_to(hosts_question("Change"), yes=False)(
            replace(proposal(Risk.LOW), intervened=True)
        )
    assert asked == ["first", "Change 1 host?"]


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remedy.cli.consent.is_terminal", lambda: False)
    with pytest.raises(UsageError, match="standard input is no terminal"):
        ask("Change 1 host?", yes=False)
    ask("Change 1 host?", yes=True)
