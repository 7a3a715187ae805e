"""Options and errors that the commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from signal import SIGPIPE
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remedy.cli import document, names, plain
from remedy.cli.interrupt import received
from remedy.cli.next_step import to_copy
from remedy.cli.paths import FilePath
from remedy.errors import InventoryError, OutputError, PlanFileError, RemedyError, UsageError
from remedy.files import STANDARD, begins_with, full_path
from remedy.text import quoted

if TYPE_CHECKING:
    from pydantic import SecretStr

    from remedy.cli.terminal import Terminal
    from remedy.runs.activity import Interruption
    from remedy.runs.session import Session
    from remedy.transport import HostEvent
    from remedy.verify.verdict import Rung

F = TypeVar("F", bound=Callable[..., Any])
TERMINAL = "remedy.cli.terminal"


@dataclass(frozen=True)
class Options:
    """The options of every command on hosts."""

    inventory: Path
    spec: Path | None = None
    limit: tuple[str, ...] = ()
    as_json: bool = False
    verbose: bool = False
    ask_sudo_password: bool = False
    quiet: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    strict: bool = False


def host_options(function: F) -> F:
    """Add the inventory argument and the common options to a command."""
    decorators = (
        click.argument("inventory", type=FilePath()),
        click.option(
            "--spec",
            type=FilePath(),
            help="remedy.yaml to use; default: the one beside the inventory.",
        ),
        click.option(
            "--limit",
            multiple=True,
            metavar="HOSTS",
            help="Only these hosts: gpu[01-08], gpu*, @group, ^file, combined by , ! & ^.",
        ),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="One JSON document on stdout, the rest on stderr.",
        ),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            help="Show each step of each host, and tracebacks of the inventory.",
        ),
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            help="Show no progress, and a result only where it is not good: the exit code says the rest.",
        ),
        click.option(
            "-K", "--ask-sudo-password", is_flag=True, help="Ask once for the sudo password."
        ),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def remedy_options(function: F) -> F:
    """Add to a command that plans the options that choose remedies, and that say which findings count."""
    return choice_options(
        only="Decide by these remedies alone, such as hostname,limits.",
        skip="Leave these remedies out.",
    )(STRICT_OPTION(function))


def choice_options(*, only: str, skip: str) -> Callable[[F], F]:
    """Return what adds the options that choose remedies.

    Args:
        only: what the first means for the command, for its help; ``skip``: what the second does.
    """

    def add(function: F) -> F:
        for name, text in (("--skip", skip), ("--only", only)):
            function = click.option(name, multiple=True, metavar="REMEDY", help=text)(function)
        return function

    return add


STRICT_OPTION = click.option(
    "--strict", is_flag=True, help="Exit with 1 where a remedy only reports something, too."
)


COMMANDS_OPTION = click.option(
    "--commands", is_flag=True, help="Show every command and file of the plan whole."
)


def reports(options: Options) -> tuple[str, ...]:
    """Return the modules that show how a command on hosts ended."""
    if options.as_json:
        return ("remedy.report.document",)
    return ("remedy.report.proposal", "remedy.report.outcome")


class ProgressShown:
    """Progress on a terminal, which is there once something is to be shown: hosts do not wait for its import.

    Args:
        options: of the command.
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    @cached_property
    def terminal(self) -> Terminal:
        """What shows it."""
        from remedy.cli.terminal import Terminal

        chosen = self._options
        return Terminal(as_json=chosen.as_json, verbose=chosen.verbose, quiet=chosen.quiet)

    def stage(self, title: str) -> AbstractContextManager[None]:
        """Show a stage."""
        return self.terminal.stage(title)

    def host(self, event: HostEvent) -> None:
        """Take the next step of one host."""
        self.terminal.host(event)

    def rung(self, rung: Rung) -> None:
        """Take a rung of the verification."""
        self.terminal.rung(rung)


def _sudo_password(options: Options) -> SecretStr | None:
    """Ask for the password where the command line says so."""
    if not options.ask_sudo_password:
        return None
    from pydantic import SecretStr

    return SecretStr(plain.password("sudo password"))


def refuse_both(*, quiet: bool, verbose: bool) -> None:
    """Refuse two options of which each means the opposite of the other."""
    if quiet and verbose:
        raise UsageError(
            "--quiet and --verbose exclude each other", next_step="Leave one of them out."
        )


def _refuse_swapped(inventory: Path) -> None:
    """Refuse an inventory in the place of a run, and a run in that of the inventory."""
    context = click.get_current_context(silent=True)
    run = None if context is None else context.params.get("run")
    if (
        context is not None
        and isinstance(run, str)
        and Path(run).is_file()
        and not inventory.exists()
    ):
        raise UsageError(
            f"{run} is no run: the run is typed first",
            next_step=f"{context.command_path} {quoted(inventory)} {quoted(run)}",
        )


@contextmanager
def opened(
    options: Options,
    *modules: str,
    later: Sequence[str] = (),
    first: Callable[[], object] | None = None,
    **settings: dict[str, object],
) -> Iterator[tuple[Session, Terminal]]:
    """Open the inventory of a command, and show an expected error in place of a traceback.

    Args:
        options: of the command.
        modules: what a command works with that reads its hosts in any case: imported while it connects to them.
        later: what it works with once they have answered: imported while they are at work.
        first: raises what is wrong with the command's other options, before anything connects.
        settings: by section of the spec, what the command line sets in its place; None leaves a setting alone.
    """
    progress = ProgressShown(options)
    document.about(inventory=options.inventory)
    with errors_shown(verbose=options.verbose):
        refuse_both(quiet=options.quiet, verbose=options.verbose)
        _refuse_swapped(options.inventory)
        if first is not None:
            first()
        # pyinfra has to be loaded before other users of sockets.
        from remedy.runs.session import open_session

        cooperate()
        session = open_session(
            options.inventory,
            spec=options.spec,
            limit=options.limit,
            settings=settings,
            sudo_password=_sudo_password(options),
            progress=progress,
            modules=(*modules, TERMINAL) if modules else (),
            later=later,
            only=options.only,
            skip=options.skip,
            strict=options.strict,
        )
        names.keep(session.inventory)
        terminal = progress.terminal
        if options.limit:
            terminal.selected(session.hosts, len(session.inventory.names))
        terminal.noted(session.transport.notes)
        transport = session.transport
        terminal.note_later(lambda: transport.warnings)
        if session.choice:
            terminal.chosen(session.choice.words)
        with _end_explained(session, terminal, options.inventory):
            try:
                yield session, terminal
            finally:
                terminal.note_late()


def check_output(
    output: Path | None, *, as_json: bool = False, kind: str = "plan", start: bytes = b"{"
) -> None:
    """Refuse a file that cannot be written, before the hosts are asked for what is to go there.

    Args:
        output: the file; ``-`` for standard output, None for none.
        as_json: whether the command writes a document to standard output.
        kind: the noun for what goes there.
        start: how such files begin: one of a different kind, such as the inventory, is not replaced.

    Raises:
        UsageError: the document of ``--json`` would be there too, there is no such folder, a file of another
            kind is there, or nothing can be written there.
    """
    if output == STANDARD and as_json:
        raise UsageError(
            "--json and -o - both write to standard output", next_step="Give a file with -o."
        )
    if output is None or output == STANDARD:
        return
    folder = output.resolve().parent
    if output.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif output.exists() and not output.is_file():
        return  # a pipe, /dev/stdout
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"no write access to {folder}"
    elif output.exists() and os.access(output, os.R_OK) and not begins_with(output, start):
        raise UsageError(
            f"{output} is there already, and is no {kind}",
            next_step="Give a different name, or remove the file first; no host was asked anything.",
        )
    else:
        return
    raise UsageError(
        f"{output} cannot be written: {reason}",
        next_step="Give a file in a folder that is there and can be written; no host was asked anything.",
    )


def make_room_for(output: Path | None, terminal: Terminal) -> None:
    """Leave standard output to a plan that is written there (``-o -``); raises as ``check_output``."""
    check_output(output, as_json=terminal.as_json)
    if output == STANDARD:
        terminal.make_room()


def cooperate() -> None:
    """Have signals end what goes on side by side; whatever connects to hosts calls it first."""
    from remedy.cli.interrupt import deliveries
    from remedy.transport.cooperative import hand_on

    deliveries[:] = [hand_on]


@contextmanager
def _end_explained(session: Session, terminal: Terminal, inventory: Path) -> Iterator[None]:
    """Record a run that a signal ends, and show what is known of its hosts and how to go on."""
    from remedy.cli.interrupt import NAMES, leave, number_of

    try:
        yield
    except BaseException as stop:
        number = number_of(stop)
        document.about(run=session.activity.run)
        if number is not None:
            report = _report(session, inventory, NAMES[number], 128 + number)
            terminal.interrupted(number, report)
            if number != SIGPIPE:
                document.print_error(
                    f"interrupted: {NAMES[number]}",
                    128 + number,
                    facts=report.lines,
                    commands=report.commands,
                )
            leave(number)
        if isinstance(stop, OutputError):
            terminal.known(_report(session, inventory, stop.message, stop.exit_code))
        raise


def _report(session: Session, inventory: Path, reason: str, code: int) -> Interruption:
    """Record that a run came to no end of its own, and return what its user has to know."""
    from remedy.runs.activity import interrupted

    return interrupted(
        session.activity,
        signal=reason,
        code=code,
        inventory=quoted(inventory),
        guard_seconds=session.spec.apply.confirm_seconds,
    )


def home_of(inventory: Path) -> Path:
    """Return the folder in which the journal of an inventory is, without reading the inventory.

    Raises:
        InventoryError: there is no such file.
    """
    document.about(inventory=inventory)
    if not inventory.is_file():
        raise InventoryError(
            f"{inventory}: no such inventory in {full_path(inventory.parent)}",
            next_step="Give the inventory that the journal is of, with its folder: FOLDER/inventory.py",
        )
    return inventory.resolve().parent / ".remedy"


@contextmanager
def errors_shown(*, verbose: bool = False) -> Iterator[None]:
    """Show an expected error as a message with its next step, and exit with its code."""
    try:
        yield
    except RemedyError as error:
        if received() is not None:
            raise  # a signal, of which something below made an error of its own
        from rich.text import Text

        from remedy.cli.terminal import err

        named = error.inventory if isinstance(error, PlanFileError) else ""
        for step, parts in groupby(error.parts or (error,), key=lambda part: part.next_step):
            for part in parts:
                err.print(Text("error: ", style="bold red").append(part.message, style="default"))
            if step:
                err.print(Text(f"  {to_copy(step, named)}", style="cyan"))
        document.print_error(error.message, error.exit_code, to_copy(error.next_step, named))
        if verbose and error.__cause__ is not None:
            for line in plain.traceback_lines(error.__cause__):
                err.print(line)
        sys.exit(error.exit_code)
