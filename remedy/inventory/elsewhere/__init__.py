"""Hosts from what other programs have: Slurm, Ansible, ClusterShell, and the hostfiles of MPI and DeepSpeed.

Each reader follows the rules of the program whose file it is. What is no host becomes none, and whatever was
left out is in the listing with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from remedy.errors import UsageError
from remedy.files import at_home, read_standard
from remedy.inventory.elsewhere.ansible import read_ansible
from remedy.inventory.elsewhere.clustershell import read_clustershell
from remedy.inventory.elsewhere.hostfile import read_hostfile
from remedy.inventory.elsewhere.listing import LARGEST, Collector, HostEntry, Listing
from remedy.inventory.elsewhere.slurm import read_slurm

__all__ = ["KINDS", "HostEntry", "Listing", "read_hosts"]

STDIN = "-"

KINDS: Mapping[str, Callable[[Collector, str, Path | None], None]] = {
    "ansible": read_ansible,
    "clustershell": read_clustershell,
    "hostfile": read_hostfile,
    "slurm": read_slurm,
}
"""What reads a text: into a collector, with the path that it has (None: standard input)."""


def read_hosts(kind: str, source: str) -> Listing:
    """Read hosts from what another program has.

    Args:
        kind: a key of ``KINDS``.
        source: a path, or ``-`` for standard input; for Ansible also a folder, or names with commas.

    Raises:
        UsageError: there is no such kind, the text cannot be read, or there is no host in it.
    """
    if kind not in KINDS:
        raise UsageError(f"--from {kind}: no such kind", next_step=f"Kinds: {', '.join(KINDS)}.")
    path = None if source == STDIN else at_home(source)
    collector = Collector()
    # Ansible reads folders and lists of names by itself.
    text = "" if kind == "ansible" and path is not None else _text(path)
    KINDS[kind](collector, text, path)
    listing = collector.listing()
    if not listing.hosts:
        reasons = "".join(f"; {reason}" for reason in listing.notes[:3])
        raise UsageError(
            f"{'standard input' if path is None else path}: no host in it, read as {kind}{reasons}",
            next_step=f"Give a file with hosts, or read it as a different kind: {', '.join(KINDS)}.",
        )
    return listing


def _text(path: Path | None) -> str:
    """Return the text of a file, or of standard input; bytes that are no UTF-8 show as such."""
    try:
        if path is None:
            content = read_standard(LARGEST + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", next_step="Give a text file that can be read."
        ) from error
    if len(content) > LARGEST:
        raise UsageError(
            f"{'standard input' if path is None else path}: more than {LARGEST >> 20} MiB",
            next_step="Give the list of hosts alone.",
        )
    return content.decode("utf-8-sig", errors="replace")
