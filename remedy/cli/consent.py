"""Asking for consent: by ``--yes``, or on a terminal, a second time for what is marked as high risk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from remedy.errors import RefusedError, UsageError
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.runs.gate import Proposal

YES_OPTION = click.option("--yes", is_flag=True, help="Do not ask for consent.")


def consent_to(
    question: Callable[[Proposal], str], *, yes: bool, accept_high_risk: bool = True
) -> Callable[[Proposal], None]:
    """Return what asks for consent to a proposal.

    Args:
        question: what is asked on a terminal.
        yes: whether consent was given on the command line.
        accept_high_risk: whether that holds for changes marked as high risk too.
    """

    def consent(proposal: Proposal) -> None:
        risky = proposal.high_risk
        if yes and risky and not accept_high_risk:
            raise RefusedError(
                f"{risky[0].host}: {risky[0].title}: marked as high risk, which --yes alone does not cover",
                next_step="Add --accept-high-risk, or leave --yes out to be asked.",
            )
        questions = [question(proposal)]
        if risky:
            titles = ", ".join(dict.fromkeys(change.title for change in risky))
            questions.append(f"High risk: {titles}. Go ahead?")
        ask(*questions, yes=yes)

    return consent


def hosts_question(verb: str) -> Callable[[Proposal], str]:
    """Return the question that names how many hosts are changed."""
    return lambda proposal: f"{verb} {counted(len(proposal.plan.hosts), 'host')}?"


def is_terminal() -> bool:
    """Say whether somebody can read a question and answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(*questions: str, yes: bool) -> None:
    """Ask questions one after the other until one is answered with no.

    Raises:
        RefusedError: one was.
        UsageError: standard input is no terminal.
    """
    if yes:
        return
    if not is_terminal():
        raise UsageError(
            "consent is needed, and standard input is no terminal",
            next_step="Check what is shown above, then run the command again with --yes.",
        )
    if not all(click.confirm(question, err=True) for question in questions):
        raise RefusedError("not confirmed; nothing was changed")
