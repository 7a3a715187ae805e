"""``remedy rollback``: take a run back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remedy.cli.common import (
    COMMANDS_OPTION,
    Options,
    check_output,
    choice_options,
    host_options,
    make_room_for,
    opened,
)
from remedy.cli.consent import YES_OPTION, consent_to, hosts_question
from remedy.cli.pages import check_page, html_option, with_page, write_page
from remedy.cli.paths import FilePath


@click.command()
@click.argument("run")
@host_options
@choice_options(
    only="Take back the changes of these remedies alone, such as hosts_file,limits; the others stay.",
    skip="Leave the changes of these remedies as the run made them.",
)
@YES_OPTION
@click.option(
    "-o",
    "--output",
    type=FilePath(),
    help="Only write the plan that takes RUN back, to be approved.",
)
@click.option("--plan", "plan_file", type=FilePath(), help="Carry out exactly this plan file.")
@COMMANDS_OPTION
@html_option("what was taken back and how each host ended; with -o the plan, to the last byte")
def rollback(
    run: str,
    yes: bool,
    output: Path | None,
    plan_file: Path | None,
    commands: bool,
    html: Path | None,
    **options: Any,
) -> None:
    """Take RUN back on the hosts of INVENTORY, from the pre-images that it left there.

    Shows the plan for it, and what prevents it: an object that somebody changed since is left alone, and its
    host with it. A rollback is a run of its own, which can be taken back. `remedy history` lists the runs;
    RUN may be `latest`, the last apply.

    With --only and --skip the changes of some remedies are taken back, in the same order and under the same
    guards; the others stay. An object that one of the others changed as well, and later, is left alone, and its
    host with it. The record says which remedies. What still waits for a confirmation is taken back in any case.
    """
    opts = Options(**options)

    def check() -> None:
        check_output(output, as_json=opts.as_json)
        check_page(html, output, plan_file)

    with opened(opts, first=check) as (session, terminal):
        make_room_for(output, terminal)
        from remedy.audit.latest import LATEST, to_take_back
        from remedy.report.audit import run_line
        from remedy.report.proposal import render_proposal
        from remedy.runs import rollback

        if run == LATEST:
            story = to_take_back(session.stories().values(), session.home)
            terminal.show(f"latest: {run_line(story)}")
            run = story.run
        saving = output is not None
        proposal = rollback.propose(session, run, plan_file=plan_file, saving=saving)
        terminal.show(render_proposal(proposal, commands=commands))
        if output is not None:
            saved = rollback.save(session, proposal, output)
            terminal.saved(saved, output)
            if html is not None:
                from remedy.report.pages.plan import plan_file_page

                for problem in write_page(html, plan_file_page(saved)):
                    terminal.show(problem)
            return
        consent = consent_to(hosts_question("Take the run back on"), yes=yes, show=terminal.insist)
        outcome = rollback.rollback(session, proposal, consent=consent)
        terminal.finish(with_page(outcome, html), proposal.unread)
