"""What a command shows while it works and when it has ended."""

from __future__ import annotations

import errno
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from signal import SIGPIPE
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from remedy.cli.interrupt import NAMES
from remedy.cli.progress import StandardError
from remedy.text import counted, fold

if TYPE_CHECKING:
    from rich.live import Live

    from remedy.runs.activity import Interruption
    from remedy.runs.outcome import RunOutcome
    from remedy.transport import HostEvent
    from remedy.verify.verdict import Rung


class StandardOutput(Console):
    """Standard output; whoever reads it may have gone, which ends the command (``remedy.cli.interrupt``)."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command, which may have to say what is known of hosts."""
        raise BrokenPipeError(errno.EPIPE, "standard output is closed")


_stderr = StandardError()
out = StandardOutput(highlight=False, soft_wrap=True)
err = Console(file=cast(IO[str], _stderr), highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    click.echo(json.dumps(document, indent=2, sort_keys=True))


class Terminal:
    """Shows the progress of a command, what it asks about, and its outcome.

    Args:
        as_json: whether standard output is for one JSON document, and everything else goes to standard error.
        verbose: whether each step of each host is a line.
    """

    def __init__(self, *, as_json: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self._console = err if as_json else out
        self._steps: dict[str, str] = {}
        self._shows_rungs = False
        self._title = ""

    def show(self, renderable: RenderableType) -> None:
        """Print text; a bare string is never read as markup."""
        self._console.print(Text(renderable) if isinstance(renderable, str) else renderable)

    def finish(self, outcome: RunOutcome) -> NoReturn:
        """Show how a command ended, and exit with its code."""
        if self.as_json:
            from remedy.report.document import run_document

            print_json(run_document(outcome))
        else:
            from remedy.report.outcome import render_outcome

            self.show(render_outcome(outcome))
        sys.exit(outcome.exit_code)

    def selected(self, hosts: Sequence[str], number: int) -> None:
        """Show which hosts ``--limit`` selects, before anything is done with them.

        Args:
            hosts: their names.
            number: how many hosts the inventory has.
        """
        of = f"{len(hosts)} of {counted(number, 'host')}"
        err.print(Text(f"selected    {fold(hosts)}  ({of})", style="bold"))

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show ``title`` and, on a terminal, the live table while the block runs."""
        self._steps.clear()
        self._title = title
        with _stderr.hurried():
            if not err.is_terminal or self.verbose:
                err.print(Text(f"{title} ...", style="dim"))
                yield
            else:
                err.print(Text(title, style="dim"))
                with self._live():
                    yield
        self._title = ""

    def _live(self) -> Live:
        """Return the live table; it is drawn a few times a second, as 2,000 hosts have 10,000 events."""
        from rich.live import Live

        return Live(
            console=err,
            transient=True,
            refresh_per_second=4,
            get_renderable=self._table,
            redirect_stderr=False,  # the console itself writes there
        )

    def host(self, event: HostEvent) -> None:
        """Take a host's next step: for the live table, or as a line where that is not shown."""
        self._steps[event.host] = event.stage
        if self.verbose:
            err.print(Text(f"{event.host}: {event.stage} {event.detail}".rstrip(), style="dim"))

    def interrupted(self, number: int, report: Interruption) -> None:
        """Show that a signal ended the command, what is known, and how to go on."""
        if number == SIGPIPE and not report.commands:
            return  # as people expect of `remedy history | head`
        stage = f" while: {self._title}" if self._title else ""
        signal = NAMES[number]
        err.print(
            Text("interrupted: ", style="bold red").append(f"{signal}{stage}", style="default")
        )
        for line in report.lines:
            err.print(Text(f"  {line}"))
        for purpose, command in report.commands:
            err.print(Text(f"  {purpose:<22}", style="dim").append(command, style="cyan"))

    def show_rungs(self) -> None:
        """Have each rung of the verification shown as it is climbed."""
        self._shows_rungs = True

    def rung(self, rung: Rung) -> None:
        """Show a rung, where rungs are shown."""
        if self._shows_rungs:
            from remedy.report.ladder import render_rung

            err.print(render_rung(rung))

    def _table(self) -> Table:
        return step_table(dict(self._steps))


def step_table(steps: dict[str, str]) -> Table:
    """Return the live table: how many hosts are at each step, and which while they are few."""
    table = Table.grid(padding=(0, 2))
    by_step: dict[str, list[str]] = defaultdict(list)
    for name, step in steps.items():
        by_step[step].append(name)
    for step, names in by_step.items():
        hosts = Text(fold(names), overflow="ellipsis")
        table.add_row(Text(step, style="cyan"), str(len(names)), hosts)
    return table
