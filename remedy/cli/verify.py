"""``remedy verify``: prove the fleet as it is."""

from __future__ import annotations

import sys
from typing import Any

import click

from remedy.cli.common import Options, Session, explained, host_options, print_json


@click.command()
@host_options
def verify(**options: Any) -> None:
    """Run an all-reduce across the hosts of INVENTORY and report what it proved; change nothing."""
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from dataclasses import replace

        from remedy.report.console import render_outcome
        from remedy.report.document import run_document
        from remedy.run import new_run_id

        pipeline = session.pipeline
        with session.stage(f"Reading {len(session.hosts)} hosts"):
            probed = pipeline.probe(session.hosts)
        preview = pipeline.preview(probed, pipeline.plan(probed), pending_counts=False)
        run = new_run_id()
        with session.stage("All-reduce"):
            verdict = pipeline.verify(probed, run=run)
        outcome = replace(preview, run=run, verdict=verdict)
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_outcome(outcome))
    sys.exit(outcome.exit_code)
