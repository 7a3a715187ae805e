"""``remedy rollback``: undo a run."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.text import Text

from remedy.cli.common import Options, Session, explained, host_options, out, print_json
from remedy.errors import RefusedError, UsageError


@click.command()
@click.argument("run")
@host_options
@click.option("--yes", is_flag=True, help="Do not ask before changing.")
def rollback(run: str, yes: bool, **options: Any) -> None:
    """Take RUN back on the hosts of INVENTORY, from the pre-images that it left there.

    What somebody changed since is left alone and reported. `remedy history` lists the runs.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.apply.outcome import FAILED, OK, REFUSED, most_severe
        from remedy.apply.script import ChangeStatus
        from remedy.run import origin

        plan = session.pipeline.plan_of(run).restricted(session.hosts)
        for change in plan.changes:
            how = "take back" if change.reversible else "CANNOT take back"
            session.console.print(Text(f"{change.host}: {how}: {change.title}"))
        if plan.changes and not yes:
            if not (sys.stdin.isatty() and out.is_terminal):
                raise UsageError(
                    "there are changes to take back, and nobody to ask: this is no terminal",
                    next_step="Run the command again with --yes.",
                )
            if not click.confirm(f"Take {len(plan.changes)} changes back?", err=True):
                raise RefusedError("you said no; nothing was taken back")
        with session.stage(f"Taking back on {len(plan.hosts)} hosts"):
            reports = session.pipeline.rollback(run, session.hosts, by=origin().author)
        codes = []
        for host, report in reports.items():
            if report.refused:
                codes.append(REFUSED if report.refused.startswith("LOCKED") else FAILED)
                session.console.print(Text(f"{host}: refused: {report.refused}", style="red"))
            for result in report.results.values():
                good = result.status in (ChangeStatus.DONE, ChangeStatus.ALREADY)
                codes.append(
                    OK if good else REFUSED if result.status is ChangeStatus.STALE else FAILED
                )
                session.console.print(
                    Text(
                        f"{host}: {result.id}: {result.status.value} {result.detail}".rstrip(),
                        style="green" if good else "red",
                    )
                )
        if opts.as_json:
            told = {
                host: [result.model_dump(mode="json") for result in report.results.values()]
                for host, report in reports.items()
            }
            print_json({"schema": "remedy.rollback/1", "run": run, "hosts": told})
    sys.exit(most_severe(codes))
