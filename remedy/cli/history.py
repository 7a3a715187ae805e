"""``remedy history``: the runs on the hosts of an inventory."""

from __future__ import annotations

from pathlib import Path

import click

from remedy.cli.common import errors_shown, home_of
from remedy.cli.plain import print_json
from remedy.cli.terminal import out


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOSTS",
    help="Only the runs that these hosts took part in, such as gpu[01-08].",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def history(inventory: Path, hosts: tuple[str, ...], as_json: bool) -> None:
    """List the runs of INVENTORY: when, what, by whom, and how they ended."""
    with errors_shown():
        from remedy.audit.journal import FILE_NAME
        from remedy.audit.story import on_record, read_stories
        from remedy.report.audit import run_line

        path = home_of(inventory) / FILE_NAME
        runs = list(read_stories(path).values())
        names = set(on_record(inventory, runs, hosts))
        if hosts:
            runs = [story for story in runs if names & {*story.planned, *story.hosts}]
        if as_json:
            documents = [
                {
                    "run": story.run,
                    "time": story.time,
                    "mode": story.mode,
                    "by": story.by,
                    "changes": story.count,
                    "exit_code": story.exit_code,
                    "proved": story.proved,
                    "of": story.of or story.resumes,
                }
                for story in runs
            ]
            print_json(documents)
            return
        if not runs:
            out.print(f"no runs are recorded in {path}")
        for story in runs:
            out.print(run_line(story))
