"""Asking for consent: by ``--yes``, or on a terminal, a second time for what is marked as high risk."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from remedy.cli.plain import confirmed
from remedy.errors import RefusedError, UsageError
from remedy.text import counted, fold

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
        risky = proposal.high_risk
        if not yes or risky or proposal.claims or proposal.unseen:
            show()
        if yes and risky and not accept_high_risk:
            raise RefusedError(
                f"{risky[0].host}: {risky[0].title}: marked as high risk, which --yes alone does not cover",
                next_step="Add --accept-high-risk, or leave --yes out to be asked.",
            )
        questions = [question(proposal)] if proposal.plan.changes else []
        if proposal.claims:
            questions.insert(0, _claims_question(proposal, yes=yes))
        if proposal.plan.changes and proposal.unseen:
            questions.insert(0, _unseen_question(proposal, yes=yes))
        if risky:
            titles = ", ".join(dict.fromkeys(change.title for change in risky))
            questions.append(f"High risk: {titles}. Go ahead?")
        unchanged = "nothing else was changed" if proposal.intervened else UNCHANGED
        ask(*questions, yes=yes, unchanged=unchanged)

    return consent


def _unseen_question(proposal: Proposal, *, yes: bool) -> str:
    """Return the question whether hosts are where they say and nobody has seen them.

    Raises:
        RefusedError: ``--yes`` is given, which cannot answer it.
    """
    from remedy.runs.sight import question

    if yes:
        host, address = next(iter(proposal.unseen.items()))
        raise RefusedError(
            f"{fold(proposal.unseen)}: {address} ({host}) is an address that nobody has seen, which --yes does "
            "not cover",
            next_step="Give cluster_address of these hosts in the inventory, or leave --yes out to be asked.",
        )
    return question(proposal.unseen)


def _claims_question(proposal: Proposal, *, yes: bool) -> str:
    """Return the question whether machines become what the inventory calls them.

    Raises:
        RefusedError: ``--yes`` is given, which cannot answer it; or one machine has two entries, which no
            answer makes right.
    """
    doubles = [claim for claim in proposal.claims if claim.same]
    if doubles:
        pairs = ", ".join(f"{claim.owner} and {claim.host}" for claim in doubles)
        others = shlex.quote("!".join(("*", *(claim.host for claim in doubles))))
        raise RefusedError(
            f"{pairs}: two entries of the inventory, and one machine, as shown above",
            next_step="Correct ssh_hostname of one of them in the inventory, or leave it out: "
            f"--limit {others}",
        )
    hosts = fold(claim.host for claim in proposal.claims)
    answers = "answer the machines of other entries, as shown above"
    if yes:
        raise RefusedError(
            f"at the addresses of {hosts} {answers}, which --yes does not cover",
            next_step="Correct the addresses in the inventory; or, if the machines are to become what it calls "
            "them, leave --yes out to be asked.",
        )
    return f"At the addresses of {hosts} {answers}. Is the inventory right, and the machines are to change?"


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
