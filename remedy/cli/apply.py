"""``remedy apply``: plan, ask, change, probe again, prove."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import (
    COMMANDS_OPTION,
    Options,
    host_options,
    opened,
    remedy_options,
    reports,
)
from remedy.cli.consent import YES_OPTION, consent_to, hosts_question
from remedy.cli.number import Number
from remedy.cli.pages import check_page, html_option, with_page
from remedy.cli.paths import FilePath
from remedy.cli.proof import proof_options


@click.command()
@host_options
@remedy_options
@COMMANDS_OPTION
@YES_OPTION
@click.option("--no-verify", is_flag=True, help="Do not prove the result; the record says so.")
@click.option("--plan", "plan_file", type=FilePath(), help="Carry out exactly this plan file.")
@click.option(
    "--resume",
    metavar="RUN",
    help="Carry out the plan of RUN on the hosts that it did not reach, or whose answer was lost; "
    "`latest` is the last apply.",
)
@click.option(
    "--require-approval",
    "approvals",
    type=Number(1, 10),
    is_flag=False,
    flag_value=1,
    metavar="[N]",
    help="Refuse a --plan with fewer valid signatures than N (1); the spec may require more.",
)
@proof_options
@click.option(
    "--waves", metavar="SIZES", help="How many hosts to change at a time, such as 1,10%,100%."
)
@click.option(
    "--prove-waves/--no-prove-waves",
    default=None,
    help="Prove each of several waves by an all-reduce, and take a wave back whose proof fails (the default).",
)
@click.option(
    "--max-failures",
    type=Number(0),
    help="Start no further wave after more failed hosts.",
)
@click.option(
    "--rehearse",
    is_flag=True,
    help="Check on the hosts whether each change can be made, up to the first write; write nothing there.",
)
@html_option("what was planned, how each host ended, and the proof")
@click.option(
    "--accept-high-risk", is_flag=True, help="With --yes: also make changes marked as high risk."
)
def apply(
    commands: bool,
    yes: bool,
    no_verify: bool,
    plan_file: Path | None,
    resume: str | None,
    approvals: int | None,
    rehearse: bool,
    accept_high_risk: bool,
    html: Path | None,
    waves: str | None,
    prove_waves: bool | None,
    max_failures: int | None,
    proof: dict[str, object],
    **options: Any,
) -> None:
    """Repair the hosts of INVENTORY, and prove it with an all-reduce across them.

    Shows the plan and asks for consent; then changes the hosts, probes them again, and verifies. A second run
    changes nothing.
    """
    limits: dict[str, object] = {
        "waves": waves,
        "prove_waves": prove_waves,
        "max_failures": max_failures,
    }
    # A plan of before may be refused as it is: no host hears of the command until it was read.
    modules = () if plan_file or resume or approvals else ("remedy.runs.apply",)
    opts = Options(**options)
    check = partial(check_page, html, plan_file)
    with opened(opts, *modules, later=reports(opts), first=check, apply=limits, verify=proof) as (
        session,
        terminal,
    ):
        from remedy.audit.latest import LATEST, to_resume
        from remedy.runs import apply, rehearsal

        if not (no_verify or rehearse):
            session.check_launcher()
        if resume == LATEST:
            resume = to_resume(session.stories().values(), session.home).run
        proposal = apply.propose(
            session,
            plan_file=plan_file,
            resume=resume,
            approvals=approvals or 0,
            rehearsing=rehearse,
        )
        from remedy.report.proposal import render_proposal

        terminal.show(render_proposal(proposal, commands=commands))
        if rehearse:
            outcome = rehearsal.rehearse(session, proposal)
            terminal.finish(with_page(outcome, html), proposal.unread)
        question = hosts_question("Change")
        consent = consent_to(
            question, yes=yes, accept_high_risk=accept_high_risk, show=terminal.insist
        )
        outcome = apply.apply(session, proposal, consent=consent, prove=not no_verify)
        terminal.finish(with_page(outcome, html), proposal.unread)
