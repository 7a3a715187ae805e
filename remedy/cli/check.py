"""``remedy check``: probe and report; changes nothing."""

from __future__ import annotations

import sys
from typing import Any

import click

from remedy.cli.common import Options, Session, explained, host_options, print_json


@click.command()
@host_options
@click.option("--exit-code", is_flag=True, help="Exit with 10 when changes are pending.")
def check(exit_code: bool, **options: Any) -> None:
    """Probe the hosts of INVENTORY and report what is wrong; change nothing."""
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.report.console import render_outcome, render_plan
        from remedy.report.document import run_document

        pipeline = session.pipeline
        with session.stage(f"Reading {len(session.hosts)} hosts"):
            probed = pipeline.probe(session.hosts)
        plan = pipeline.plan(probed)
        outcome = pipeline.preview(probed, plan, pending_counts=exit_code)
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_plan(plan), render_outcome(outcome))
    sys.exit(outcome.exit_code)
