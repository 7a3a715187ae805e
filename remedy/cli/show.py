"""``remedy show``: render a plan file or the plan of a run."""

from __future__ import annotations

from pathlib import Path

import click

from remedy.cli.common import explained, out
from remedy.errors import UsageError


@click.command()
@click.argument("plan_or_run")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    default=Path(".remedy"),
    help="The .remedy folder in which a run is looked for.",
)
def show(plan_or_run: str, home: Path) -> None:
    """Render a plan file, or the plan of a run by its id; also an old or a stale one."""
    with explained():
        from remedy.plan import read_plan
        from remedy.report.console import render_plan

        path = Path(plan_or_run)
        if not path.exists():
            path = home / "runs" / plan_or_run / "plan.json"
        if not path.exists():
            raise UsageError(
                f"{plan_or_run} is neither a plan file nor a run in {home}",
                next_step="remedy history INVENTORY lists the runs.",
            )
        plan = read_plan(path)
        out.print(f"made {plan.created} by {plan.author} for {plan.inventory}", markup=False)
        out.print(render_plan(plan))
