"""Plain text and questions on a terminal; whatever is in them, every character shows.

Beside the consoles of ``remedy.cli.terminal`` nothing else writes to a terminal, and these load no rich.
"""

from __future__ import annotations

import json
import sys
import traceback
from types import TracebackType
from typing import Any

import click

from remedy.text import visible, visible_lines


def say(text: str, *, err: bool = False) -> None:
    """Print lines of text.

    Args:
        text: the lines.
        err: whether on standard error.
    """
    click.echo(visible_lines(text), err=err)


def print_json(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    text = json.dumps(document, indent=2, sort_keys=True)
    click.echo(text.replace("\x7f", "\\u007f"))  # the one control that json leaves as it is


def print_csv(table: str) -> None:
    """Print a table in CSV, whose cells are one line each."""
    click.echo("\r\n".join(map(visible, table.split("\r\n"))), nl=False)


def confirmed(question: str) -> bool:
    """Ask a question on standard error that is answered with yes or no."""
    return click.confirm(visible(question), err=True)


def password(name: str) -> str:
    """Ask for a password on standard error, without showing it."""
    return str(click.prompt(visible(name), hide_input=True, err=True))


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
