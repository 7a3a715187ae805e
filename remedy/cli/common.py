"""What the commands share: options, opening an inventory, showing errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from remedy.errors import InventoryError, RemedyError
from remedy.spec import FILE_NAME

F = TypeVar("F", bound=Callable[..., Any])

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Options:
    """The options that every command on hosts has."""

    inventory: Path
    spec: Path | None
    limit: tuple[str, ...]
    as_json: bool
    verbose: bool
    ask_sudo_password: bool


def host_options(function: F) -> F:
    """Add the inventory argument and the common options to a command."""
    decorators = (
        click.argument("inventory", type=click.Path(path_type=Path)),
        click.option(
            "--spec",
            type=click.Path(path_type=Path),
            help="remedy.yaml to use; default: the one beside the inventory.",
        ),
        click.option(
            "--limit",
            multiple=True,
            metavar="HOSTS",
            help="Only these hosts: names, groups or patterns.",
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
            help="Tell each host's steps; show tracebacks of the inventory.",
        ),
        click.option(
            "-K", "--ask-sudo-password", is_flag=True, help="Ask once for the sudo password."
        ),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


class Session:
    """An opened inventory with its connections, and what the command shows while it works."""

    def __init__(self, options: Options) -> None:
        # Imported here: pyinfra takes half a second, and has to come before other users of sockets.
        from pydantic import SecretStr

        from remedy.inventory import load_inventory
        from remedy.plan import section_models
        from remedy.runs.pipeline import Pipeline
        from remedy.spec import load_spec
        from remedy.transport import Transport

        self.options = options
        self.console = err if options.as_json else out
        inventory = load_inventory(options.inventory)
        beside = options.inventory.resolve().parent / FILE_NAME
        spec_path = options.spec or (beside if beside.exists() else None)
        spec = load_spec(spec_path, section_models())
        self.hosts = inventory.select(options.limit)
        password = None
        if options.ask_sudo_password:
            password = SecretStr(click.prompt("sudo password", hide_input=True, err=True))
        self.stages: dict[str, tuple[str, str]] = {}
        transport = Transport(inventory, sudo_password=password, listener=self.told)
        self.pipeline = Pipeline(inventory, spec, transport, self.told)

    def told(self, event: Any) -> None:
        """Take a host's new stage: for the live table, or as a line where that is not shown."""
        self.stages[event.host] = (event.stage, event.detail)
        if self.options.verbose:
            err.print(Text(f"{event.host}: {event.stage} {event.detail}".rstrip(), style="dim"))

    def note(self, mode: str, event: str, *, run: str = "", **data: Any) -> None:
        """Record a command that changes no host; where that cannot be written, say so and go on.

        Args:
            mode: what the command does.
            event: what happened.
            run: its id; "" for a new one.
            data: what is to be known of it.
        """
        from remedy import __version__
        from remedy.apply.start import new_run_id, origin
        from remedy.audit import Journal

        common = {
            "by": origin().author,
            "inventory_digest": self.pipeline.inventory.digest,
            "spec_digest": self.pipeline.spec.digest,
            "tool_version": __version__,
        }
        with self.going_on():
            journal = Journal(self.pipeline.inventory.home, run=run or new_run_id(), mode=mode)
            journal.write(event, **{**common, **data})

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Say that what the block records could not be recorded, and go on: no host was changed."""
        try:
            yield
        except RemedyError as error:
            text = (
                f"not recorded: {error.message}; nothing was changed, so only the record is missing"
            )
            self.console.print(text, style="yellow", markup=False)

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show ``title`` and, on a terminal, the live table while the block runs."""
        self.stages.clear()
        if not err.is_terminal or self.options.verbose:
            err.print(Text(f"{title} ...", style="dim"))
            yield
            return
        err.print(Text(title, style="dim"))
        # Drawn a few times a second, not at each event: 2,000 hosts have 10,000 of those.
        with Live(console=err, transient=True, refresh_per_second=4, get_renderable=self._table):
            yield

    def _table(self) -> Table:
        from remedy.report.console import stage_table

        return stage_table(dict(self.stages))


def home_of(inventory: Path) -> Path:
    """Return the folder in which the journal of an inventory is, without reading the inventory.

    Raises:
        InventoryError: there is no such file.
    """
    if not inventory.is_file():
        raise InventoryError(
            f"{inventory}: no such inventory",
            next_step="Give the inventory whose journal is meant.",
        )
    return inventory.resolve().parent / ".remedy"


def print_json(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    click.echo(json.dumps(document, indent=2, sort_keys=True))


@contextmanager
def explained(*, verbose: bool = False) -> Iterator[None]:
    """Show an expected error as a message with its next step, and exit with its code."""
    try:
        yield
    except RemedyError as error:
        err.print(Text("error: ", style="bold red").append(error.message, style="default"))
        if error.next_step:
            err.print(Text(f"  {error.next_step}", style="cyan"))
        if verbose and error.__cause__ is not None:
            import traceback

            err.print("".join(traceback.format_exception(error.__cause__)), markup=False)
        sys.exit(error.exit_code)
