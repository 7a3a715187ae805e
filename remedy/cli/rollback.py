"""``remedy rollback``: take a run back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remedy.cli.common import Options, host_options, make_room_for, opened
from remedy.cli.consent import YES_OPTION, consent_to, hosts_question
from remedy.text import quoted


@click.command()
@click.argument("run")
@host_options
@YES_OPTION
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Only write the plan that takes RUN back, to be approved.",
)
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="Carry out exactly this plan file."
)
def rollback(
    run: str, yes: bool, output: Path | None, plan_file: Path | None, **options: Any
) -> None:
    """Take RUN back on the hosts of INVENTORY, from the pre-images that it left there.

    Shows the plan for it, and what prevents it: an object that somebody changed since is left alone, and its
    host with it. A rollback is a run of its own, which can be taken back. `remedy history` lists the runs;
    RUN may be `latest`, the last apply.
    """
    with opened(Options(**options)) as (session, terminal):
        make_room_for(output, terminal)
        from remedy.audit.latest import LATEST, to_take_back
        from remedy.report.audit import run_line
        from remedy.report.proposal import render_proposal
        from remedy.runs import rollback

        if run == LATEST:
            story = to_take_back(session.stories().values())
            terminal.show(f"latest: {run_line(story)}")
            run = story.run
        saving = output is not None
        proposal = rollback.propose(session, run, plan_file=plan_file, saving=saving)
        terminal.show(render_proposal(proposal))
        if output is not None:
            rollback.save(session, proposal, output)
            terminal.show(f"written to {output}; have it approved: remedy approve {quoted(output)}")
            return
        consent = consent_to(hosts_question("Take the run back on"), yes=yes, show=terminal.insist)
        terminal.finish(rollback.rollback(session, proposal, consent=consent), proposal.unread)
