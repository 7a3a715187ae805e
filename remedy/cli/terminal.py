"""What a command shows while it works and when it has ended."""

from __future__ import annotations

import errno
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGPIPE
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from remedy.cli.document import print_document
from remedy.cli.interrupt import NAMES
from remedy.cli.plain import written
from remedy.cli.progress import StandardError
from remedy.files import STANDARD, name_of_output
from remedy.report.console import VisibleConsole
from remedy.text import counted, fold, folded, quoted

if TYPE_CHECKING:
    from rich.live import Live

    from remedy.errors import RemedyError
    from remedy.plan import Plan
    from remedy.runs.activity import Interruption
    from remedy.runs.outcome import RunOutcome
    from remedy.transport import HostEvent
    from remedy.verify.verdict import Rung


class StandardOutput(VisibleConsole):
    """Standard output; whoever reads it may have gone, which ends the command (``remedy.cli.interrupt``)."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; an output that cannot be written is an ``OutputError``."""
        with written():
            super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Leave it to the command, which may have to say what is known of hosts."""
        raise BrokenPipeError(errno.EPIPE, "standard output is closed")


_stderr = StandardError()
OVER = ("answered", "failed")
"""Steps at which a host has no more to do for now."""
out = StandardOutput()
err = VisibleConsole(file=cast(IO[str], _stderr))


class Terminal:
    """Shows the progress of a command, what it asks about, and its outcome.

    Args:
        as_json: whether standard output is for one JSON document, and everything else goes to standard error.
        verbose: whether each step of each host is a line.
        quiet: whether progress is not shown, and a result only where it is not good.
    """

    def __init__(
        self, *, as_json: bool = False, verbose: bool = False, quiet: bool = False
    ) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self.quiet = quiet
        self._withheld: list[RenderableType] = []
        self._notes: list[str] = []
        self._late_notes: Callable[[], Iterable[str]] = tuple
        self._console = err if as_json else out
        self._steps: dict[str, HostStep] = {}
        self._began = 0.0
        self._last_rung = ""
        self._shows_rungs = False
        self._title = ""

    def show(self, renderable: RenderableType) -> None:
        """Print text, with --quiet once it is needed; a bare string is never read as markup."""
        if self.quiet:
            self._withheld.append(renderable)
            return
        self._console.print(Text(renderable) if isinstance(renderable, str) else renderable)

    def make_room(self) -> None:
        """Write to standard error: standard output is for a document."""
        self._console = err

    def insist(self) -> None:
        """Print what --quiet held back, for a question or a bad end, and hold nothing back any more."""
        self.quiet = False
        for renderable in self._withheld:
            self.show(renderable)
        self._withheld.clear()

    def finish(
        self, outcome: RunOutcome, earlier_errors: Mapping[str, RemedyError] | None = None
    ) -> NoReturn:
        """Show how a command ended, and exit with its code.

        Args:
            outcome: how it ended.
            earlier_errors: by host, the error that was shown with the plan.
        """
        outcome = outcome.noting(after=self._take_late_notes())
        # Hosts with changes pending are not good, whatever the exit code is without --exit-code.
        if outcome.exit_code or outcome.warnings or "pending" in outcome.statuses.values():
            self.insist()
        if self.as_json:
            from remedy.report.document import run_document

            # On standard error they stood before the hosts were asked, unless --quiet kept them.
            print_document("run", run_document(outcome.noting(self._notes)))
        else:
            from remedy.report.outcome import render_outcome

            self.show(render_outcome(outcome, earlier_errors or {}))
        sys.exit(outcome.exit_code)

    def saved(self, plan: Plan, path: Path) -> None:
        """Show that a plan was written that has to be approved, and how; with --json it is the document."""
        # What is signed is a file.
        step = "" if path == STANDARD else f"; have it approved: remedy approve {quoted(path)}"
        self.show(f"written to {name_of_output(path)}{step}")
        if self.as_json:
            from remedy.report.document import plan_body

            print_document("plan", plan_body(plan))

    def selected(self, hosts: Sequence[str], number: int) -> None:
        """Show which hosts ``--limit`` selects, before anything is done with them.

        Args:
            hosts: their names.
            number: how many hosts the inventory has.
        """
        if self.quiet:
            return
        of = f"{len(hosts)} of {counted(number, 'host')}"
        err.print(Text(f"selected    {folded(hosts)}  ({of})", style="bold"))

    def noted(self, sentences: Iterable[str]) -> None:
        """Show what the user has to know of the inventory before its hosts are asked."""
        known = [*sentences]
        self._notes += known
        if not self.quiet:
            for sentence in known:
                err.print(Text("note        ", style="yellow").append(sentence, style="default"))

    def note_later(self, sentences: Callable[[], Iterable[str]]) -> None:
        """Have what is known of the way to hosts in the end among the warnings of the outcome."""
        self._late_notes = sentences

    def note_late(self) -> None:
        """Show it, where the command has no outcome."""
        self.noted(self._take_late_notes())

    def _take_late_notes(self) -> Iterable[str]:
        sentences, self._late_notes = self._late_notes(), tuple
        return sentences

    def chosen(self, words: str) -> None:
        """Show that not all remedies decide."""
        if not self.quiet:
            err.print(Text(f"remedies    {words}", style="bold"))

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show ``title`` and, on a terminal, the live table while the block runs."""
        self._steps.clear()
        self._title, self._began, self._last_rung = title, time.monotonic(), ""
        with _stderr.hurried():
            if self.quiet:
                yield
            elif not err.is_terminal or self.verbose:
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
        self._steps[event.host] = HostStep(event.stage, time.monotonic(), event.seconds)
        if self.verbose:
            err.print(Text(f"{event.host}: {event.stage} {event.detail}".rstrip(), style="dim"))

    def interrupted(self, number: int, report: Interruption) -> None:
        """Show that a signal ended the command, what is known, and how to go on."""
        if number == SIGPIPE and not report.commands:
            return  # as people expect of `remedy history | head`
        stage = f" while: {self._title}" if self._title else ""
        err.print(
            Text("interrupted: ", style="bold red").append(
                f"{NAMES[number]}{stage}", style="default"
            )
        )
        self.known(report)

    def known(self, report: Interruption) -> None:
        """Show what is known of hosts, and how to go on."""
        for line in report.lines:
            err.print(Text(f"  {line}"))
        for purpose, command in report.commands:
            err.print(Text(f"  {purpose:<22}", style="dim").append(command, style="cyan"))

    def show_rungs(self) -> None:
        """Have each rung of the verification shown as it is climbed."""
        self._shows_rungs = True

    def rung(self, rung: Rung) -> None:
        """Show a rung, where rungs are shown; the live table names the last one."""
        self._last_rung = rung.name
        if self._shows_rungs and not self.quiet:
            from remedy.report.ladder import render_rung

            err.print(render_rung(rung))

    def _table(self) -> Table:
        now = time.monotonic()
        return step_table(dict(self._steps), now, now - self._began, self._last_rung)


class HostStep(NamedTuple):
    """The step that a host is at, since when (monotonic), and in how many seconds it has to be over."""

    name: str
    since: float
    seconds: float | None = None


def step_table(steps: Mapping[str, HostStep], now: float, elapsed: float, phase: str = "") -> Table:
    """Return the live table: how long the stage takes, and how many hosts are at each step for how long.

    Args:
        steps: of each host.
        now: the time by the clock of the steps.
        elapsed: seconds since the stage began.
        phase: the part of the stage that ended last; "" for none.
    """
    table = Table.grid(padding=(0, 2))
    by_step: dict[str, list[str]] = defaultdict(list)
    for host, current in steps.items():
        by_step[current.name].append(host)
    ended = sum(len(by_step[step]) for step in OVER if step in by_step)
    after = f", after {phase}" if phase else ""
    count = f"{ended} of {counted(len(steps), 'host')}"
    table.add_row(Text(f"{elapsed:.0f} s{after}", style="bold"), "", count)
    for step, names in by_step.items():
        line = Text(step, style="cyan")
        if step not in OVER:
            first = min((steps[name] for name in names), key=lambda step: step.since)
            limit = f" of {first.seconds:.0f} s" if first.seconds else " s"
            line.append(f" {now - first.since:.0f}{limit}", "dim")
        table.add_row(line, str(len(names)), Text(fold(names), overflow="ellipsis"))
    return table
