"""Asking for consent: by ``--yes``, or on a terminal, a second time for what is marked as high risk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from remedy.cli.plain import confirmed
from remedy.errors import RefusedError, UsageError
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.runs.gate import Proposal

UNCHANGED = "nothing was changed"
YES_OPTION = click.option("--yes", is_flag=True, help="Do not ask for consent.")


def consent_to(
    question: Callable[[Proposal], str],
    *,
    yes: bool,
    accept_high_risk: bool = True,
    show: Callable[[], object] = list,
) -> Callable[[Proposal], None]:
    """Return what asks for consent to a proposal.

    Args:
        question: what is asked on a terminal.
        yes: whether consent was given on the command line.
        accept_high_risk: whether that holds for changes marked as high risk too.
        show: shows what is asked about, where it is not shown yet (--quiet).
    """

    def consent(proposal: Proposal) -> None:
        from remedy.runs.consent import agree, claimed, refuse_doubles
        from remedy.runs.sight import question as sight_question

        risky = proposal.high_risk
        if not yes or risky or proposal.claims or proposal.unseen:
            show()
        if yes:
            agree(proposal, accept_high_risk=accept_high_risk)
            return
        refuse_doubles(proposal)
        questions = [question(proposal)] if proposal.plan.changes else []
        if proposal.claims:
            words = claimed(proposal)
            questions.insert(
                0,
                f"{words[0].upper()}{words[1:]}. Is the inventory right, and are the machines to be changed?",
            )
        if proposal.plan.changes and proposal.unseen:
            questions.insert(0, sight_question(proposal.unseen))
        if risky:
            from remedy.report.folding import by_text

            alike = by_text(
                ((change.host, change.title) for change in risky), proposal.plan.addresses
            )
            titles = ", ".join(dict.fromkeys(title for _, title in alike))
            questions.append(f"High risk: {titles}. Go ahead?")
        unchanged = "nothing else was changed" if proposal.intervened else UNCHANGED
        ask(*questions, yes=False, unchanged=unchanged)

    return consent


def hosts_question(verb: str) -> Callable[[Proposal], str]:
    """Return the question that names how many hosts are changed, and how many nothing is known of."""

    def question(proposal: Proposal) -> str:
        from remedy.runs.unread import unread_words

        unread = unread_words(proposal.unread.values())
        hosts = f"{verb} {counted(len(proposal.plan.hosts), 'host')}"
        return f"{hosts}, {unread}?" if unread else f"{hosts}?"

    return question


def is_terminal() -> bool:
    """Say whether somebody can read a question and answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(*questions: str, yes: bool, unchanged: str = UNCHANGED) -> None:
    """Ask questions one after the other until one is answered with no.

    Args:
        questions: in their order.
        yes: whether all of them were answered on the command line.
        unchanged: what holds where one is answered with no.

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
    if not all(_confirmed(question) for question in questions):
        raise RefusedError(f"not confirmed; {unchanged}")


def _confirmed(question: str) -> bool:
    """Ask a question; a signal while it waits ends the command as it does elsewhere."""
    from remedy.cli.interrupt import Interrupted, received

    try:
        return confirmed(question)
    except click.Abort:
        number = received()
        if number is None:
            return False  # the end of the input is no consent
        raise Interrupted(number) from None
