"""``remedy history``: what was done to the hosts of an inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remedy.cli.common import explained, out

PROVED = {True: "proved", False: "NOT proved", None: "not verified"}


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
def history(inventory: Path) -> None:
    """List the runs of INVENTORY: when, what, by whom, and how they ended."""
    with explained():
        from remedy.audit.journal import FILE_NAME, read_records

        path = inventory.resolve().parent / ".remedy" / FILE_NAME
        runs: dict[str, dict[str, Any]] = {}
        for record in read_records(path):
            body = record.body
            run = runs.setdefault(body["run"], {"time": body["time"], "mode": body["mode"]})
            data = body["data"]
            if body["event"] == "planned":
                run["by"] = data.get("by", "")
                run["count"] = sum(len(changes) for changes in data.get("changes", {}).values())
            elif body["event"] == "verified":
                run["proved"] = data.get("passed")
            elif body["event"] == "ended":
                run["exit"] = data.get("exit_code")
        if not runs:
            out.print(f"no runs are recorded in {path}", markup=False)
        for name, run in runs.items():
            proved = PROVED[run.get("proved")]
            ended = f"exit {run['exit']}" if "exit" in run else "not ended"
            count = f"{run.get('count', 0)} changes"
            out.print(
                f"{name}  {run['mode']:<9}{count:<13}{ended:<11}{proved:<13}{run.get('by', '')}",
                markup=False,
            )
