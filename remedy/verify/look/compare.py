"""What two looks at each of a few hosts show: what moved, what is said, where a host differs from the others.

A fault that no remedy knows is mostly one of these: a counter that moves while connections fail, words of a
program, or something that this host has and the others have not. Hosts of a cluster are made alike, so
that what is left after their names and addresses are taken out is short.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from remedy.values import Record
from remedy.verify.look.reading import Look

# What is shown of each section, the sections that decide about packets and programs first.
_SECTIONS: Mapping[str, tuple[str, int]] = {
    "nft": ("rules of nftables", 8),
    "iptables": ("rules of iptables", 8),
    "ip6tables": ("rules of ip6tables", 4),
    "rule": ("routing rules", 4),
    "route": ("routes", 6),
    "way": ("the kernel's way", 4),
    "neighbour": ("neighbours", 4),
    "xfrm": ("policies of IPsec", 6),
    "queue": ("queues", 4),
    "filter": ("filters of traffic control", 6),
    "link": ("the interface", 3),
    "preload": ("/etc/ld.so.preload", 4),
    "environment": ("environment of a session", 6),
    "limit": ("limits of a session", 6),
    "status": ("this process", 4),
    "cgroup": ("limits of its control group", 6),
    "mount": ("mounts", 6),
    "space": ("room", 6),
    "python": ("interpreters", 8),
    "sysctl": ("settings of the kernel", 10),
    "line": ("lines of files", 10),
    "file": ("files that differ", 16),
    "process": ("processes", 10),
}
# What every host has for itself: hardware addresses, ids, counters, times.
_OWN = re.compile(
    r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b|\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b"
    r"|\b(?:pid|uid|cache|expires|refcnt|age|handle|id) \d+\S*|\b\d+(?:\.\d+)?sec\b"
    r"|\bcounter packets \d+ bytes \d+|\[\d+:\d+\]|\buid:\d+|# (?:Generated|Completed) .*|\bbytes \d+"
    r"|@if\d+|\bpkt \d+|^Sent .*|^backlog .*|^new_flow.*"
)
_NAMES = re.compile(r"[\w.:-]+")
# What two hosts count as a matter of course while they are tested.
_ORDINARY = re.compile(
    r"InMsgs$|DefaultTTL|OutRsts|AttemptFails|EstabResets|AbortOn(?:Data|Close|Linger)|DeferAccept"
)
MOVED, STOPPED, WORDS = 14, 6, 8


class HostView(Record):
    """What a close look shows of one host.

    Args:
        host: its name.
        failure: why it could not be looked at.
        moved: counters that moved while the links were tried, rules first.
        stopped: processes that stand still, and tables that are full.
        says: what failed of itself: an interpreter, a way that the kernel does not know.
        differs: what this host has and the others have not, or the reverse.
    """

    host: str
    failure: str = ""
    moved: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing was seen that could explain a failure."""
        return not (self.failure or self.moved or self.stopped or self.says or self.differs)


def compare(
    before: Sequence[Look], after: Mapping[str, Look], names: Mapping[str, str]
) -> tuple[HostView, ...]:
    """Compare the looks at all hosts.

    Args:
        before: the first look at each host.
        after: the second, by host.
        names: what stands for a host in a text (its name, its addresses), each with the host.
    """
    plain = {look.host: _plain(look, names) for look in before}
    return tuple(
        HostView(
            host=look.host,
            failure=look.failure,
            moved=tuple(_moved(look, after.get(look.host)))[:MOVED],
            stopped=tuple(dict.fromkeys(_stopped(look, after.get(look.host))))[:STOPPED],
            says=tuple(_says(look))[:WORDS],
            differs=tuple(
                line
                for line in _differs(look.host, plain)
                if line.partition(", here only: ")[2] not in set(_says(look))
            ),
        )
        for look in before
    )


def _moved(before: Look, after: Look | None) -> Iterator[str]:
    if after is None or not after.lines:
        return
    grown = {
        name: after.counts[name] - before.counts.get(name, 0)
        for name in after.counts
        if after.counts[name] > before.counts.get(name, 0) and not _ORDINARY.search(name)
    }
    # Rules and queues say what they are; a number of the kernel only where it was lost.
    for name, number in sorted(grown.items(), key=lambda item: "." in item[0].split(" ")[0]):
        yield f"{name}: {number} more"


def _stopped(before: Look, after: Look | None) -> Iterator[str]:
    for look in (before, *([after] if after else [])):
        yield from look.lines.get("full", ())
        yield from look.lines.get("stopped", ())


def _says(look: Look) -> Iterator[str]:
    for line in look.lines.get("python", ()):
        if "ended with" in line and "ended with 0" not in line:
            no_torch = "No module named 'torch'" in line
            if not no_torch:
                yield line
        elif "may not be executed" in line:
            yield line
    yield from look.lines.get("space", ())
    for line in look.lines.get("way", ()):
        if re.search(r"RTNETLINK|unreachable|prohibit|blackhole|Invalid|denied| lo ", line):
            yield f"ip route get {line}"


def _plain(look: Look, names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """By section, each line as it reads with everything of the host's own taken out, with the line itself."""

    interface = look.lines.get("interface", ("",))[0]

    def word(match: re.Match[str]) -> str:
        name = match[0].rstrip(":.")
        if name in names:
            return "HOST"
        # What the cluster interface is called is a matter of the slot that its card is in.
        return "INTERFACE" if name == interface else match[0]

    return {
        section: {
            key: line
            for line in look.lines.get(section, ())
            if (key := _NAMES.sub(word, _OWN.sub("", line)).strip(" {}"))
        }
        for section in _SECTIONS
    }


def _differs(host: str, plain: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    others = [name for name in plain if name != host and any(plain[name].values())]
    if not others or not any(plain[host].values()):
        return
    for section, (title, most) in _SECTIONS.items():
        only, lost = _apart(plain[host][section], [plain[name][section] for name in others])
        if section == "file":
            yield from _files(title, only, lost, most)
            continue
        yield from (f"{title}, here only: {line}" for line in only[:most])
        if len(only) > most:
            yield f"{title}: {len(only) - most} more here only"
        # What only one other host has is told there.
        if len(others) > 1:
            yield from (f"{title}, not here: {line}" for line in lost[:most])


def _apart(
    mine: Mapping[str, str], theirs: Sequence[Mapping[str, str]]
) -> tuple[list[str], list[str]]:
    """The lines that no other host has, and those that all others have and this one has not."""
    counted = Counter(key for lines in theirs for key in lines)
    only = [line for key, line in mine.items() if not counted[key]]
    lost = [
        next(lines[key] for lines in theirs if key in lines)
        for key, number in counted.items()
        if number == len(theirs) and key not in mine
    ]
    return only, lost


def _files(title: str, only: Sequence[str], lost: Sequence[str], most: int) -> Iterator[str]:
    changed = list(dict.fromkeys(line.rsplit(" ", 2)[0] for line in (*only, *lost)))
    if changed:
        more = f" and {len(changed) - most} more" if len(changed) > most else ""
        yield f"{title}: {', '.join(changed[:most])}{more}"
