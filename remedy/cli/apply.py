"""``remedy apply``: plan, ask, change, look again, prove."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import Options, Session, explained, host_options, out, print_json
from remedy.errors import RefusedError, StaleError, UsageError

if TYPE_CHECKING:
    from remedy.pipeline import Probed
    from remedy.plan import Plan


@click.command()
@host_options
@click.option("--yes", is_flag=True, help="Do not ask before changing.")
@click.option("--no-verify", is_flag=True, help="Do not prove the result; the record says so.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="Carry out exactly this plan file."
)
@click.option(
    "--accept-high-risk", is_flag=True, help="With --yes: also make changes marked as high risk."
)
def apply(
    yes: bool, no_verify: bool, plan_file: Path | None, accept_high_risk: bool, **options: Any
) -> None:
    """Make the hosts of INVENTORY right, and prove it with an all-reduce across them.

    Shows the plan and asks; then changes, looks again, and verifies. A second run changes nothing.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.report.console import render_outcome, render_plan
        from remedy.report.document import run_document
        from remedy.run import new_run_id

        pipeline = session.pipeline
        with session.stage(f"Reading {len(session.hosts)} hosts"):
            probed = pipeline.probe(session.hosts)
        plan = (
            pipeline.plan(probed) if plan_file is None else _from_file(plan_file, session, probed)
        )
        session.console.print(render_plan(plan))
        if plan.changes:
            _consent(plan, yes=yes, accept_high_risk=accept_high_risk)
        work = "Looking again" if not plan.changes else f"Changing {len(plan.hosts)} hosts"
        with session.stage(work if no_verify else f"{work}, then verifying"):
            outcome = pipeline.apply(probed, plan, run=new_run_id(), prove=not no_verify)
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_outcome(outcome))
    sys.exit(outcome.exit_code)


def _from_file(path: Path, session: Session, probed: Probed) -> Plan:
    from remedy.plan import read_plan

    plan = read_plan(path)
    if plan.inventory_digest != probed.fleet.inventory.digest:
        raise StaleError(
            f"{path} was made for another inventory, or for this one as it was before",
            next_step=f"Make it again: remedy plan {session.options.inventory} -o {path}",
        )
    return plan.restricted(session.hosts)


def _consent(plan: Plan, *, yes: bool, accept_high_risk: bool) -> None:
    """Ask for consent, a second time for what is marked as high risk; raise where it is not given."""
    from remedy.plan import Risk

    dangerous = [change for change in plan.changes if change.risk is Risk.HIGH]
    if yes:
        if dangerous and not accept_high_risk:
            raise RefusedError(
                f"{dangerous[0].host}: {dangerous[0].title}: this is marked as high risk",
                next_step="If you mean it: --yes --accept-high-risk. Without --yes you are asked.",
            )
        return
    if not (sys.stdin.isatty() and out.is_terminal):
        raise UsageError(
            "there are changes to make, and nobody to ask: this is no terminal",
            next_step="Look at the plan above and run the command again with --yes.",
        )
    agreed = click.confirm(f"Change {len(plan.hosts)} hosts?", err=True)
    if agreed and dangerous:
        titles = ", ".join(dict.fromkeys(change.title for change in dangerous))
        agreed = click.confirm(f"High risk: {titles}. Really?", err=True)
    if not agreed:
        raise RefusedError("you said no; nothing was changed")
