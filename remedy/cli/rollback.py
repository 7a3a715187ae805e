"""``remedy rollback``: take a run back."""

from __future__ import annotations

from typing import Any

import click

from remedy.cli.common import Options, host_options, opened
from remedy.cli.consent import YES_OPTION, consent_to, hosts_question


@click.command()
@click.argument("run")
@host_options
@YES_OPTION
def rollback(run: str, yes: bool, **options: Any) -> None:
    """Take RUN back on the hosts of INVENTORY, from the pre-images that it left there.

    Shows the plan for it, and what prevents it: an object that somebody changed since is left alone, and its
    host with it. A rollback is a run of its own, which can be taken back. `remedy history` lists the runs.
    """
    with opened(Options(**options)) as (session, terminal):
        from remedy.report.proposal import render_proposal
        from remedy.runs import rollback

        proposal = rollback.propose(session, run)
        terminal.show(render_proposal(proposal))
        consent = consent_to(hosts_question("Take the run back on"), yes=yes)
        terminal.finish(rollback.rollback(session, proposal, consent=consent))
