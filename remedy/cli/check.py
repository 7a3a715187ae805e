"""``remedy check``: probe and report; changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from remedy.cli.common import Options, Session, explained, host_options, print_json
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.audit.survival import Survival


@click.command()
@host_options
@click.option("--exit-code", is_flag=True, help="Exit with 10 when changes are pending.")
@click.option(
    "--after-reboot",
    is_flag=True,
    help="Tell which hosts booted since their last run, and whether what was applied is still there.",
)
def check(exit_code: bool, after_reboot: bool, **options: Any) -> None:
    """Probe the hosts of INVENTORY and report what is wrong; change nothing. The journal says that it was done.

    With --after-reboot the exit code is 1 where something that was applied did not survive a boot.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        from remedy.apply.outcome import FAILED, most_severe
        from remedy.audit.agreement import titles
        from remedy.audit.survival import Boot
        from remedy.report.console import render_outcome, render_plan

        pipeline = session.pipeline
        with session.stage(f"Reading {counted(len(session.hosts), 'host')}"):
            probed = pipeline.probe(session.hosts)
        plan = pipeline.plan(probed)
        outcome = pipeline.preview(probed, plan, pending_counts=exit_code)
        found = (
            pipeline.past.survival(probed.fleet.states, plan, session.hosts) if after_reboot else {}
        )
        bad = any(one.boot in (Boot.LOST, Boot.UNKNOWN) for one in found.values())
        code = most_severe([outcome.exit_code, FAILED if bad else 0])
        data: dict[str, Any] = {
            "changes": titles(plan),
            "hosts": {name: host.status.value for name, host in outcome.hosts.items()},
            "exit_code": code,
        }
        if after_reboot:
            data["after_reboot"] = {name: one.boot.value for name, one in found.items()}
        session.note("check", "checked", **data)
        if opts.as_json:
            from remedy.report.document import run_document

            document = run_document(outcome) | {"exit_code": code}
            if after_reboot:
                document["after_reboot"] = {
                    name: {"boot": one.boot.value, "run": one.run, "lost": list(one.lost)}
                    for name, one in found.items()
                }
            print_json(document)
        else:
            session.console.print(render_plan(plan, len(probed.errors)), render_outcome(outcome))
            _show(session, found)
    sys.exit(code)


def _show(session: Session, found: Mapping[str, Survival]) -> None:
    """Show what became of the hosts since their last run, hosts that share it together."""
    from remedy.audit.survival import Boot
    from remedy.text import fold

    words = {
        Boot.SURVIVED: ("booted since their last run; what was applied is there", "green"),
        Boot.LOST: ("booted since their last run, and NOT all that was applied is there", "red"),
        Boot.NOT_BOOTED: (
            "did not boot since their last run, so nothing is proved of a boot",
            "yellow",
        ),
        Boot.NO_RUN: ("no run is on record", "yellow"),
        Boot.UNKNOWN: ("could not be read, or did not tell which boot this is", "red"),
    }
    for boot, (said, style) in words.items():
        names = [name for name, one in found.items() if one.boot is boot]
        if names:
            session.console.print(Text(f"{fold(names)}: {said}", style=style))
        for name in names:
            for title in found[name].lost:
                session.console.print(Text(f"  {name}: {title}", style=style))
