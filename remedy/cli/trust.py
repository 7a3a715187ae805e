"""``remedy trust``: record host keys."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from remedy.cli.common import errors_shown
from remedy.cli.consent import YES_OPTION, ask
from remedy.cli.terminal import Terminal, out
from remedy.errors import HostKeyError
from remedy.text import counted


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--limit", multiple=True, metavar="HOSTS", help="Only these hosts, such as gpu[01-08]."
)
@click.option(
    "--replace",
    multiple=True,
    metavar="HOSTS",
    help="Accept the changed key of these hosts, because they were replaced.",
)
@YES_OPTION
def trust(inventory: Path, limit: tuple[str, ...], replace: tuple[str, ...], yes: bool) -> None:
    """Show the ssh host keys of INVENTORY's hosts and record those that are new.

    A key that CHANGED is never recorded unless --replace names the host.
    """
    with errors_shown():
        from remedy.report.keys import render_keys
        from remedy.transport.reader import load_inventory
        from remedy.trust import KeyState, record, scan

        loaded = load_inventory(inventory)
        replaced = loaded.select(replace, "--replace") if replace else ()
        chosen = {*replaced, *(loaded.select(limit) if limit or not replace else ())}
        names = [name for name in loaded.names if name in chosen]
        if limit:
            Terminal().selected(names, len(loaded.names))
        hosts = scan([loaded.node(name) for name in names])
        out.print(render_keys(hosts))
        accepted = [
            host
            for host in hosts
            if host.state is KeyState.NEW
            or (host.state is KeyState.CHANGED and host.host in replaced)
        ]
        if accepted:
            ask(f"Record the keys of {counted(len(accepted), 'host')}?", yes=yes)
            record(accepted)
            out.print(
                f"recorded {counted(len(accepted), 'host')} in {accepted[0].known_hosts}",
                markup=False,
            )
        refused = [h for h in hosts if h.state is KeyState.CHANGED and h.host not in replaced]
        if refused:
            raise HostKeyError(
                f"the key of {', '.join(h.host for h in refused)} has changed and was not recorded",
                next_step="If these hosts were replaced: remedy trust "
                f"{inventory} " + " ".join(f"--replace {h.host}" for h in refused),
            )
        silent = [host.host for host in hosts if host.state is KeyState.SILENT]
    if silent:
        sys.exit(5)
