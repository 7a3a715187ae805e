"""The option ``--html`` of commands whose result is worth keeping as a page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remedy.cli import document
from remedy.cli.common import check_output
from remedy.cli.paths import FilePath
from remedy.cli.plain import say
from remedy.errors import UsageError
from remedy.files import STANDARD, write_output

if TYPE_CHECKING:
    from remedy.runs.outcome import RunOutcome

F = TypeVar("F", bound=Callable[..., Any])


def html_option(words: str) -> Callable[[F], F]:
    """Return the option as a decorator; a command receives it as ``html``.

    Args:
        words: what the page shows, for the help.
    """
    return click.option(
        "--html",
        type=FilePath(dir_okay=False),
        metavar="FILE",
        help=f"Also write a page to FILE: {words}.",
    )


def check_page(html: Path | None, *others: Path | None) -> None:
    """Refuse a page that cannot be written, before any host is asked.

    Args:
        html: the file; None for no page.
        others: files that the command writes as well.

    Raises:
        UsageError: it is standard output, another file of the command, or cannot be written.
    """
    if html is None:
        return
    if html == STANDARD:
        raise UsageError("a page is not written to standard output", next_step="Name a file.")
    if any(path is not None and path.resolve() == html.resolve() for path in others):
        raise UsageError(
            f"{html} would be written twice: once as a page", next_step="Give two names."
        )
    check_output(html, kind="page", start=b"<!doctype html")


def write_page(html: Path, text: str) -> tuple[str, ...]:
    """Write a page; return what is wrong with that: a result is not lost for it.

    The last line of the command names the page, unless it is to be quiet.
    """
    try:
        write_output(html, text)
    except OSError as error:
        return (f"the page {html} cannot be written: {error.strerror}",)
    context = click.get_current_context(silent=True)
    if context is not None and not context.params.get("quiet"):
        context.call_on_close(partial(_name, html))
    return ()


def _name(html: Path) -> None:
    with suppress(OSError):  # nobody reads it
        say(f"page        {html}", err=True)


def with_page(outcome: RunOutcome, html: Path | None) -> RunOutcome:
    """Write the page of a run, where one is wanted; return the outcome with what is wrong with that."""
    if html is None:
        return outcome
    from remedy.apply.start import origin
    from remedy.report.pages.run import Circumstances, run_page

    text = run_page(outcome, Circumstances(document.began(), origin().author))
    return replace(outcome, warnings=(*outcome.warnings, *write_page(html, text)))
