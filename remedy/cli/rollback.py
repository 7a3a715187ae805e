"""``remedy rollback``: undo a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from remedy.cli.common import Options, Session, explained, host_options, out, print_json
from remedy.errors import RefusedError, UsageError
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.apply.report import HostReport
    from remedy.plan import Plan


@click.command()
@click.argument("run")
@host_options
@click.option("--yes", is_flag=True, help="Do not ask before changing.")
def rollback(run: str, yes: bool, **options: Any) -> None:
    """Take RUN back on the hosts of INVENTORY, from the pre-images that it left there.

    Shows the plan that does it, and what stands against it: what somebody changed since is left alone, and its
    host with it. A rollback is a run of its own, which can be taken back. `remedy history` lists the runs.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.apply.outcome import exit_code_of
        from remedy.apply.start import new_run_id
        from remedy.report.console import render_plan

        past = session.pipeline.past
        plan = past.undoing(run, session.hosts)
        session.console.print(render_plan(plan))
        for change in past.irreversible(run, session.hosts):
            cannot = f"{change.host}: CANNOT be taken back: {change.title}"
            session.console.print(Text(cannot, style="red"))
        if plan.changes:
            with session.stage(f"Looking at {counted(len(plan.hosts), 'host')}"):
                _show(session, past.conflicts(plan, run), looking=True)
            _consent(plan, yes=yes)
        back = new_run_id()
        with session.stage(f"Taking back on {counted(len(plan.hosts), 'host')}"):
            reports = past.rollback(plan, run=back, of=run)
        code = exit_code_of(reports.values())
        words = {name: "ok" if exit_code_of([r]) == 0 else "failed" for name, r in reports.items()}
        past.ended(back, code, words, reports)
        _show(session, reports, looking=False)
        if opts.as_json:
            told = {
                host: [result.model_dump(mode="json") for result in report.results.values()]
                for host, report in reports.items()
            }
            print_json({"schema": "remedy.rollback/1", "run": back, "of": run, "hosts": told})
        elif plan.changes:
            session.console.print(
                Text(f"This was run {back}, which can be taken back like any other.")
            )
    sys.exit(code)


def _consent(plan: Plan, *, yes: bool) -> None:
    """Ask for consent; raise where it is not given."""
    if yes:
        return
    if not (sys.stdin.isatty() and out.is_terminal):
        raise UsageError(
            "there are changes to take back, and nobody to ask: this is no terminal",
            next_step="Run the command again with --yes.",
        )
    if not click.confirm(f"Take {counted(len(plan.changes), 'change')} back?", err=True):
        raise RefusedError("you said no; nothing was taken back")


def _show(session: Session, reports: Mapping[str, HostReport], *, looking: bool) -> None:
    """Show what became of each change; before anything is done, only what stands against it."""
    for host, report in reports.items():
        if report.refused:
            session.console.print(Text(f"{host}: refused: {report.refused}", style="red"))
        if report.error is not None:
            session.console.print(Text(f"{host}: {report.error.message}", style="red"))
        for result in report.results.values():
            good = result.status.value in ("done", "already")
            if looking and (good or result.status.value == "skipped"):
                continue
            line = f"{host}: {result.id}: {result.status.value} {result.detail}".rstrip()
            session.console.print(Text(line, style="green" if good else "red"))
            for text in result.lines:
                session.console.print(Text(f"    {text}", style="dim"))
