"""Logs of several files in one: each under a line with its name, as ``tail`` and ``head`` print them.

Who asks for help pastes the log of the job, and below it what dmesg and journalctl show of its hosts. Those
lines have a clock and an order of their own, so they are a log of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remedy.diagnose import lines
from remedy.diagnose.scanner.reader import Source, from_text, whole
from remedy.diagnose.scanner.steps import is_step

LARGEST = 8 << 20  # bytes of a log that is taken apart
MOST = 64  # files in one
_NAME = re.compile(rb"==> (?P<name>[^\n\r]{1,200}) <==\s*")
# Behind the name of a log, for what hosts say in it; no path that is read has two strokes in a row.
OF_HOSTS = "//host"
PASTE = 256 << 10  # bytes of a log in which they are looked for
LEAST = 5  # lines of the job above them
# Lines of dmesg, and those of the kernel and of a host's services in its journal.
_OF_A_HOST = re.compile(
    rb"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d [\d:]{8} 20\d\d\] |\[ {0,11}\d{1,7}\.\d{6}\] "
    rb"|(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|20\d\d-\d\d-\d\dT[\d:.]{8,16}(?:Z|[+-]\d\d:?\d\d)) [\w.-]{1,64} "
    rb"(?:kernel|systemd[\w-]{0,24}|kubelet|containerd|dockerd|chronyd|ntpd|slurmd|nvidia-[\w-]{1,30}|nv-\w{1,30}"
    rb"|NetworkManager|sshd|rasdaemon|mcelog|irqbalance|CROND?|cron|dhclient)(?:\[\d{1,9}\])?: "
)
_ANY = re.compile(rb"^==> [^\n\r]{1,200} <==", re.MULTILINE)


def parts_of(
    source: Source, first: bytes, blocks: Iterator[bytes]
) -> tuple[tuple[Source, ...], Iterator[bytes]]:
    """Return the files that a log holds, each as a log of its own, and the blocks of the log.

    Lines keep their numbers: those of other files are empty.

    Args:
        source: the log.
        first: its first block.
        blocks: all of them.

    Returns:
        No files where the log names fewer than two.
    """
    if not _ANY.search(first):
        data, blocks = whole(blocks, PASTE)
        return () if data is None else _of_a_paste(source, data), blocks
    data, blocks = whole(blocks, LARGEST)
    files = {} if data is None else _files(data)
    own = files.pop(b"", b"")
    if len(files) < 2:
        return (), blocks
    parts = [from_text(f"{source.name}/{_shown(name)}", text) for name, text in files.items()]
    if own.strip():
        parts.append(from_text(source.name, own))
    parts[0].trouble = source.trouble
    return tuple(parts), blocks


def is_of_hosts(name: str) -> bool:
    """Return whether a log is the part of a paste in which hosts report, and not the job."""
    return name.endswith(OF_HOSTS)


def _of_a_paste(source: Source, data: bytes) -> tuple[Source, ...]:
    """Return the lines of a job and those of its hosts, where a short log holds these below those.

    Where the job goes on below them, their order says what it outlived.
    """
    rows = data.split(b"\n")
    hosts = [bool(_OF_A_HOST.match(row)) for row in rows]
    at = hosts.index(True) if True in hosts else 0
    above = sum(bool(row.strip()) for row in rows[:at])
    below = (row for row, is_host in zip(rows[at:], hosts[at:], strict=True) if not is_host)
    if above < LEAST or any(is_step(lines.clean(row[: lines.WIDEST])) for row in below):
        return ()

    def part(*, of_a_host: bool) -> bytes:
        kept = (
            row if is_host == of_a_host else b"" for row, is_host in zip(rows, hosts, strict=True)
        )
        return b"\n".join(kept).rstrip(b"\n")

    job = from_text(source.name, part(of_a_host=False))
    job.trouble = source.trouble
    return job, from_text(f"{source.name}{OF_HOSTS}", part(of_a_host=True))


def _files(data: bytes) -> dict[bytes, bytes]:
    """Return the text of each file by its name; what stands before the first has none."""
    rows = data.split(b"\n")
    owners: list[bytes] = []
    owner = b""
    for line in rows:
        match = _NAME.fullmatch(line)
        owner = match["name"] if match else owner
        owners.append(b"\n" if match else owner)
    names = dict.fromkeys((b"", *(name for name in owners if name != b"\n")))
    if len(names) > MOST:
        return {}
    return {
        name: b"\n".join(
            line if of == name else b"" for line, of in zip(rows, owners, strict=True)
        ).rstrip(b"\n")
        for name in names
    }


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")
