"""What the words of a failure say where no entry of the catalogue knows the program: errno(3) and its kin.

Every program prints the same few words for what the system refused it. They decide little, so what is read from
them is possible at most, and names what else stands behind the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remedy.diagnose import lines
from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import APPLICATION, Candidate, Quote
from remedy.diagnose.progress import is_progress, is_reassuring
from remedy.diagnose.scan import LogScan

LAST_LINES = 25  # at the end of a log: what stands before was survived
# What a program asked of a service of the web says nothing of the hosts of a job; what it tells is no failure.
_ELSEWHERE = re.compile(
    r"https?://|HTTPS?Connection|huggingface|wandb|\b(?:pip|apt|yum|git|curl|wget)\b|\b(?:INFO|DEBUG)\b"
)


class _Words(NamedTuple):
    """Words, and what stands behind them, the likeliest first."""

    pattern: re.Pattern[str]
    causes: tuple[CauseWeight, ...]


def _words(pattern: str, *causes: tuple[str, float], because: str) -> _Words:
    weights = (CauseWeight(label=label, weight=weight, because=because) for label, weight in causes)
    return _Words(re.compile(pattern), tuple(weights))


# The first that matches a line is meant: what names the thing stands before what does not.
_MEANINGS = (
    _words(
        r"No space left on device.{0,200}/dev/shm"
        r"|(?:/dev/shm|shared memory|\bshm).{0,200}No space left on device",
        ("shm-too-small", 0.6),
        ("stale-shm", 0.45),
        because="memory that processes share is full (ENOSPC)",
    ),
    _words(
        r"[Nn]o space left on device|[Dd]isk quota exceeded|[Qq]uota exceeded for|ENOSPC|EDQUOT",
        ("disk-full", 0.6),
        ("shm-too-small", 0.4),
        because="something is full (ENOSPC, EDQUOT)",
    ),
    _words(
        r"[Tt]oo many open files|EMFILE|ENFILE",
        ("nofile-limit", 0.62),
        because="no file can be opened any more (EMFILE)",
    ),
    _words(
        r"(?:ibv|verbs|mlx\d|rdma|RDMA|register|reg_mr|\bQP\b|mlock|pinned)"
        r".{0,200}(?:Cannot allocate memory|ENOMEM)"
        r"|RLIMIT_MEMLOCK|max locked memory",
        ("memlock-limit", 0.58),
        ("gdr-peermem", 0.45),
        ("ib-misconfig", 0.35),
        because="memory could not be given to an adapter (ENOMEM)",
    ),
    _words(
        r"Cannot allocate memory|ENOMEM|std::bad_alloc"
        r"|[Oo]ut of (?:host )?memory\b(?!.{0,200}(?:CUDA|GPU|HBM|device))",
        ("host-oom", 0.58),
        ("memlock-limit", 0.4),
        because="the host had no memory left (ENOMEM)",
    ),
    _words(
        r"[Aa]ddress already in use|EADDRINUSE|[Pp]ort \d{2,5} is (?:already )?(?:in use|occupied|taken)",
        ("master-port-in-use", 0.62),
        ("stale-process", 0.45),
        because="a port is taken (EADDRINUSE)",
    ),
    _words(
        r"[Nn]ame or service not known|[Tt]emporary failure in name resolution|[Nn]ame does not resolve"
        r"|[Nn]o address associated with hostname|[Cc]ould not resolve host|[Uu]nknown host\b"
        r"|EAI_(?:AGAIN|NONAME)|no such host\b|NXDOMAIN",
        ("hostname-unresolvable", 0.62),
        ("loopback-hostname", 0.35),
        because="a name has no address",
    ),
    _words(
        r"[Nn]etwork is unreachable|ENETUNREACH",
        ("network-unreachable", 0.6),
        ("wrong-interface", 0.5),
        ("firewall-ports", 0.3),
        because="there is no route (ENETUNREACH)",
    ),
    _words(
        r"No route to host|EHOSTUNREACH",
        ("firewall-ports", 0.56),
        ("network-unreachable", 0.5),
        ("wrong-interface", 0.45),
        because="a firewall that rejects, or no way to the host (EHOSTUNREACH)",
    ),
    _words(
        r"[Cc]onnection refused|ECONNREFUSED",
        ("firewall-ports", 0.5),
        ("peer-died-timeout", 0.48),
        ("wrong-interface", 0.4),
        because="nobody listens there, or a firewall rejects (ECONNREFUSED)",
    ),
    _words(
        r"[Cc]onnection timed out|ETIMEDOUT|[Cc]onnect(?:ion|ing)?\b.{0,60}(?:timeout|timed out)",
        ("firewall-ports", 0.56),
        ("wrong-interface", 0.48),
        ("peer-died-timeout", 0.45),
        because="no answer came (ETIMEDOUT)",
    ),
    _words(
        r"[Cc]onnection reset by peer|[Bb]roken pipe|[Cc]onnection closed by|ECONNRESET|EPIPE|[Ss]ocket closed",
        ("peer-died-timeout", 0.58),
        ("firewall-ports", 0.35),
        because="the other end is gone (ECONNRESET)",
    ),
    _words(
        r"[Ss]tale (?:NFS )?file handle|ESTALE|[Tt]ransport endpoint is not connected|[Rr]ead-only file system"
        r"|[Rr]emote I/O error|[Ii]nput/output error",
        ("storage-fault", 0.58),
        ("disk-full", 0.3),
        because="a file system failed (EIO, ESTALE, EROFS)",
    ),
    _words(
        r"cannot open shared object file|[Ll]ibrary not loaded|DLL load failed",
        ("missing-library", 0.5),
        ("env-not-propagated", 0.42),
        because="the loader does not find a library",
    ),
    _words(
        r"undefined symbol|symbol lookup error|version `[\w.]+' not found",
        ("multi-python", 0.58),
        ("missing-library", 0.48),
        ("nccl-version-mismatch", 0.4),
        because="libraries of two installations are mixed",
    ),
    _words(
        r"(?:: command not found|: not found)$|[Nn]o such command",
        ("env-not-propagated", 0.56),
        ("missing-library", 0.4),
        because="the shell of the job does not find a program",
    ),
    _words(
        r"\b[Bb]us error|SIGBUS",
        ("shm-too-small", 0.58),
        ("host-oom", 0.4),
        because="memory that was mapped is not there (SIGBUS)",
    ),
    _words(
        r"certificate (?:is not yet valid|has expired)|[Cc]lock skew|in the future\b|out of sync clocks",
        ("clock-skew", 0.58),
        because="clocks of hosts differ",
    ),
    _words(
        r"\bKilled\b|SIGKILL|[Ss]ignal:? \(?9\b|[Ee]xit(?:ed with)? (?:code|status):? (?:137|-9)\b",
        ("host-oom", 0.5),
        ("peer-died-timeout", 0.4),
        because="a process was killed; the kernel's log says why",
    ),
    _words(
        r"[Ss]egmentation fault|SIGSEGV|core dumped",
        (APPLICATION, 0.56),
        ("nccl-version-mismatch", 0.3),
        because="the program crashed",
    ),
    _words(
        r"[Pp]ermission denied|EACCES|[Oo]peration not permitted",
        ("storage-fault", 0.45),
        (APPLICATION, 0.44),
        because="the user may not do this (EACCES)",
    ),
)


def by_words(scans: Sequence[LogScan]) -> tuple[Quote, tuple[Candidate, ...]] | None:
    """Return the last line that says in the system's words why something failed, and what that can be.

    Args:
        scans: logs in which no entry of the catalogue decides.
    """
    for scan in scans:
        for after, text in _last_lines(scan):
            meaning = next((m for m in _MEANINGS if m.pattern.search(text)), None)
            if meaning is None:
                continue
            lead = Quote(file=scan.name, line=max(1, scan.lines - after), text=text.strip())
            return lead, tuple(
                Candidate(label=c.label, score=c.weight, reason=c.because, evidence=(lead,))
                for c in meaning.causes
            )
    return None


def _last_lines(scan: LogScan) -> Iterator[tuple[int, str]]:
    """Yield the last lines of a log back to one that reports progress, each with how many follow it."""
    for after, line in enumerate(reversed(scan.tail.rstrip().splitlines()[-LAST_LINES:])):
        text = lines.without_guesses(line[: lines.WIDEST])
        if is_progress(text):
            return
        if not (is_reassuring(text) or _ELSEWHERE.search(text)):
            yield after, text
