"""``remedy lab``: throw-away clusters of real hosts on this machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from remedy.cli.common import errors_shown
from remedy.cli.document import print_document
from remedy.cli.number import Number
from remedy.cli.paths import FilePath
from remedy.cli.plain import say
from remedy.cli.terminal import out
from remedy.errors import LabError, RemedyError
from remedy.lab import faults, machine
from remedy.lab.cluster import Lab
from remedy.lab.events import LabEvent
from remedy.lab.life import Life
from remedy.lab.options import UpOptions
from remedy.lab.paths import DEFAULT_NAME, NAME_VARIABLE, LabPaths
from remedy.lab.status import LabStatus
from remedy.text import quoted


def _say(event: LabEvent) -> None:
    """Print one step of a lab command, on stderr."""
    say(f"{event.host}: {event.text}" if event.host else event.text, err=True)


def _to_copy(text: str, name: str | None) -> str:
    """Return words for a user, the commands among them on the lab that was named.

    >>> _to_copy("Start it: remedy lab up", "night")
    'Start it: remedy lab --name night up'
    """
    if not name or name == DEFAULT_NAME:
        return text
    return re.sub(r"\bremedy lab (?=[a-z])", f"remedy lab --name {quoted(name)} ", text)


class Explained(click.Group):
    """A group of commands that show expected errors as every other command does."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with errors_shown():
            try:
                return super().invoke(ctx)
            except RemedyError as error:
                for part in (error, *error.parts):
                    part.next_step = _to_copy(part.next_step, ctx.params.get("name"))
                raise


@click.group(cls=Explained)
@click.option(
    "--name", metavar="NAME", envvar=NAME_VARIABLE, help="Which lab; several can run side by side."
)
@click.pass_context
def lab(context: click.Context, name: str | None) -> None:
    """A throw-away cluster of real hosts on this machine, to break and to fix."""
    context.obj = Lab(LabPaths.of(name), _say)


@lab.command()
@click.option("-n", "count", type=Number(1), default=4, show_default=True, help="How many hosts.")
@click.option(
    "--prefix", metavar="NAME", default="gpu", show_default=True, help="What host names begin with."
)
@click.option(
    "--fault",
    "broken",
    multiple=True,
    metavar="FAULT",
    help="Inject this fault into every new host.",
)
@click.option("--docker", is_flag=True, help="Hosts in which dockerd can run.")
@click.option("--mpi", is_flag=True, help="Hosts in which Open MPI is installed.")
@click.option(
    "--lived-in",
    "life",
    flag_value="lived-in",
    help="Hosts as users have them: Docker, containerd and firewalld running, 200 processes (160 MB each).",
)
@click.option(
    "--asleep",
    "life",
    flag_value="asleep",
    help="Hosts with everything installed that a question could start, and nothing of it running.",
)
@click.option(
    "--slurm",
    "life",
    flag_value="slurm",
    help="Hosts that are a Slurm cluster: slurmctld on the first of them, slurmd on every one.",
)
@click.option(
    "--release", default="", metavar="NAME", help="Hosts of a different release, such as bullseye."
)
@click.pass_obj
def up(
    lab: Lab,
    count: int,
    prefix: str,
    broken: tuple[str, ...],
    docker: bool,
    mpi: bool,
    release: str,
    life: Life | None,
) -> None:
    """Start the lab, or let it grow; the first time takes a minute or two."""
    options = UpOptions(count, prefix, broken, docker, mpi, release, life or "bare")
    record = lab.up(options)
    names = [host.name for host in record.hosts]
    several = f"{len(names)} hosts are up: {names[0]} to {names[-1]}."
    say(several if len(names) > 1 else f"1 host is up: {names[0]}.")
    say(f"Inventory: {lab.paths.inventory}")


@lab.command()
@click.pass_obj
def down(lab: Lab) -> None:
    """Remove the lab and everything it made, also after a crash."""
    if not lab.down():
        say(f"No lab {lab.paths.name!r} is running.", err=True)


@lab.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def status(lab: Lab, as_json: bool) -> None:
    """Show the hosts of the lab and the faults on them."""
    current = lab.status()
    if as_json:
        print_document("lab-status", current.model_dump(mode="json"))
    elif not current.running:
        start = _to_copy("remedy lab up", current.name)
        say(f"No lab {current.name!r} is running. Start it: {start}")
    else:
        out.print(_table(current), soft_wrap=False)
        say(f"Inventory: {current.inventory}")
        say(f"Python with torch in the hosts: {current.python or 'none'}")


def _table(current: LabStatus) -> Table:
    """Return the hosts of a lab as a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("host", "state", "management", "cluster", "interface", "broken"):
        table.add_column(heading)
    for host in current.hosts:
        table.add_row(
            host.name,
            host.state,
            host.management_address,
            host.cluster_address,
            host.cluster_interface,
            ", ".join(host.faults) or "-",
        )
    return table


@lab.command(name="break")
@click.option("--list", "listing", is_flag=True, help="List the faults.")
@click.option(
    "--faults",
    "files",
    multiple=True,
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Know the faults that this Python file declares, too.",
)
@click.argument("host", required=False)
@click.argument("fault_names", metavar="[FAULT]...", nargs=-1)
@click.pass_obj
def break_(
    lab: Lab,
    listing: bool,
    files: tuple[Path, ...],
    host: str | None,
    fault_names: tuple[str, ...],
) -> None:
    """Inject one or several faults into HOST. HOST may be 'all'."""
    for file in files:
        faults.load_file(file)
    if listing:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        for fault in faults.catalogue():
            table.add_row(fault.name, fault.text)
        out.print(table, soft_wrap=False)
        return
    if host is None or not fault_names:
        raise click.UsageError("Name a host and at least one fault; --list lists the faults.")
    machine.require()
    names = [record.name for record in lab.record().hosts] if host == "all" else [host]
    for name in names:
        lab.break_(name, fault_names)


@lab.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--user", metavar="USER", default="root", show_default=True, help="Log in as this user."
)
@click.pass_obj
def shell(lab: Lab, host: str, command: tuple[str, ...], user: str) -> None:
    """Log in to HOST by ssh, or run COMMAND there."""
    words = lab.host(host).ssh(command, user=user)
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)  # noqa: S606 (there is nothing left for this process to do)
    except OSError as error:
        raise LabError(
            f"ssh could not be started: {error.strerror}",
            next_step="Install the OpenSSH client: apt-get install openssh-client",
        ) from error


@lab.command()
@click.argument("host")
@click.pass_obj
def reboot(lab: Lab, host: str) -> None:
    """Reboot HOST and wait until it answers."""
    machine.require()
    lab.reboot(host)
    say(f"{host} is up again.")


@lab.command()
@click.argument("host")
@click.pass_obj
def replace(lab: Lab, host: str) -> None:
    """Replace HOST by a new machine: same addresses, fresh disk, new ssh host key."""
    machine.require()
    lab.replace(host)
    say(f"{host} is a different machine now; its ssh host key is not trusted yet.")


@lab.command()
@click.argument("host")
@click.pass_obj
def reset(lab: Lab, host: str) -> None:
    """Bring HOST back to the state of a fresh installation; its ssh host key stays."""
    machine.require()
    lab.reset(host)
    say(f"{host} is fresh again.")
