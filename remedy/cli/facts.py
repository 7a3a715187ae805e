"""``remedy facts``: all that the probe knows."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from remedy.cli.common import Options, host_options, opened
from remedy.cli.document import print_document
from remedy.cli.terminal import err, out

LATER = ("remedy.report.facts", "remedy.report.failures", "remedy.runs.outcome")


def _check(groups: tuple[str, ...]) -> None:
    if groups:
        from remedy.report.facts import check_groups

        check_groups(groups)


@click.command()
@host_options
@click.argument("groups", metavar="[FACT]...", nargs=-1)
def facts(groups: tuple[str, ...], **options: Any) -> None:
    """Print all that the probe reads of the hosts of INVENTORY; change nothing, and judge nothing.

    A FACT is a group such as kernel, network or sysctls; without one all are printed, and with --json all
    are there. Contents of files are digests, and secrets are left out. Hosts with the same value share a line.
    No remedy decides here, so there is no --only or --skip.
    """
    opts = Options(**options)
    first = partial(_check, groups)
    with opened(opts, "remedy.runs.probe", later=LATER, first=first) as (session, _):
        from remedy.runs.probe import probe

        result = probe(session)
        from remedy.report.facts import facts_body, render_facts
        from remedy.report.failures import error_lines
        from remedy.runs.outcome import most_severe

        states = {**result.fleet.states, **result.unsettled}
        errors = {name: error for name, error in result.errors.items() if name not in states}
        code = most_severe(error.exit_code for error in errors.values())
        if opts.as_json:
            print_document("facts", facts_body(states, errors, code))
        else:
            for line in render_facts(states, groups):
                out.print(line)
            for text in error_lines(errors):
                err.print(text)
        sys.exit(code)
