"""``remedy check``: probe and report; changes nothing."""

from __future__ import annotations

from typing import Any

import click

from remedy.cli.common import (
    COMMANDS_OPTION,
    Options,
    host_options,
    opened,
    remedy_options,
    reports,
)


@click.command()
@host_options
@remedy_options
@COMMANDS_OPTION
@click.option("--exit-code", is_flag=True, help="Exit with 10 when changes are pending.")
@click.option(
    "--after-reboot",
    is_flag=True,
    help="Show which hosts booted since their last run, and whether every applied change is still there.",
)
def check(commands: bool, exit_code: bool, after_reboot: bool, **options: Any) -> None:
    """Probe the hosts of INVENTORY and report what is wrong; change nothing but the journal.

    With --after-reboot the exit code is 1 where an applied change did not survive a boot.
    """
    opts = Options(**options)
    with opened(opts, "remedy.runs.check", later=reports(opts)) as (session, terminal):
        from remedy.runs.check import check

        outcome = check(session, pending_counts=exit_code, after_reboot=after_reboot)
        if not terminal.as_json and outcome.plan is not None:
            from remedy.report.proposal import render_own

            terminal.show(render_own(outcome.plan, outcome.unread, commands=commands))
        terminal.finish(outcome)
