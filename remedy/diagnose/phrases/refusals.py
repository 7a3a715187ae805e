"""The words in which the system says why it refused something: errno(3), signal(7), the loader, the resolver.

Every program prints them, and they decide little: what they say is possible at most.
"""

from __future__ import annotations

from collections.abc import Iterable

from remedy.diagnose.catalogue import compiled
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.phrases.plain import ENDED, NARROW, PLAIN, Words, words

# The first that matches a line is meant: what names the thing stands before what does not.
_MEANINGS = (
    words(
        r"No space left on device.{0,200}/dev/shm"
        r"|(?:/dev/shm|shared memory|\bshm).{0,200}No space left on device",
        ("shm-too-small", 0.6),
        ("stale-shm", 0.45),
        because="memory that processes share is full (ENOSPC)",
    ),
    words(
        r"(?:\bibv_|\b[Vv]erbs\b|\bmlx\d|\b[QC]P\b|\bCQ\b).{0,200}(?:[Nn]o space left on device|ENOSPC)",
        ("ib-misconfig", 0.56),
        ("memlock-limit", 0.45),
        (APPLICATION, 0.4),
        because="the adapter gives no more of its queues or memory regions (ENOSPC)",
    ),
    words(
        r"[Nn]o space left on device|[Dd]isk quota exceeded|[Qq]uota exceeded for|ENOSPC|EDQUOT",
        ("disk-full", 0.6),
        ("shm-too-small", 0.4),
        because="something is full (ENOSPC, EDQUOT)",
    ),
    words(
        r"[Tt]oo many open files|EMFILE|ENFILE",
        ("nofile-limit", 0.62),
        because="no file can be opened any more (EMFILE)",
    ),
    words(
        r"(?:ibv|verbs|mlx\d|rdma|RDMA|register|reg_mr|\bQP\b|mlock|pinned)"
        r".{0,200}(?:Cannot allocate memory|ENOMEM)"
        r"|RLIMIT_MEMLOCK|max locked memory(?! +\(kbytes| +\w+ +\w+ +bytes)",
        ("memlock-limit", 0.58),
        ("gdr-peermem", 0.45),
        ("ib-misconfig", 0.35),
        because="memory could not be given to an adapter (ENOMEM)",
    ),
    words(
        r"Cannot allocate memory|ENOMEM|std::bad_alloc|\bNULL from malloc\b"
        r"|\bmalloc(?:\(\d{0,12}\))? (?:failed|returned NULL)\b|[Ff]ailed to malloc\b"
        r"|(?<!RESOURCE_EXHAUSTED: )[Oo]ut of (?:host )?memory\b(?!.{0,200}(?:CUDA|GPU|HBM|device))",
        ("host-oom", 0.58),
        ("memlock-limit", 0.4),
        because="the host had no memory left (ENOMEM)",
    ),
    words(
        r"[Aa]ddress already in use|EADDRINUSE"
        r"|[Pp]ort \d{2,5} is (?:already )?(?:in use|occupied|taken)"
        r"(?!.{0,160}(?:\binstead\b|[Uu]sing (?:port )?\d|falling back"
        r"|[Tt]rying (?:another|next|the next|port \d)))",
        ("master-port-in-use", 0.62),
        ("stale-process", 0.45),
        because="a port is taken (EADDRINUSE)",
    ),
    words(
        r"[Nn]ame or service not known|[Tt]emporary failure in name resolution|[Nn]ame does not resolve"
        r"|[Nn]o address associated with hostname|[Cc]ould not resolve host|[Uu]nknown host\b"
        r"|EAI_(?:AGAIN|NONAME)|no such host\b|NXDOMAIN|ENOTFOUND|failed to lookup address information"
        r"|\bdns error\b|address lookup failed|DNS resolution failed|DNS lookup failed|[Dd]omain name not found"
        r"|[Hh]ost name lookup failure|[Hh]ost not found\b|[Cc]ould not contact DNS|Unable to resolve host",
        ("hostname-unresolvable", 0.62),
        ("loopback-hostname", 0.35),
        because="a name has no address",
    ),
    words(
        r"[Nn]etwork is unreachable|ENETUNREACH",
        ("network-unreachable", 0.6),
        ("wrong-interface", 0.5),
        ("firewall-ports", 0.3),
        because="there is no route (ENETUNREACH)",
    ),
    words(
        r"No route to host|EHOSTUNREACH",
        ("firewall-ports", 0.56),
        ("network-unreachable", 0.5),
        ("wrong-interface", 0.45),
        because="a firewall that rejects, or no way to the host (EHOSTUNREACH)",
    ),
    words(
        r"[Cc]onnection refused|ECONNREFUSED",
        ("firewall-ports", 0.5),
        ("peer-died-timeout", 0.48),
        ("wrong-interface", 0.4),
        because="nothing listens there, or a firewall rejects (ECONNREFUSED)",
    ),
    words(
        r"[Cc]onnection timed out|ETIMEDOUT"
        r"|[Cc]onnect(?:ion|ing)?\b.{0,60}(?:timeout|timed out|deadline has elapsed)"
        r"|tcp handshaker shutdown|\bdial tcp [^\n]{3,80}: i/o timeout",
        ("firewall-ports", 0.56),
        ("wrong-interface", 0.48),
        ("peer-died-timeout", 0.45),
        because="no answer came (ETIMEDOUT)",
    ),
    words(
        r"Operation now in progress|EINPROGRESS",
        ("firewall-ports", 0.56),
        ("wrong-interface", 0.5),
        ("peer-died-timeout", 0.4),
        because="no answer came until the program gave up (EINPROGRESS)",
    ),
    words(
        r"[Tt]ransport endpoint is not connected(?!: ['\"]?/)",
        ("peer-died-timeout", 0.55),
        ("storage-fault", 0.42),
        because="a connection, or a mount, that is gone (ENOTCONN)",
    ),
    words(
        r"[Cc]onnection reset by peer|[Bb]roken pipe|[Cc]onnection closed by|ECONNRESET|EPIPE|[Ss]ocket closed",
        ("peer-died-timeout", 0.58),
        ("firewall-ports", 0.35),
        because="the other end is gone (ECONNRESET)",
    ),
    # A lock on a file that two ranks open (flock(2)); a file system that keeps no locks (fcntl(2)).
    words(
        r"unable to lock file, errno = 11\b",
        (APPLICATION, 0.58),
        ("storage-fault", 0.48),
        because="another process of the job, or an earlier one, has the file open and locked",
    ),
    words(
        r"[Ss]tale (?:NFS )?file handle|ESTALE|(?<!:)[Tt]ransport endpoint is not connected"
        r"|[Rr]ead-only file system|[Rr]emote I/O error|[Ii]nput/output error"
        r"|unable to lock file, errno = (?!11\b)\d|[Ff]ile locking failed",
        ("storage-fault", 0.58),
        ("disk-full", 0.3),
        because="a file system failed (EIO, ESTALE, EROFS)",
    ),
    words(
        r"basic_ios::clear|ios_base::failure|\biostream error\b",
        ("disk-full", 0.57),
        ("storage-fault", 0.5),
        because="a file could not be written to its end",
    ),
    words(
        r"cannot open shared object file|[Ll]ibrary not loaded|DLL load failed",
        ("missing-library", 0.5),
        ("env-not-propagated", 0.42),
        because="the loader does not find a library",
    ),
    words(
        r"undefined symbol|symbol lookup error|version `[\w.]+' not found",
        ("multi-python", 0.58),
        ("missing-library", 0.48),
        ("nccl-version-mismatch", 0.4),
        because="libraries of two installations are mixed",
    ),
    words(
        r"\bexec(?:ve|vp|v|l|lp)?\(\).{0,120}No such file",
        ("env-not-propagated", 0.57),
        (APPLICATION, 0.5),
        ("missing-library", 0.4),
        because="the program to start is not there, or not on this host's PATH (ENOENT)",
    ),
    words(
        r"(?:: command not found|: not found)$|[Nn]o such command",
        ("env-not-propagated", 0.56),
        ("missing-library", 0.4),
        because="the shell of the job does not find a program",
    ),
    words(
        r"(?i)\b(?:exit(?:ed)?|return(?:ed)?|terminated|finished)\b(?: with)?(?: non-zero)?(?: exit)?"
        r"[ -]?(?:status|code|value)?[:=]? ?\(?127\b",
        ("env-not-propagated", 0.57),
        ("missing-library", 0.45),
        because="the shell of the job did not find a program (exit status 127)",
    ),
    words(
        r"\b[Bb]ad address\b",
        (APPLICATION, 0.56),
        ("gdr-peermem", 0.48),
        ("storage-fault", 0.4),
        because="memory that the system was given cannot be used (EFAULT)",
    ),
    words(
        r"\b[Bb]us error|(?<!,)\bSIGBUS\b(?!,)",
        ("shm-too-small", 0.58),
        ("host-oom", 0.4),
        because="memory that was mapped is not there (SIGBUS)",
    ),
    words(
        r"certificate (?:is not yet valid|has expired)|[Cc]lock skew|out of sync clocks"
        r"|\b(?:[Tt]ime\w*|[Dd]ated?|[Cc]lock|issued|valid|m?time|[\d.]+ ?s(?:ec\w*)?) "
        r".{0,40}\bin the future\b",
        ("clock-skew", 0.58),
        because="clocks of hosts differ",
    ),
    words(
        r"\[Errno 2\].{0,40}'/|'/[^']{1,200}', errno ?[=:] ?2\b",
        (APPLICATION, 0.56),
        ("storage-fault", 0.52),
        because="a file is not there: a wrong path, or a file system that this host does not have (ENOENT)",
    ),
    words(
        r"\[Errno 2\]|\berrno ?[=:] ?2\b",
        (APPLICATION, 0.6),
        ("storage-fault", 0.4),
        because="a file is not there (ENOENT)",
    ),
    words(
        r"[Pp]ermission denied|EACCES|[Oo]peration not permitted",
        ("storage-fault", 0.45),
        (APPLICATION, 0.44),
        because="the user may not do this (EACCES)",
    ),
    words(
        r"\b[Hh]ost is down\b|EHOSTDOWN",
        ("network-unreachable", 0.57),
        ("peer-died-timeout", 0.46),
        because="the host does not answer at all (EHOSTDOWN)",
    ),
    words(
        r"[Cc]annot assign requested address|EADDRNOTAVAIL",
        ("wrong-interface", 0.57),
        ("loopback-hostname", 0.45),
        ("hostname-unresolvable", 0.35),
        because="an address that this host does not have (EADDRNOTAVAIL)",
    ),
    words(
        r"Software caused connection abort|ECONNABORTED",
        ("firewall-ports", 0.5),
        ("peer-died-timeout", 0.48),
        because="the connection was given up on the way (ECONNABORTED)",
    ),
    words(
        r"[Aa]ddress family not supported|EAFNOSUPPORT",
        ("ipv6-issue", 0.5),
        ("wrong-interface", 0.42),
        because="an address of a family that this host does not have (EAFNOSUPPORT)",
    ),
    words(
        r"[Dd]evice or resource busy|EBUSY",
        ("stale-process", 0.56),
        (APPLICATION, 0.4),
        because="somebody else holds it (EBUSY)",
    ),
    words(
        r"[Nn]o such device\b|ENODEV|ENXIO",
        ("container-gpu-runtime", 0.46),
        ("ib-misconfig", 0.44),
        ("gpu-hardware-xid", 0.4),
        because="a device is not there, or not for this process (ENODEV)",
    ),
    words(
        r"[Rr]esource temporarily unavailable|EAGAIN",
        ("host-oom", 0.46),
        ("nofile-limit", 0.44),
        (APPLICATION, 0.4),
        because="a limit on processes, threads or memory (EAGAIN)",
    ),
    words(
        r"[Ee]xec format error|[Ii]llegal instruction|SIGILL|ENOEXEC"
        r"|[Ee]xit(?:ed with exit|ed with)? (?:code|status):? 132\b",
        (APPLICATION, 0.5),
        ("multi-python", 0.46),
        because="a program that was built for another machine (ENOEXEC, SIGILL)",
    ),
    words(
        r"DEADLINE_EXCEEDED|[Dd]eadline [Ee]xceeded|TimeoutError|[Tt]imed out"
        r"|[Tt]ime-?out (?:exceeded|expired|reached|occurred|waiting)|did not respond|[Nn]o response from",
        ("peer-died-timeout", 0.5),
        ("firewall-ports", 0.46),
        ("rank-mismatch", 0.42),
        because="no answer came in the time allowed",
    ),
)
# Programs that print the number alone; of the small ones only those that are seldom a code of another kind.
_ERRNO = r"\((?:error|errno|err)[ :=]{1,3}(?P<errno>\d{1,3}) ?\)"
_NUMBERS = {
    "24": "EMFILE",
    "28": "ENOSPC",
    "98": "EADDRINUSE",
    "99": "EADDRNOTAVAIL",
    "101": "ENETUNREACH",
    "103": "ECONNABORTED",
    "104": "ECONNRESET",
    "110": "ETIMEDOUT",
    "111": "ECONNREFUSED",
    "112": "EHOSTDOWN",
    "113": "EHOSTUNREACH",
    "116": "ESTALE",
}
_ALL = (*NARROW, *_MEANINGS, *PLAIN, *ENDED)


def meaning_of(text: str) -> Words | None:
    """Return the words in a line that say why something failed, None where it has none.

    Args:
        text: the line; a number in brackets, as in "(error: 98)", is read as the system's word for it.
    """
    number = compiled(_ERRNO).search(text)
    word = _NUMBERS.get(number["errno"]) if number else None
    return (_first(_MEANINGS, word) if word else None) or _first(_ALL, text)


def is_of_an_end(meaning: Words) -> bool:
    """Return whether words say only that a process was ended."""
    return meaning in ENDED


def is_plain(text: str) -> bool:
    """Return whether a line names in plain English what failed, whatever else it is."""
    return _first((*NARROW, *PLAIN), text) is not None


def _first(table: Iterable[Words], text: str) -> Words | None:
    return next((refusal for refusal in table if compiled(refusal.pattern).search(text)), None)
