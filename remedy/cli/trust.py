"""``remedy trust``: record host keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remedy.cli.common import errors_shown
from remedy.cli.consent import YES_OPTION, ask
from remedy.cli.terminal import Terminal, out
from remedy.errors import ChangedKeyError
from remedy.text import counted, fold, limited

if TYPE_CHECKING:
    from remedy.inventory import Inventory


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
        names = _chosen(loaded, limit, replaced)
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
            out.print(f"recorded {counted(len(accepted), 'host')} in {accepted[0].known_hosts}")
        _refuse(
            [h.host for h in hosts if h.state is KeyState.CHANGED and h.host not in replaced],
            inventory,
        )
        silent = [host.host for host in hosts if host.state is KeyState.SILENT]
    if silent:
        sys.exit(5)


def _chosen(
    inventory: Inventory, limit: tuple[str, ...], replaced: Sequence[str]
) -> tuple[str, ...]:
    """Return the hosts whose keys are looked at, and show them where not all are."""
    named = inventory.select(limit) if limit or not replaced else ()
    chosen = {*named, *replaced}
    names = tuple(name for name in inventory.names if name in chosen)
    if limit:
        Terminal().selected(names, len(inventory.names))
    return names


def _refuse(changed: Sequence[str], inventory: Path) -> None:
    """Refuse keys that changed.

    Raises:
        ChangedKeyError: there are some.
    """
    if changed:
        raise ChangedKeyError(
            f"the key of {fold(changed)} has changed and was not recorded",
            next_step="If these hosts were replaced: remedy trust "
            f"{inventory} --replace {limited(changed)}",
        )
