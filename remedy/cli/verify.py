"""``remedy verify``: prove the fleet as it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from remedy.cli.common import STRICT_OPTION, Options, choice_options, host_options, opened, reports
from remedy.cli.pages import check_page, html_option, with_page
from remedy.cli.proof import proof_options


@click.command()
@host_options
@choice_options(
    only="Report and count the findings of these remedies alone; the verdict and its cause rest on all.",
    skip="Neither report nor count the findings of these remedies.",
)
@STRICT_OPTION
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
    help="Check each host closely before and after: what moved, what it logged, and where it "
    "differs from the others. For a few hosts: --limit.",
)
@html_option(
    "the verdict, its cause, bandwidth over size, the pace of each host, a map of dead links"
)
def verify(
    incremental: bool, closer: bool, html: Path | None, proof: dict[str, object], **options: Any
) -> None:
    """Run an all-reduce across the hosts of INVENTORY and report what it proved; change nothing.

    The ladder: facts, reachability of every pair, inside each host, the whole fleet; where that fails, the
    hosts or the links between two hosts that cause it. The verdict and its cause rest on all remedies; --only
    and --skip choose whose findings are reported beside it and count for the exit code.
    """
    check = partial(check_page, html)
    opts = Options(**options)
    with opened(opts, "remedy.runs.verify", later=reports(opts), first=check, verify=proof) as (
        session,
        terminal,
    ):
        from remedy.runs.verify import verify

        terminal.show_rungs()
        outcome = verify(session, incremental=incremental, closer=closer)
        terminal.finish(with_page(outcome, html))
