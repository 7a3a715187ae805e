"""Hosts from what other programs have: Slurm, Ansible, ClusterShell, and the hostfiles of MPI and DeepSpeed.

Each reader follows the rules of the program whose file it is. What is no host becomes none, and whatever was
left out is in the listing with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path

from remedy.errors import UsageError
from remedy.files import at_home
from remedy.inventory.elsewhere.ansible import read_ansible
from remedy.inventory.elsewhere.clustershell import read_clustershell
from remedy.inventory.elsewhere.hostfile import read_hostfile
from remedy.inventory.elsewhere.listing import Collector, HostEntry, Listing, text_shown
from remedy.inventory.elsewhere.slurm import read_slurm
from remedy.inventory.elsewhere.source import STDIN, read_text, shown_source
from remedy.text import clipped

__all__ = ["KINDS", "HostEntry", "Listing", "read_hosts"]

KINDS: Mapping[str, Callable[[Collector, str, Path | None], None]] = {
    "ansible": read_ansible,
    "clustershell": read_clustershell,
    "hostfile": read_hostfile,
    "slurm": read_slurm,
}
"""What reads a text: into a collector, with the path that it has (None: standard input)."""

# How much of the reasons an error has in which there is no host.
_LONGEST = 150


def read_hosts(kind: str, source: str) -> Listing:
    """Read hosts from what another program has.

    Args:
        kind: a key of ``KINDS``.
        source: a path, or ``-`` for standard input; for Ansible also a folder, or names with commas.

    Raises:
        UsageError: there is no such kind, the text cannot be read, or there is no host in it.
    """
    _check_words(kind, source)
    path = None if source == STDIN else at_home(source)
    collector = Collector()
    # Ansible reads folders and lists of names by itself.
    is_theirs = kind == "ansible" and path is not None
    KINDS[kind](collector, "" if is_theirs else read_text(path), path)
    listing = collector.listing()
    if not listing.hosts:
        reasons = "".join(f"; {clipped(reason, _LONGEST)}" for reason in listing.notes[:3])
        raise UsageError(
            f"{shown_source(path)}: no host in it, read as {kind}{reasons}",
            next_step="Give a file with hosts, or read it as a different kind: "
            f"{', '.join(other for other in KINDS if other != kind)}.",
        )
    return listing


def _check_words(kind: str, source: str) -> None:
    """Refuse what are not a kind and a path, in this order."""
    if kind in KINDS:
        if source != STDIN and source.startswith("-"):
            raise UsageError(
                f"--from {kind}: {text_shown(source)} is an option, and no path",
                next_step=f"Give a path behind the kind: --from {kind} PATH; - is standard input.",
            )
        return
    near = get_close_matches(kind.lower(), KINDS, n=1)
    if source in KINDS:
        step = f"The kind comes first: --from {source} {text_shown(kind)}"
    else:
        step = f"Kinds: {', '.join(KINDS)}."
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"--from {text_shown(kind)}: there is no such kind{hint}", next_step=step)
