"""Consent: given by an option, asked for on a terminal, a second time for what is marked as high risk."""

from __future__ import annotations

from itertools import chain, repeat

import click
import pytest

from remedy.audit.agreement import Agreement
from remedy.cli.consent import ask, consent_to, hosts_question
from remedy.errors import RefusedError, UsageError
from remedy.plan import Change, CommandAction, Plan, Risk
from remedy.runs.gate import Proposal
from tests.unit.build import record

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


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remedy.cli.consent.is_terminal", lambda: False)
    with pytest.raises(UsageError, match="standard input is no terminal"):
        ask("Change 1 host?", yes=False)
    ask("Change 1 host?", yes=True)
