"""``remedy audit``: check the journal, and hand it out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import Options, errors_shown, home_of, host_options, opened, print_json
from remedy.cli.terminal import out
from remedy.text import counted


@click.group()
def audit() -> None:
    """Check the journal of an inventory, and hand it out as a table."""


@audit.command()
@host_options
@click.option("--hosts", is_flag=True, help="Also compare it with what the hosts know of it.")
def verify(hosts: bool, **options: Any) -> None:
    """Check that no record of INVENTORY's journal was edited, removed, moved or cut off.

    With --hosts each host is asked which records it was told of when it was changed: a journal that was written
    anew as a whole does not have them. Exit code 1 where anything is wrong.
    """
    opts = Options(**options)
    with errors_shown(verbose=opts.verbose):
        from remedy.audit.journal import FILE_NAME, files_of, verify_chain

        path = home_of(opts.inventory) / FILE_NAME
        problems = []
        count, problem = verify_chain(path)
        if problem:
            problems.append(f"{path}: {problem}; {count} records before it are good")
        witnesses: dict[str, str] = {}
        if hosts:
            from remedy.runs.journal import compare_journal

            with opened(opts) as (session, _):
                witnesses = compare_journal(session)
            problems += [f"{host}: {said}" for host, said in witnesses.items() if said]
        if opts.as_json:
            print_json({"records": count, "problems": problems, "hosts": sorted(witnesses)})
        else:
            for line in problems:
                out.print(line, markup=False)
            if not problems and not files_of(path):
                out.print(f"there is no journal {path}: nothing was done yet", markup=False)
            elif not problems:
                told = f", and {counted(len(witnesses), 'host')} know no other" if witnesses else ""
                out.print(f"{path}: {count} records, the chain is whole{told}", markup=False)
    sys.exit(1 if problems else 0)


@audit.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    default="csv",
    show_default=True,
    help="A table for a spreadsheet, or the same as JSON.",
)
@click.option("--since", metavar="TIME", help="Runs that began then or later, such as 2026-01-31.")
@click.option("--until", metavar="TIME", help="Runs that began before that; a date means its end.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Only what was done there.")
def export(
    inventory: Path, form: str, since: str | None, until: str | None, hosts: tuple[str, ...]
) -> None:
    """Print what was done to the hosts of INVENTORY: one row for each change of each host.

    When, by whom, who agreed, what it was before and after, why, what became of it and whether it was proved.
    """
    with errors_shown():
        from remedy.audit.export import as_csv, moment, plans_of, rows, within
        from remedy.audit.journal import FILE_NAME
        from remedy.audit.story import read_stories

        home = home_of(inventory)
        begin = moment(since) if since else None
        end = moment(until, end=True) if until else None
        found = [s for s in read_stories(home / FILE_NAME).values() if within(s, begin, end)]
        table = rows(found, plans_of(home, found))
        chosen = [row for row in table if not hosts or row.host in hosts]
        if form == "json":
            print_json([asdict(row) for row in chosen])
        else:
            click.echo(as_csv(chosen), nl=False)
