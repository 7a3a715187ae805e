"""``remedy unlock``: open the lock that a run holds on hosts."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.text import Text

from remedy.cli.common import Options, Session, explained, host_options, print_json
from remedy.text import counted

# What is said of each state, and whether the lock is open then.
STATES = {
    "free": ("no run holds it", True),
    "removed": ("the lock of a dead process was removed", True),
    "fenced": ("the lock was taken away; the run makes no further change there", True),
    "reverted": ("what waited for its confirmation was taken back", True),
    "other": ("another run holds it", False),
    "alive": ("the run is at work there; to stop it before its next change: --force", False),
    "pending": ("it takes its changes back by itself; not to wait for that: --force", False),
    "refused": ("the host refused", False),
    "unknown": ("it is not known", False),
}


@click.command()
@click.argument("run")
@host_options
@click.option(
    "--force", is_flag=True, help="Also where the run is at work, or waits for its confirmation."
)
def unlock(run: str, force: bool, **options: Any) -> None:
    """Open the lock that RUN holds on the hosts of INVENTORY; its id is in the message that refused you.

    A lock whose process is dead needs no hands: the next run takes it over. Of a run that is at work the lock
    is only taken with --force; the change that it is at is finished, and no further one is begun.
    """
    opts = Options(**options)
    with explained(verbose=opts.verbose):
        session = Session(opts)
        with session.stage(f"Asking {counted(len(session.hosts), 'host')}"):
            found = session.pipeline.past.unlock(run, session.hosts, force=force)
        shut = [name for name, one in found.items() if not STATES.get(one.state, ("", False))[1]]
        if opts.as_json:
            print_json({name: {"state": one.state, "who": one.who} for name, one in found.items()})
        for name, one in found.items():
            said, good = STATES.get(one.state, (one.state, False))
            line = f"{name}: {said}{f': {one.who}' if one.who else ''}"
            session.console.print(Text(line, style="green" if good else "yellow"))
    sys.exit(4 if shut else 0)
