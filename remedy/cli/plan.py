"""``remedy plan``: decide what would be changed, and keep it in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import Options, Session, explained, host_options, print_json
from remedy.errors import RemedyError

if TYPE_CHECKING:
    from remedy.plan import Plan


@click.command()
@host_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the plan to this file."
)
@click.option("--exit-code", is_flag=True, help="Exit with 10 when changes are pending.")
def plan(output: Path | None, exit_code: bool, **options: Any) -> None:
    """Show what `apply` would change on the hosts of INVENTORY; change nothing."""
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.plan import write_plan
        from remedy.report.console import render_outcome, render_plan
        from remedy.report.document import run_document

        with session.stage(f"Reading {len(session.hosts)} hosts"):
            probed = session.pipeline.probe(session.hosts)
        made = session.pipeline.plan(probed)
        if output is not None:
            made = session.pipeline.observed(probed, made)
            write_plan(made, output)
            _record(session, made, output)
        outcome = session.pipeline.preview(probed, made, pending_counts=exit_code)
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_plan(made))
            if probed.errors:
                session.console.print(render_outcome(outcome))
            if output is not None:
                session.console.print(
                    f"written to {output}; carry it out: remedy apply "
                    f"{opts.inventory} --plan {output}",
                    markup=False,
                )
    sys.exit(outcome.exit_code)


def _record(session: Session, made: Plan, output: Path) -> None:
    """Record who made which plan; where that cannot be written, say so: nothing was changed."""
    from remedy.audit import Journal
    from remedy.audit.agreement import titles
    from remedy.run import new_run_id

    data = {"by": made.author, "digest": made.digest, "file": output.name, "changes": titles(made)}
    try:
        journal = Journal(session.pipeline.inventory.home, run=new_run_id(), mode="plan")
        journal.write("saved", **data)
    except RemedyError as error:
        session.console.print(f"not recorded: {error.message}", style="yellow", markup=False)
