"""``remedy unlock``: release the lock that a run holds on hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remedy.cli.common import Options, host_options, make_room_for, opened
from remedy.cli.paths import FilePath


@click.command()
@click.argument("run")
@host_options
@click.option(
    "--force", is_flag=True, help="Also where the run is at work, or waits for its confirmation."
)
@click.option(
    "-o",
    "--output",
    type=FilePath(),
    help="Only write what --force would do, to be approved.",
)
@click.option("--plan", "plan_file", type=FilePath(), help="What was approved for --force.")
def unlock(
    run: str, force: bool, output: Path | None, plan_file: Path | None, **options: Any
) -> None:
    """Release the lock that RUN holds on the hosts of INVENTORY; the refusal names the run.

    A dead process's lock is released by the next run. The lock of a run that is at work is only taken with
    --force: the change in progress is finished, and no further one is started. RUN may be `latest`, the last
    apply or rollback of the journal. A lock is of the run as a whole, so there is no --only or --skip.
    """
    with opened(Options(**options)) as (session, terminal):
        make_room_for(output, terminal)
        from remedy.audit.latest import LATEST, to_unlock
        from remedy.runs.unlock import check_id, proposed, unlock

        if run == LATEST:
            run = to_unlock(session.stories().values(), session.home).run
            terminal.show(f"latest: {run}")
        check_id(session, run)
        if output is not None:
            from remedy.plan import write_plan

            plan = proposed(session, run)
            write_plan(plan, output)
            terminal.saved(plan, output)
            return
        terminal.finish(unlock(session, run, force=force, plan_file=plan_file))
