"""``remedy history``: the runs on the hosts of an inventory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from remedy.cli.common import errors_shown, home_of
from remedy.cli.document import print_document
from remedy.cli.number import Number
from remedy.cli.one_of import OneOf
from remedy.cli.pages import check_page, html_option, write_page
from remedy.cli.paths import FilePath
from remedy.cli.terminal import err, out
from remedy.files import full_path
from remedy.text import counted, quoted

if TYPE_CHECKING:
    from remedy.audit import Story

MODES = ("check", "plan", "apply", "rehearsal", "rollback", "verify", "unlock", "settle", "accept")
VERDICTS = {"proved": True, "not-proved": False, "none": None}


@click.command()
@click.argument("inventory", type=FilePath())
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOSTS",
    help="Only the runs that these hosts took part in, such as gpu[01-08].",
)
@click.option("-n", "number", type=Number(1), help="Only the last N runs.")
@click.option(
    "--command",
    "modes",
    multiple=True,
    type=OneOf(MODES),
    metavar="COMMAND",
    help=f"Only runs of this command; may be repeated: {', '.join(MODES)}.",
)
@click.option(
    "--verdict", type=OneOf(list(VERDICTS)), help="Only runs that ended with this verdict."
)
@click.option(
    "--since", metavar="TIME", help="Runs that began at or after TIME, such as 2026-01-31."
)
@click.option(
    "--until", metavar="TIME", help="Runs that began before TIME; a date means the end of that day."
)
@html_option("the fleet's months: runs, verdicts, who, and which hosts came back how often")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def history(
    inventory: Path,
    hosts: tuple[str, ...],
    number: int | None,
    modes: tuple[str, ...],
    verdict: str | None,
    since: str | None,
    until: str | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """List the runs of INVENTORY: when, what, by whom, and how they ended; the last one last."""
    with errors_shown():
        from remedy.audit.export import moment, within
        from remedy.audit.journal import FILE_NAME
        from remedy.audit.story import on_record, read_stories
        from remedy.report.audit import run_line
        from remedy.report.records import history_body

        check_page(html)
        path = home_of(inventory) / FILE_NAME
        begin = None if since is None else moment(since, "--since")
        end = None if until is None else moment(until, "--until", end=True)
        runs = every = list(read_stories(path).values())
        names = set(on_record(inventory, runs, hosts))
        if hosts:
            runs = [story for story in runs if names & {*story.planned, *story.hosts}]
        runs = [
            story for story in runs if within(story, begin, end) and _fits(story, modes, verdict)
        ]
        runs = runs[-number:] if number is not None else runs
        problems = () if html is None else _write(html, inventory, runs)
        for problem in problems:
            err.print(Text(problem, style="yellow"))
        if as_json:
            print_document("history", history_body(runs))
            return
        if not runs:
            out.print(
                f"no run fits, of {counted(len(every), 'run')} on record"
                if every
                else f"no run is on record in {path}; the first: remedy check {quoted(inventory)}"
            )
        for story in runs:
            out.print(run_line(story))


def _write(html: Path, inventory: Path, runs: list[Story]) -> tuple[str, ...]:
    """Write the page of these runs; return what is wrong with that."""
    from remedy.audit.export import plans_of
    from remedy.report.pages.fleet import fleet_page, repairs

    plans = plans_of(home_of(inventory), repairs(runs))
    return write_page(html, fleet_page(runs, full_path(inventory), plans))


def _fits(story: Story, modes: tuple[str, ...], verdict: str | None) -> bool:
    """Say whether a run is of one of these commands, if any, and ended with this verdict, if any."""
    of_command = not modes or story.mode in modes
    return of_command and (verdict is None or story.proved is VERDICTS[verdict])
