"""Plain text and questions on a terminal; whatever is in them, every character shows.

Beside the consoles of ``remedy.cli.terminal`` nothing else writes to a terminal, and these load no rich.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

import click

from remedy.cli.interrupt import heeded
from remedy.errors import OutputError
from remedy.text import visible, visible_lines


@contextmanager
def written() -> Iterator[None]:
    """Tell an output that cannot be written from other errors; that its reader has gone is a signal's affair.

    Raises:
        OutputError: the disk is full, say.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.EIO):
            raise
        raise OutputError(
            f"standard output cannot be written: {error.strerror or error}",
            next_step="Make room there, or write elsewhere; remedy history INVENTORY lists the runs.",
        ) from error


def forget_unwritten() -> None:
    """Drop what standard output does not take: Python tries once more at its end, and exits with 120 then."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # Python says nothing of it
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print lines of text.

    Args:
        text: the lines.
        err: whether on standard error.
    """
    if err:
        click.echo(visible_lines(text), err=True)
        return
    with written():
        click.echo(visible_lines(text))


def print_json(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    print_text(as_text(document))


def print_text(text: str) -> None:
    """Print text that ends with a line feed on standard output, as it is."""
    with written():
        click.echo(text, nl=False)


def as_text(document: Any) -> str:
    """Return a JSON document as text that ends with a line feed."""
    text = json.dumps(document, indent=2, sort_keys=True)
    return text.replace("\x7f", "\\u007f") + "\n"  # the one control that json leaves as it is


def print_csv(table: str) -> None:
    """Print a table in CSV, whose cells are one line each."""
    with written():
        click.echo("\r\n".join(map(visible, table.split("\r\n"))), nl=False)


def confirmed(question: str) -> bool:
    """Ask a question on standard error that is answered with yes or no."""
    with heeded():
        try:
            return click.confirm(visible(question), err=True)
        except click.Abort:  # nobody typed the end of the line
            click.echo(err=True)
            raise


def password(name: str) -> str:
    """Ask for a password on standard error, without showing it."""
    # What is piped in shows on no screen; getpass would warn that it might.
    is_shown = not (has_terminal() or sys.stdin.isatty())
    with heeded():
        answer = str(click.prompt(visible(name), hide_input=not is_shown, err=True))
        if is_shown:  # nobody typed the end of the line
            click.echo(err=True)
    return answer


def has_terminal() -> bool:
    """Say whether the process has a terminal, whatever its streams are."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def traceback_lines(error: BaseException) -> list[str]:
    """Return the traceback of an error, whose own words are one line."""
    lines: list[str] = []
    for part in traceback.TracebackException.from_exception(error).format():
        text = part.removesuffix("\n")
        lines += map(visible, text.split("\n")) if text.startswith(" ") else [visible(text)]
    return lines


def show_bug(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    """Show the traceback of an error that nobody expected (``sys.excepthook``)."""
    click.echo("\n".join(traceback_lines(error)), err=True)


def install() -> None:
    """Have tracebacks shown by ``show_bug``, and characters that standard output cannot encode as escapes."""
    sys.excepthook = show_bug
    reconfigure = getattr(
        sys.stdout, "reconfigure", None
    )  # a test has a stream of another kind there
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
