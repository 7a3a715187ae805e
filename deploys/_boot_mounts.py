"""Lines of /etc/fstab by which the next boot ends in emergency mode. Not a remedy.

What systemd cannot mount of the local file systems ends the boot: sshd is not started, and the host waits for
somebody at its console. Lines with nofail, noauto or x-systemd.automount do not, nor does
what comes over the network.

Sources: fstab(5), systemd.mount(5), systemd-fstab-generator(8).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from remedy.plan import Workbench
from remedy.probe import BootMounts, File
from remedy.values import Unknown

FSTAB = "/etc/fstab"
LENIENT = frozenset(("nofail", "noauto", "x-systemd.automount", "_netdev"))
NETWORK = frozenset(
    (
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "ceph",
            "glusterfs",
            "lustre",
            "beegfs",
            "gpfs",
            "afs",
        ),
        *("9p", "davfs", "ocfs2", "gfs2", "pvfs2", "orangefs", "virtiofs", "wekafs", "panfs"),
    )
)
"""What systemd takes for a file system of the network, and what is one."""
_OCTAL = re.compile(r"\\([0-7]{3})")
_ON_A_DEVICE = re.compile(r"(?:[A-Z]+=|/dev/)")


class FstabLine(NamedTuple):
    """A line of the file: what is mounted where, as what, with which options."""

    line: int
    source: str
    point: str
    kind: str
    options: frozenset[str]
    text: str


def note_mounts(bench: Workbench[Any], accepted: Collection[str]) -> None:
    """Name lines whose device is not there.

    Args:
        bench: of the host.
        accepted: lines, with the file, that are right as they are.
    """
    file = bench.host.file(FSTAB)
    if isinstance(file, Unknown) or not file.content.strip():
        return
    known = bench.need(bench.host.boot_mounts, f"which devices of {FSTAB} are there")
    for entry in entries(file):
        shown = f"{FSTAB}: {entry.text}"
        why = _why_not(entry, known)
        if not why or shown in accepted:
            continue
        note = bench.report if entry.kind == "swap" else bench.blocked
        ends = "waits for swap" if entry.kind == "swap" else "ends in emergency mode, without sshd"
        note(
            f"the next boot {ends}: {why}",
            f"{FSTAB}:{entry.line}: {entry.text}",
            "Correct that line, or give it the option nofail; see: findmnt --verify. If it is right, add to "
            f'next_boot.accept in remedy.yaml: "{shown}"',
        )


def entries(file: File) -> Iterator[FstabLine]:
    """Yield the lines of a file that a boot has to carry out."""
    for number, line in enumerate(file.content.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if len(words) < 3 or words[0].startswith("#"):
            continue
        options = frozenset(words[3].split(",")) if len(words) > 3 else frozenset[str]()
        names = {option.partition("=")[0] for option in options}
        if names & LENIENT or words[2] in NETWORK or words[2].startswith("fuse"):
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), words[1])
        yield FstabLine(number, words[0], point, words[2], options, " ".join(words))


def _why_not(entry: FstabLine, known: BootMounts) -> str:
    """Return why an entry cannot be mounted, in words; "" where nothing says so."""
    if not _ON_A_DEVICE.match(entry.source) or entry.source in known.there:
        return ""
    return f"{entry.source} of {FSTAB}, for {entry.point}, is not there"
