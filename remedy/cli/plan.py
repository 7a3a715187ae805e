"""``remedy plan``: decide what would be changed, and keep it in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remedy.cli.common import (
    COMMANDS_OPTION,
    Options,
    check_output,
    host_options,
    make_room_for,
    opened,
    remedy_options,
    reports,
)
from remedy.cli.pages import check_page, html_option, write_page
from remedy.cli.paths import FilePath
from remedy.files import name_of_output
from remedy.text import quoted

if TYPE_CHECKING:
    from remedy.plan import Plan


@click.command()
@host_options
@remedy_options
@COMMANDS_OPTION
@click.option("-o", "--output", type=FilePath(), help="Write the plan to this file.")
@html_option("the plan, which remedy changes which hosts, and every command")
@click.option("--exit-code", is_flag=True, help="Exit with 10 when changes are pending.")
def plan(
    output: Path | None, html: Path | None, commands: bool, exit_code: bool, **options: Any
) -> None:
    """Show what `apply` would change on the hosts of INVENTORY; change nothing."""
    opts = Options(**options)

    def check() -> None:
        check_output(output, as_json=opts.as_json)
        check_page(html, output)

    with opened(opts, "remedy.runs.plan", later=reports(opts), first=check) as (session, terminal):
        make_room_for(output, terminal)
        from remedy.runs.plan import plan

        outcome = plan(session, output=output, pending_counts=exit_code)
        if not terminal.as_json and outcome.plan is not None:
            from remedy.apply.waves import TAKEN_BACK
            from remedy.report.proposal import render_own

            terminal.show(render_own(outcome.plan, outcome.unread, commands=commands))
            if output is not None:
                step = _next(session.typed, output, outcome.plan)
                terminal.show(f"written to {name_of_output(output)}{step}")
                if outcome.plan.changes:
                    terminal.show(f"with --waves, {TAKEN_BACK}")
        if html is not None and outcome.plan is not None:
            from remedy.report.pages.plan import plan_page

            text = plan_page(outcome.plan, outcome.unread, outcome.inventory, outcome.run)
            problems = write_page(html, text)
            outcome = replace(outcome, warnings=(*outcome.warnings, *problems))
        terminal.finish(outcome)


def _next(inventory: str, output: Path, plan: Plan) -> str:
    """Return what to do with a plan file; one without changes is only kept."""
    if not plan.changes:
        return "; it has no changes"
    return f"; carry it out: remedy apply {inventory} --plan {quoted(output)}"
