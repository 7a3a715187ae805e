"""``remedy diagnose``: from the error text to the cause, the evidence and the remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remedy.cli.common import Options, errors_shown, opened, refuse_both
from remedy.cli.document import print_document
from remedy.cli.next_step import to_copy, typed
from remedy.cli.paths import FilePath
from remedy.cli.terminal import err, out
from remedy.text import amount, counted

if TYPE_CHECKING:
    from remedy.diagnose.diagnosis import Diagnosis, Explanation

FOUND, UNKNOWN, NO_REMEDY = 0, 1, 3
# Below these, a second or two, a bar would be gone before it is seen.
LONG, MANY = 8 << 20, 2000


@click.command()
@click.argument("logs", nargs=-1, required=True, type=FilePath(allow_dash=True))
@click.option(
    "--inventory",
    type=FilePath(),
    help="Probe these hosts too: confirm or refute each candidate from their real state.",
)
@click.option("--limit", multiple=True, metavar="HOSTS", help="Only these hosts of the inventory.")
@click.option("--spec", type=FilePath(), help="remedy.yaml to use.")
@click.option("--all", "show_all", is_flag=True, help="Every candidate, with all its lines.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout, the rest on stderr."
)
@click.option("-K", "--ask-sudo-password", is_flag=True, help="Ask once for the sudo password.")
@click.option("-v", "--verbose", is_flag=True, help="Show each step of each host.")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Show no progress, and a result only where a run failed: the exit code says the rest.",
)
def diagnose(
    logs: tuple[Path, ...],
    inventory: Path | None,
    limit: tuple[str, ...],
    spec: Path | None,
    show_all: bool,
    as_json: bool,
    ask_sudo_password: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Name the cause of a failed run from its LOGS: files, folders of per-rank logs, - for standard input.

    Compressed logs (.gz, .bz2, .xz, .zst) are read as they are. Give the logs of all ranks together: the first
    failure decides, and most ranks only print its consequences. With --inventory all remedies are asked, and
    there is no --only or --skip: a cause whose remedy is left out would seem refuted.

    \b
    Exit codes: 0 a cause was found (or nothing is wrong)
                3 a cause that no remedy cures or reports
                1 unknown, or no failure seen and none ruled out
    """
    with errors_shown(verbose=verbose):
        from remedy.errors import UsageError

        if inventory is None and (limit or spec or ask_sudo_password):
            raise UsageError(
                "--limit, --spec and --ask-sudo-password need the hosts of an inventory",
                next_step="Add --inventory, or leave them out.",
            )
        refuse_both(quiet=quiet, verbose=verbose)
        diagnosis = _read(logs, quiet=quiet)
        if inventory is not None:
            options = Options(inventory, spec, limit, as_json, verbose, ask_sudo_password, quiet)
            explanation = _with_hosts(diagnosis, options)
        else:
            from remedy.diagnose.cures import explain_alone

            explanation = explain_alone(diagnosis, logs)
        command = explanation.command and to_copy(explanation.command)
        explanation = explanation.model_copy(update={"command": command})
        if as_json:
            body = diagnosis.document(remedy=explanation.remedy, command=explanation.command)
            body["look"] = explanation.look
            body["confirmations"] = [
                confirmation.model_dump(mode="json") for confirmation in explanation.confirmations
            ]
            print_document("diagnosis", body)
        elif not quiet or not diagnosis.is_fine:
            from remedy.report.diagnosis import render_diagnosis

            # On a terminal sentences are folded, and a command to copy stays one line however long.
            rendered = render_diagnosis(explanation, everything=show_all, inventory=typed())
            out.print(rendered, soft_wrap=not out.is_terminal, crop=False)
    sys.exit(exit_code(explanation.diagnosis, explanation.remedy))


def _with_hosts(diagnosis: Diagnosis, options: Options) -> Explanation:
    """Explain a diagnosis by what the hosts of an inventory are now."""
    with opened(options) as (session, _):
        from remedy.runs.diagnose import with_hosts

        return with_hosts(diagnosis, session)


def exit_code(diagnosis: Diagnosis, remedy: str | None) -> int:
    """Return the exit code of a diagnosis: 0 a cause (or healthy), 3 one without a remedy, 1 unknown.

    What is only possibly healthy is unknown to whoever asks by the exit code.

    Args:
        diagnosis: of the logs.
        remedy: the remedy that cures or reports its cause; None for no such remedy.
    """
    if diagnosis.label == "unknown" or diagnosis.is_open:
        return UNKNOWN
    if diagnosis.is_fine or remedy is not None:
        return FOUND
    return NO_REMEDY


def _read(logs: tuple[Path, ...], *, quiet: bool) -> Diagnosis:
    """Diagnose the logs; where that takes a while, with a bar on a terminal, and a line elsewhere."""
    from remedy.diagnose.logs import diagnose_sources
    from remedy.diagnose.scanner.reader import Source, sources

    files = sources(logs)
    total = sum(file.size for file in files)
    if quiet or (total < LONG and len(files) < MANY):
        return diagnose_sources(files)
    title = f"Reading {counted(len(files), 'log')}"
    if not err.is_terminal:
        err.print(f"{title}, {amount(total)} ...")
        return diagnose_sources(files)
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(title, total=total)
        before: dict[str, int] = {}

        def advance(source: Source, position: int) -> None:
            progress.advance(task, position - before.get(source.name, 0))
            before[source.name] = position

        return diagnose_sources(files, progress=advance)
