"""``remedy audit``: check the journal, and export it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import Options, errors_shown, home_of, host_options, opened
from remedy.cli.consent import YES_OPTION, ask
from remedy.cli.document import print_document
from remedy.cli.one_of import OneOf
from remedy.cli.paths import FilePath
from remedy.cli.plain import print_csv
from remedy.cli.terminal import err, out
from remedy.errors import RemedyError, UsageError
from remedy.text import counted

_REPLACED = (
    "a different machine answers there now than the one that run {} changed: it keeps no record"
)


@click.group()
def audit() -> None:
    """Check the journal of an inventory, and export it as a table."""


@audit.command()
@host_options
@click.option("--hosts", is_flag=True, help="Also compare it with the records that the hosts keep.")
def verify(hosts: bool, **options: Any) -> None:
    """Check that no record of INVENTORY's journal was edited, removed, moved or cut off.

    With --hosts it is also compared with the records that each host has kept since it was changed: a journal
    that was rewritten as a whole does not have them. Exit code 1 where anything is wrong, else 5 where a host
    could not be reached, so that it was not compared.
    """
    opts = Options(**options)
    with errors_shown(verbose=opts.verbose):
        if opts.limit and not hosts:
            raise UsageError(
                "--limit chooses the hosts whose records are compared, and no host is asked",
                next_step="Add --hosts, or leave --limit out: the journal is checked as a whole.",
            )
        from remedy.audit.journal import FILE_NAME, files_of, verify_chain

        path = home_of(opts.inventory) / FILE_NAME
        count, problem = verify_chain(path)
        of_chain = (
            [f"{path}: {problem}; {counted(count, 'record')} before it valid"] if problem else []
        )
        witnesses, errors, replaced = _compared(opts) if hosts else ({}, {}, {})
        known = [(host, text) for host, text in witnesses.items() if text]
        code = _code(errors, failed=bool(of_chain) or any(host not in errors for host, _ in known))
        if opts.as_json:
            problems = [*of_chain, *(f"{host}: {text}" for host, text in known)]
            body = {
                "records": count,
                "problems": problems,
                "hosts": sorted(witnesses),
                "replaced": sorted(replaced),
            }
            print_document("audit", {**body, "exit_code": code})
            sys.exit(code)
        differing = _folded((host, text) for host, text in known if host not in errors)
        others = _folded((host, _REPLACED.format(run)) for host, run in replaced.items())
        for line in [*of_chain, *differing, *others]:
            out.print(line)
        if not (of_chain or files_of(path)):
            out.print(f"no journal {path}: nothing was recorded yet")
        elif not of_chain:
            agreeing = sum(not text and host not in replaced for host, text in witnesses.items())
            out.print(
                f"{path}: {counted(count, 'record')}, the chain is whole{_agreement(agreeing)}"
            )
        _print_errors(errors, out.print)
    sys.exit(code)


def _compared(
    opts: Options,
) -> tuple[Mapping[str, str], Mapping[str, RemedyError], Mapping[str, str]]:
    """Return what hosts remember otherwise, "" for nothing, why others were not asked, and who was replaced."""
    from remedy.runs.journal import compare_journal

    with opened(opts) as (session, _):
        compared = compare_journal(session)
    return compared.words, compared.errors, compared.replaced


def _agreement(hosts: int) -> str:
    return f"; {counted(hosts, 'host')} {'agrees' if hosts == 1 else 'agree'}" if hosts else ""


def _code(errors: Mapping[str, RemedyError], *, failed: bool = False) -> int:
    """Return the exit code of a command: of what is wrong, and of hosts that could not be asked."""
    if not (errors or failed):
        return 0
    from remedy.runs.outcome import FAILED, most_severe

    return most_severe([FAILED] * failed + [error.exit_code for error in errors.values()])


def _print_errors(errors: Mapping[str, RemedyError], show: Callable[[Any], None]) -> None:
    """Print why hosts could not be asked, each reason once with its next step."""
    if errors:
        from remedy.report.failures import error_lines

        for line in error_lines(errors):
            show(line)


def _folded(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is wrong on hosts, each text once with its hosts."""
    from remedy.sentences import by_sentence

    return [f"{hosts}: {text}" for hosts, text in by_sentence(texts)]


@audit.command()
@host_options
@YES_OPTION
def accept(yes: bool, **options: Any) -> None:
    """Continue INVENTORY's journal as it is, where hosts remember a different one, or more of it.

    For a journal that was restarted on purpose, or whose end is lost. What the hosts remember is shown, asked
    about, and recorded; they keep it, and `remedy audit verify --hosts` still names it. The exit code is 5
    where a host could not be reached, so that it is not known what it remembers.
    """
    opts = Options(**options)
    with errors_shown(verbose=opts.verbose):
        from remedy.runs.journal import accept_journal
        from remedy.runs.probe import probe

        with opened(opts) as (session, _):
            result = probe(session)
            show = err.print if opts.as_json else out.print
            for line in _folded(result.forgotten.items()):
                show(line)
            # What a host that is about to change remembers is known all the same.
            errors = {n: e for n, e in result.errors.items() if n not in result.unsettled}
            _print_errors(errors, show)
            if result.forgotten:
                ask(f"Go on without that on {counted(len(result.forgotten), 'host')}?", yes=yes)
                unkept = accept_journal(session, result.forgotten)
                _print_errors(unkept, show)
                errors |= unkept
            elif result.fleet.states or result.unsettled:
                show("no host that was read remembers more than the journal has")
            if opts.as_json:
                messages = {name: error.message for name, error in errors.items()}
                body = {"forgotten": dict(result.forgotten), "errors": messages}
                print_document("accept", {**body, "exit_code": _code(errors)})
    sys.exit(_code(errors))


@audit.command()
@click.argument("inventory", type=FilePath())
@click.option(
    "--format",
    "form",
    type=OneOf(["csv", "json"]),
    default="csv",
    show_default=True,
    help="A table for a spreadsheet, or the same as JSON.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--since", metavar="TIME", help="Runs that began at or after TIME, such as 2026-01-31."
)
@click.option(
    "--until", metavar="TIME", help="Runs that began before TIME; a date means the end of that day."
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOSTS",
    help="Only changes on these hosts, such as gpu[01-08].",
)
def export(
    inventory: Path,
    form: str,
    as_json: bool,
    since: str | None,
    until: str | None,
    hosts: tuple[str, ...],
) -> None:
    """Print the changes made on the hosts of INVENTORY: one row for each change of each host.

    When, by whom, approved by whom, the state before and after, why, the result, and whether it was proved.
    """
    with errors_shown():
        from remedy.audit.export import as_csv, moment, plans_of, rows, within
        from remedy.audit.journal import FILE_NAME
        from remedy.audit.story import on_record, read_stories

        home = home_of(inventory)
        begin = None if since is None else moment(since, "--since")
        end = None if until is None else moment(until, "--until", end=True)
        stories = read_stories(home / FILE_NAME).values()
        names = on_record(inventory, stories, hosts)
        runs = [story for story in stories if within(story, begin, end)]
        table = rows(runs, plans_of(home, runs))
        chosen = [row for row in table if not hosts or row.host in names]
        if as_json or form == "json":
            print_document("export", {"rows": [asdict(row) for row in chosen]})
        else:
            print_csv(as_csv(chosen))
