"""``remedy verify``: prove the fleet as it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import (
    Options,
    Session,
    err,
    explained,
    host_options,
    print_json,
)
from remedy.cli.proof import proof_options
from remedy.text import counted


@click.command()
@host_options
@proof_options
@click.option(
    "--incremental",
    is_flag=True,
    help="Build on the last verdict: test only the hosts that are other ones now, then the whole fleet.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the verdict as a page, with a map of the ways between hosts.",
)
def verify(
    incremental: bool, html: Path | None, proof: Mapping[str, object], **options: Any
) -> None:
    """Run an all-reduce across the hosts of INVENTORY and report what it proved; change nothing.

    The ladder: facts, reachability of every pair, inside each host, the whole fleet; and where that fails, the
    hosts or the ways between two hosts that are to blame.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from dataclasses import replace

        from remedy.apply.start import new_run_id
        from remedy.report.console import render_outcome
        from remedy.report.document import run_document
        from remedy.report.ladder import render_rung
        from remedy.report.page import page

        pipeline = session.pipeline
        pipeline.spec.override("verify", **proof)
        pipeline.on_rung = lambda rung: err.print(render_rung(rung))
        with session.stage(f"Reading {counted(len(session.hosts), 'host')}"):
            probed = pipeline.probe(session.hosts)
        preview = pipeline.preview(probed, pipeline.plan(probed), pending_counts=False)
        run = new_run_id()
        with session.stage("Verifying"):
            verdict = pipeline.verify(probed, incremental=incremental)
        with session.going_on():
            pipeline.record(verdict, run)
        outcome = replace(preview, run=run, verdict=verdict)
        hosts = {name: host.status.value for name, host in outcome.hosts.items()}
        session.note("verify", "ended", run=run, hosts=hosts, exit_code=outcome.exit_code)
        if html is not None:
            html.write_text(page(verdict, pipeline.inventory.path.stem), encoding="utf-8")
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_outcome(outcome))
    sys.exit(outcome.exit_code)
