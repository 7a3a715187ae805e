"""Paths that one process lacks and another has: of a file system that is not mounted on each host."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from remedy.diagnose import lines
from remedy.diagnose.endings.progress import reports_failure
from remedy.diagnose.scanner.exceptions import is_named
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.sessions import is_typed

# The places of a line: its log, its host ("" if unknown) and its process.
Place = tuple[str, str, lines.Process]
_PATH = re.compile(r"""['" ](?P<path>/[^'":;\n]{4,200})""")


def used_elsewhere(events: Sequence[Event], scans: Sequence[LogScan]) -> Callable[[Event], bool]:
    """Return what says of an exception whether another process uses the path that it lacks.

    Args:
        events: of all logs: who lacks the path, too, does not use it.
        scans: the logs.
    """
    users: dict[str, frozenset[Place]] = {}
    lacking: dict[str, frozenset[Place]] = {}

    def is_elsewhere(event: Event) -> bool:
        match = _PATH.search(event.text)
        if match is None:
            return False
        path = match["path"]
        if path not in users:
            users[path] = frozenset(_users(path, scans))
            lacking[path] = frozenset(_place(other) for other in events if path in other.text)
        others = (_place(event), *lacking[path])
        return any(all(_differ(place, other) for other in others) for place in users[path])

    return is_elsewhere


def _users(path: str, scans: Iterable[LogScan]) -> Iterator[Place]:
    """Yield the places of the lines that name a path and report no failure."""
    for scan in scans:
        for line in scan.tail.splitlines():
            if path in line and not (is_typed(line) or is_named(line) or reports_failure(line)):
                parts = lines.split(line[: lines.WIDEST])
                yield scan.name, parts.host, parts.process


def _place(event: Event) -> Place:
    return event.source, event.host, event.process


def _differ(place: Place, other: Place) -> bool:
    """Return whether two places are surely of different processes: what is not known is no difference."""
    if place[0] != other[0]:
        return True
    hosts, processes = {place[1], other[1]}, {place[2], other[2]}
    return len(hosts - {""}) == 2 or (len(processes - {None}) == 2 and len(hosts) == 1)
