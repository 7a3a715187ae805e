"""``remedy verify``: prove the fleet as it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import Options, check_output, host_options, opened
from remedy.cli.proof import proof_options


def _write(path: Path, text: str) -> tuple[str, ...]:
    """Write the page; return what is wrong with that: a verdict is not lost for it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return (f"the page {path} cannot be written: {error.strerror}",)
    return ()


@click.command()
@host_options
@proof_options
@click.option(
    "--incremental",
    is_flag=True,
    help="Test only hosts that changed since the last proof, then the whole fleet.",
)
@click.option(
    "--explain",
    "closer",
    is_flag=True,
    help="Look at each host closely before and after: what moved, what it says, and where it "
    "differs from the others. For a few hosts: --limit.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the verdict as a page, with a map of the links between hosts.",
)
def verify(
    incremental: bool, closer: bool, html: Path | None, proof: dict[str, object], **options: Any
) -> None:
    """Run an all-reduce across the hosts of INVENTORY and report what it proved; change nothing.

    The ladder: facts, reachability of every pair, inside each host, the whole fleet; where that fails, the
    hosts or the links between two hosts that cause it.
    """
    check = partial(check_output, html)
    with opened(Options(**options), "remedy.runs.verify", first=check, verify=proof) as (
        session,
        terminal,
    ):
        from remedy.report.page import page
        from remedy.runs.verify import verify

        terminal.show_rungs()
        outcome = verify(session, incremental=incremental, closer=closer)
        if html is not None and outcome.verdict is not None:
            text = page(outcome.verdict, session.inventory.path.stem)
            outcome = replace(outcome, warnings=(*outcome.warnings, *_write(html, text)))
        terminal.finish(outcome)
