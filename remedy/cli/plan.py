"""``remedy plan``: decide what would be changed, and keep it in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import Options, Session, explained, host_options, print_json
from remedy.errors import RemedyError
from remedy.text import counted

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
        from remedy.audit.agreement import titles
        from remedy.plan import write_plan
        from remedy.report.console import render_outcome, render_plan

        with session.stage(f"Reading {counted(len(session.hosts), 'host')}"):
            probed = session.pipeline.probe(session.hosts)
        made = session.pipeline.plan(probed)
        if output is not None:
            made = _sealed(session, session.pipeline.observed(probed, made))
            write_plan(made, output)
            session.note(
                "plan", "saved", digest=made.digest, file=output.name, changes=titles(made)
            )
        outcome = session.pipeline.preview(probed, made, pending_counts=exit_code)
        if opts.as_json:
            from remedy.report.document import run_document

            print_json(run_document(outcome))
        else:
            session.console.print(render_plan(made, len(probed.errors)))
            if probed.errors:
                session.console.print(render_outcome(outcome))
            if output is not None:
                session.console.print(
                    f"written to {output}; carry it out: remedy apply "
                    f"{opts.inventory} --plan {output}",
                    markup=False,
                )
    sys.exit(outcome.exit_code)


def _sealed(session: Session, made: Plan) -> Plan:
    """Return a plan with keyed digests of what it must not hold; without them where the key cannot be had."""
    from remedy.plan.seal import sealed
    from remedy.secret import make_seal

    inventory = session.pipeline.inventory
    if not made.changes:
        return made
    try:
        return sealed(made, inventory, make_seal(inventory.home))
    except RemedyError as error:
        session.console.print(f"not sealed: {error.message}", style="yellow", markup=False)
        return made
