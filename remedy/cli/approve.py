"""``remedy approve``: sign a plan."""

from __future__ import annotations

from pathlib import Path

import click

from remedy.cli.common import errors_shown
from remedy.cli.paths import FilePath
from remedy.cli.terminal import out
from remedy.errors import UsageError
from remedy.files import STANDARD, at_home


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FilePath())
@click.option(
    "--key",
    type=FilePath(),
    default=Path("~/.ssh/id_ed25519"),
    show_default=True,
    help="A private key, or the public key of one in the agent.",
)
@click.option(
    "--planner",
    is_flag=True,
    help="Sign as who made the plan; approvals count with that, and are of others.",
)
def approve(plan_file: Path, key: Path, planner: bool) -> None:
    """Show PLAN and sign its digest with an ssh key; the signature is written beside the plan.

    On a terminal it asks before it signs; without one the command itself is the answer.
    """
    with errors_shown():
        from remedy.audit.approval import sign
        from remedy.cli.consent import ask, is_terminal
        from remedy.cli.progress import terminal_kept
        from remedy.plan import read_plan
        from remedy.report.whole import render_whole

        if plan_file == STANDARD:
            raise UsageError(
                "a signature is written beside the plan, and standard input has no place for it",
                next_step="Save the plan first: remedy plan INVENTORY -o plan.json",
            )
        plan = read_plan(plan_file)
        out.print(render_whole(plan))
        # Where nobody can answer, the command itself is the answer.
        ask("Sign this plan?", yes=not is_terminal())
        with terminal_kept():
            signature = sign(plan, plan_file, at_home(key), planner=planner)
        out.print(f"{'signed as its planner' if planner else 'approved'}: {signature}")
