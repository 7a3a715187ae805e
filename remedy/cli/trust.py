"""``remedy trust``: record host keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGPIPE
from typing import TYPE_CHECKING

import click

from remedy.cli import document
from remedy.cli.common import cooperate, errors_shown
from remedy.cli.consent import YES_OPTION, ask
from remedy.cli.interrupt import NAMES, leave, number_of, received
from remedy.cli.next_step import to_copy
from remedy.cli.paths import FilePath
from remedy.cli.terminal import Terminal, err, out
from remedy.errors import ChangedKeyError, RemedyError, RevokedKeyError
from remedy.text import counted, folded, limited, quoted

if TYPE_CHECKING:
    from remedy.inventory import Inventory
    from remedy.transport.keys import KeyReader
    from remedy.trust import HostKeys


@dataclass
class TrustProgress:
    """What ``trust`` has read and recorded so far.

    Args:
        as_json: whether standard output is for one document, and everything else goes to standard error.
        hosts: the keys of hosts, and of jump hosts on the way, in the order in which they were read.
        recorded: the names of those whose keys are recorded.
        files: where.
    """

    as_json: bool
    hosts: dict[str, HostKeys] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def finish(self, code: int, error: RemedyError | None = None) -> None:
        """Print the document, where it is asked for and a host was read."""
        if not self.as_json or (error is not None and not self.hosts):
            return
        from remedy.report.keys import trust_body

        body = trust_body(self.hosts.values(), self.recorded, self.files)
        message = None if error is None else error.message
        step = None if error is None else to_copy(error.next_step) or None
        document.print_document(
            "trust", {**body, "error": message, "next_step": step, "exit_code": code}
        )


@click.command()
@click.argument("inventory", type=FilePath())
@click.option(
    "--limit", multiple=True, metavar="HOSTS", help="Only these hosts, such as gpu[01-08]."
)
@click.option(
    "--replace",
    multiple=True,
    metavar="HOSTS",
    help="Accept the changed key of these hosts, because they were replaced.",
)
@click.option("--spec", type=FilePath(), help="remedy.yaml to use.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout, the rest on stderr."
)
@YES_OPTION
def trust(
    inventory: Path,
    limit: tuple[str, ...],
    replace: tuple[str, ...],
    spec: Path | None,
    as_json: bool,
    yes: bool,
) -> None:
    """Show the ssh host keys of INVENTORY's hosts, and of jump hosts on the way, and record those that are new.

    Those of hosts behind gateways are recorded on these. A key that CHANGED is never recorded unless --replace
    names the host, and a REVOKED one never. With --json and without --yes nothing is recorded: the document has
    the fingerprints, to be compared.
    """
    document.about(inventory=inventory)
    progress = TrustProgress(as_json)
    with errors_shown(), _end_explained(progress, inventory):
        from remedy.runs.outcome import most_severe
        from remedy.runs.session import ssh_settings
        from remedy.transport.keys import KeyReader
        from remedy.transport.reader import load_inventory

        cooperate()
        loaded = load_inventory(inventory)
        reader = KeyReader(loaded, spec=ssh_settings(inventory, spec))
        replaced = loaded.select(replace, "--replace") if replace else ()
        names = _chosen(loaded, limit, replaced)
        Terminal().noted(reader.notes)
        try:
            hosts = [
                host
                for group in reader.in_turn(names)
                for host in _recorded(reader, group, replaced, progress, yes=yes)
            ]
            _refuse(hosts, replaced, inventory)
        except RemedyError as error:
            if received() is None:  # else something below made an error of a signal
                progress.finish(error.exit_code, error)
            raise
        errors = [host.error for host in hosts if host.error is not None]
        code = most_severe(error.exit_code for error in errors) if errors else 0
        progress.finish(code)
    sys.exit(code)


@contextmanager
def _end_explained(progress: TrustProgress, inventory: Path) -> Iterator[None]:
    """Show of which hosts the keys were recorded, where a signal ends the command."""
    try:
        yield
    except BaseException as stop:
        number = number_of(stop)
        if number is None:
            raise
        from remedy.runs.activity import GO_ON, Interruption

        recorded = progress.recorded
        known = f"recorded so far: {folded(recorded)}" if recorded else "no key was recorded"
        # Whoever has left before anything was recorded has nothing to read.
        has_more = bool(recorded) or number != SIGPIPE
        commands = ((GO_ON, f"remedy trust {quoted(inventory)}"),) if has_more else ()
        Terminal().interrupted(number, Interruption((known,), commands))
        if number != SIGPIPE:
            message = f"interrupted: {NAMES[number]}"
            document.print_error(message, 128 + number, facts=(known,), commands=commands)
        leave(number)


def _recorded(
    reader: KeyReader,
    names: Sequence[str],
    replaced: Sequence[str],
    progress: TrustProgress,
    *,
    yes: bool,
) -> list[HostKeys]:
    """Show the keys of hosts, record those that are accepted, and return them all.

    Hosts behind a jump host that is not known are asked once that is recorded. ``progress`` gets the keys as
    they are read, and the name of each host when its keys are recorded.
    """
    from remedy.report.keys import render_keys
    from remedy.trust import KeyState

    console = err if progress.as_json else out
    decided: list[HostKeys] = []
    jumps: set[str] = set()
    while names:
        hosts = reader.read(names)
        behind = {host.behind.host: host.behind for host in hosts if host.behind is not None}
        fresh = {name: jump for name, jump in behind.items() if name not in jumps}
        jumps |= fresh.keys()
        ready = [host for host in hosts if host.behind is None or host.behind.host not in fresh]
        progress.hosts |= {host.host: host for host in (*fresh.values(), *hosts)}
        console.print(render_keys([*fresh.values(), *ready]))
        accepted = [
            host
            for host in (*fresh.values(), *ready)
            if host.state is KeyState.NEW
            or (host.state is KeyState.CHANGED and host.host in replaced)
        ]
        if accepted:
            ask(f"Record the keys of {counted(len(accepted), 'host')}?", yes=yes)
            files = reader.record(accepted, progress.recorded)
            progress.files += [file for file in files if file not in progress.files]
            console.print(f"recorded {counted(len(accepted), 'host')} in {', '.join(files)}")
        decided += ready
        names = [host.host for host in hosts if host not in ready]
    return decided


def _chosen(
    inventory: Inventory, limit: tuple[str, ...], replaced: Sequence[str]
) -> tuple[str, ...]:
    """Return the hosts whose keys are read, and show them where not all are."""
    named = inventory.select(limit) if limit or not replaced else ()
    chosen = {*named, *replaced}
    names = tuple(name for name in inventory.names if name in chosen)
    if limit:
        Terminal().selected(names, len(inventory.names))
    return names


def _refuse(hosts: Sequence[HostKeys], replaced: Sequence[str], inventory: Path) -> None:
    """Refuse keys that were withdrawn, and those that changed.

    Raises:
        RevokedKeyError: there are some of the first kind.
        ChangedKeyError: there are some of the second.
    """
    from remedy.trust import KeyState

    revoked = [host.host for host in hosts if host.state is KeyState.REVOKED]
    if revoked:
        raise RevokedKeyError(
            f"the key of {folded(revoked)} is revoked, and is never recorded",
            next_step="What each of them needs: remedy check "
            f"{quoted(inventory)} --limit {limited(revoked)}",
        )
    changed = [h.host for h in hosts if h.state is KeyState.CHANGED and h.host not in replaced]
    if changed:
        raise ChangedKeyError(
            f"the key of {folded(changed)} has changed and was not recorded",
            next_step=f"If {'it was' if len(changed) == 1 else 'they were'} replaced: remedy trust "
            f"{quoted(inventory)} --replace {limited(changed)}",
        )
