"""``remedy unlock``: release the lock that a run holds on hosts."""

from __future__ import annotations

from typing import Any

import click

from remedy.cli.common import Options, host_options, opened


@click.command()
@click.argument("run")
@host_options
@click.option(
    "--force", is_flag=True, help="Also where the run is at work, or waits for its confirmation."
)
def unlock(run: str, force: bool, **options: Any) -> None:
    """Release the lock that RUN holds on the hosts of INVENTORY; the refusal names the run.

    A dead process's lock is released by the next run. The lock of a run that is at work is only taken with
    --force: the change in progress is finished, and no further one is started.
    """
    with opened(Options(**options)) as (session, terminal):
        from remedy.runs.unlock import unlock

        terminal.finish(unlock(session, run, force=force))
