"""``remedy apply``: plan, ask, change, look again, prove."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import Options, Session, explained, host_options, out, print_json
from remedy.errors import RefusedError, StaleError, UsageError

if TYPE_CHECKING:
    from remedy.plan import Plan


@click.command()
@host_options
@click.option("--yes", is_flag=True, help="Do not ask before changing.")
@click.option("--no-verify", is_flag=True, help="Do not prove the result; the record says so.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="Carry out exactly this plan file."
)
@click.option(
    "--require-approval",
    type=click.IntRange(min=1),
    help="Refuse a --plan with fewer valid signatures; the spec may ask for more.",
)
@click.option("--waves", help="How many hosts to change at a time, such as 1,10%,100%.")
@click.option(
    "--max-failures", type=click.IntRange(min=0), help="Begin no further wave after more failures."
)
@click.option(
    "--accept-high-risk", is_flag=True, help="With --yes: also make changes marked as high risk."
)
def apply(
    yes: bool,
    no_verify: bool,
    plan_file: Path | None,
    require_approval: int | None,
    accept_high_risk: bool,
    waves: str | None,
    max_failures: int | None,
    **options: Any,
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
        pipeline.spec.override("apply", waves=waves, max_failures=max_failures)
        saved = None if plan_file is None else _from_file(plan_file, session)
        _check_approval(session, plan_file, saved, require_approval or 0)
        with session.stage(f"Reading {len(session.hosts)} hosts"):
            probed = pipeline.probe(session.hosts)
        plan = pipeline.plan(probed) if saved is None else saved.restricted(session.hosts)
        digest = plan.digest if saved is None else saved.digest
        session.console.print(render_plan(plan))
        if plan.changes:
            _consent(plan, yes=yes, accept_high_risk=accept_high_risk)
        work = "Looking again" if not plan.changes else f"Changing {len(plan.hosts)} hosts"
        with session.stage(work if no_verify else f"{work}, then verifying"):
            outcome = pipeline.apply(
                probed, plan, run=new_run_id(), prove=not no_verify, digest=digest
            )
        if opts.as_json:
            print_json(run_document(outcome))
        else:
            session.console.print(render_outcome(outcome))
    sys.exit(outcome.exit_code)


def _from_file(path: Path, session: Session) -> Plan:
    """Read a plan that is to be carried out; refuse one of another inventory, or one that was used."""
    from remedy.audit.journal import FILE_NAME, hosts_of_plan
    from remedy.plan import read_plan

    plan = read_plan(path)
    inventory = session.pipeline.inventory
    if plan.inventory_digest != inventory.digest:
        raise StaleError(
            f"{path} was made for another inventory, or for this one as it was before",
            next_step=f"Make it again: remedy plan {session.options.inventory} -o {path}",
        )
    used = hosts_of_plan(inventory.home / FILE_NAME, plan.digest) & set(session.hosts)
    if used & set(plan.hosts):
        raise StaleError(
            f"{path} was carried out before on {', '.join(sorted(used))}; a plan is used once",
            next_step=f"Make a new one: remedy plan {session.options.inventory} -o {path}",
        )
    return plan


def _check_approval(session: Session, path: Path | None, plan: Plan | None, asked: int) -> None:
    """Refuse what has not the signatures that the spec or the command line requires."""
    from remedy.audit.approval import require

    spec = session.pipeline.spec.approval
    count = max(spec.required, asked)
    if count == 0:
        return
    if path is None or plan is None:
        raise RefusedError(
            f"{count} approvals are required, and only a plan file can be approved",
            next_step=f"remedy plan {session.options.inventory} -o plan.json; remedy approve plan.json; "
            f"remedy apply {session.options.inventory} --plan plan.json",
        )
    signers = session.pipeline.inventory.path.resolve().parent / spec.allowed_signers
    for approval in require(plan, path, signers, count):
        session.console.print(f"approved by {approval.principal}", markup=False)


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
