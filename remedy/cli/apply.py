"""``remedy apply``: plan, ask, change, look again, prove."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import (
    Options,
    Session,
    explained,
    host_options,
    out,
    print_json,
)
from remedy.cli.proof import proof_options
from remedy.errors import RefusedError, StaleError, UsageError
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.audit.agreement import Agreement
    from remedy.plan import Plan
    from remedy.runs.pipeline import Probed


@click.command()
@host_options
@click.option("--yes", is_flag=True, help="Do not ask before changing.")
@click.option("--no-verify", is_flag=True, help="Do not prove the result; the record says so.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="Carry out exactly this plan file."
)
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on with the plan of RUN on the hosts that it did not reach, or did not hear from.",
)
@click.option(
    "--require-approval",
    type=click.IntRange(1, 10),
    is_flag=False,
    flag_value=1,
    metavar="[N]",
    help="Refuse a --plan with fewer valid signatures than N (1); the spec may ask for more.",
)
@proof_options
@click.option("--waves", help="How many hosts to change at a time, such as 1,10%,100%.")
@click.option(
    "--max-failures", type=click.IntRange(min=0), help="Begin no further wave after more failures."
)
@click.option(
    "--rehearse",
    is_flag=True,
    help="Ask the hosts whether each change could be made, up to the first write; write nothing there.",
)
@click.option(
    "--accept-high-risk", is_flag=True, help="With --yes: also make changes marked as high risk."
)
def apply(
    yes: bool,
    no_verify: bool,
    plan_file: Path | None,
    resume: str | None,
    require_approval: int | None,
    rehearse: bool,
    accept_high_risk: bool,
    waves: str | None,
    max_failures: int | None,
    proof: Mapping[str, object],
    **options: Any,
) -> None:
    """Make the hosts of INVENTORY right, and prove it with an all-reduce across them.

    Shows the plan and asks; then changes, looks again, and verifies. A second run changes nothing.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        if plan_file is not None and resume is not None:
            raise UsageError(
                "--plan and --resume exclude each other: a run is resumed with its own plan",
                next_step="Give one of them.",
            )
        session = Session(opts)
        from remedy.apply.start import new_run_id
        from remedy.report.console import render_outcome, render_plan

        pipeline = session.pipeline
        pipeline.spec.override("apply", waves=waves, max_failures=max_failures)
        pipeline.spec.override("verify", **proof)
        agreement: Agreement | None
        if resume is not None:
            agreement, hosts = _resumed(resume, session, require_approval or 0)
        else:
            agreement, hosts = _saved(plan_file, session, require_approval or 0), session.hosts
        with session.stage(f"Reading {counted(len(session.hosts), 'host')}"):
            probed = pipeline.probe(session.hosts)
        if agreement is None:
            plan = pipeline.observed(probed, pipeline.plan(probed))
        else:
            plan = agreement.plan.restricted(hosts)
            _tell_strangers(session, probed, plan)
        session.console.print(render_plan(plan, len(probed.errors)))
        if rehearse:
            from remedy.cli.rehearse import rehearse as ask

            sys.exit(ask(session, plan, agreement, probed.errors))
        if plan.changes:
            _consent(plan, yes=yes, accept_high_risk=accept_high_risk)
        work = (
            "Looking again" if not plan.changes else f"Changing {counted(len(plan.hosts), 'host')}"
        )
        with session.stage(work if no_verify else f"{work}, then verifying"):
            outcome = pipeline.apply(
                probed, plan, run=new_run_id(), prove=not no_verify, agreement=agreement
            )
        if opts.as_json:
            from remedy.report.document import run_document

            print_json(run_document(outcome))
        else:
            session.console.print(render_outcome(outcome))
    sys.exit(outcome.exit_code)


def _saved(path: Path | None, session: Session, approvals: int) -> Agreement | None:
    """Read a plan that is to be carried out; refuse one of another inventory, or one that was used."""
    from remedy.apply.start import origin
    from remedy.audit.agreement import Agreement
    from remedy.audit.journal import FILE_NAME
    from remedy.audit.story import hosts_of_plan
    from remedy.plan import read_plan

    if path is None:
        _check_approval(session, None, None, approvals)
        return None
    plan = read_plan(path)
    inventory = session.pipeline.inventory
    _check_inventory(session, path, plan)
    used = hosts_of_plan(inventory.home / FILE_NAME, plan.digest) & set(session.hosts)
    if used & set(plan.hosts):
        raise StaleError(
            f"{path} was carried out before on {', '.join(sorted(used))}; a plan is used once",
            next_step=f"Make a new one: remedy plan {session.options.inventory} -o {path}. To go on with a run "
            f"that stopped: remedy apply {session.options.inventory} --resume RUN.",
        )
    return Agreement(plan, _check_approval(session, path, plan, approvals), by=origin().author)


def _resumed(run: str, session: Session, approvals: int) -> tuple[Agreement, tuple[str, ...]]:
    """Return what was agreed to for a run, and the hosts on which it is left to be done."""
    from remedy.apply.start import origin
    from remedy.audit.agreement import Agreement, plan_path

    plan, left = session.pipeline.past.unfinished(run)
    path = plan_path(session.pipeline.inventory.home, run)
    _check_inventory(session, path, plan)
    valid = _check_approval(session, path, plan, approvals)
    hosts = tuple(host for host in left if host in session.hosts)
    return Agreement(plan, valid, resumes=run, by=origin().author), hosts


def _check_inventory(session: Session, path: Path, plan: Plan) -> None:
    """Refuse a plan of another inventory, and say what is another one."""
    inventory = session.pipeline.inventory
    if plan.inventory_digest == inventory.digest:
        return
    gone = [host for host in plan.hosts if host not in inventory.names]
    what = f": it changes {', '.join(gone)}, which left the inventory" if gone else ""
    raise StaleError(
        f"{path} was made for another inventory, or for this one as it was before{what}",
        next_step=f"Make it again: remedy plan {session.options.inventory} -o {path.name}",
    )


def _tell_strangers(session: Session, probed: Probed, plan: Plan) -> None:
    """Say which hosts are not as they were when the plan was made; what it changes is compared there."""
    from remedy.plan.seal import other_secrets
    from remedy.secret import read_seal
    from remedy.text import fold

    now = session.pipeline.observed(
        probed, plan.restricted(host for host in plan.hosts if host in probed.fleet.states)
    ).observed
    other = [host for host, mark in now.items() if plan.observed.get(host, mark) != mark]
    if other:
        session.console.print(
            f"{fold(other)}: not as when the plan was made; each object is compared before it is changed",
            style="yellow",
            markup=False,
        )
    inventory = session.pipeline.inventory
    for line in other_secrets(plan, inventory, read_seal(inventory.home)):
        # They are how remedy gets in, not what it changes there: a new password is told, not refused.
        session.console.print(line, style="yellow", markup=False)


def _check_approval(
    session: Session, path: Path | None, plan: Plan | None, asked: int
) -> tuple[Any, ...]:
    """Refuse what lacks the signatures that the spec or the command line requires; return those that count."""
    from remedy.audit.approval import require

    spec = session.pipeline.spec.approval
    count = max(spec.required, asked)
    if count == 0:
        return ()
    if path is None or plan is None:
        raise RefusedError(
            f"{count} approvals are required, and only a plan file can be approved",
            next_step=f"remedy plan {session.options.inventory} -o plan.json; remedy approve plan.json; "
            f"remedy apply {session.options.inventory} --plan plan.json",
        )
    folder = session.pipeline.inventory.path.resolve().parent
    revoked = None if spec.revoked_keys is None else folder / spec.revoked_keys
    valid = require(plan, path, folder / spec.allowed_signers, count, revoked)
    for approval in valid:
        session.console.print(f"approved by {approval.principal}", markup=False)
    return valid


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
    agreed = click.confirm(f"Change {counted(len(plan.hosts), 'host')}?", err=True)
    if agreed and dangerous:
        titles = ", ".join(dict.fromkeys(change.title for change in dangerous))
        agreed = click.confirm(f"High risk: {titles}. Really?", err=True)
    if not agreed:
        raise RefusedError("you said no; nothing was changed")
