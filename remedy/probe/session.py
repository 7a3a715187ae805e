"""The ssh session that the probe ran in: its user, its programs, its limits and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from remedy.probe.frames import NoAnswerError, Sections
from remedy.values import Record, shared

UNLIMITED = -1
"""A limit that is none (getrlimit(2) RLIM_INFINITY)."""

MOST_VARIABLES = 4_000
"""Lines of an environment; what is in it on any host is compared with all others."""

_LIMIT_NAMES = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max stack size": "stack",
    "Max processes": "nproc",
    "Max core file size": "core",
    "Max address space": "as",
    "Max msgqueue size": "msgqueue",
    "Max realtime priority": "rtprio",
    "Max cpu time": "cpu",
    "Max file size": "fsize",
    "Max data size": "data",
}


class LoginSession(Record):
    """The session of the probe: home directories (the user's first), PATH, and the programs on it by name."""

    uid: int
    homes: tuple[str, ...]
    path: str
    programs: Mapping[str, str]
    present: frozenset[str]

    def has(self, program: str) -> bool:
        """Return whether ``program`` (one of ``sources.PROGRAMS``) is installed."""
        return program in self.programs


class Limit(NamedTuple):
    """A resource limit of this session, in the unit of getrlimit(2); ``UNLIMITED`` where there is none."""

    soft: int
    hard: int


def parse_session(sections: Sections) -> LoginSession:
    """Read section ``session``: a word and its value a line."""
    homes, path, programs, present = [], "", {}, set()
    for line in sections.text("session").splitlines():
        word, _, value = line.partition(" ")
        if word == "home":
            homes.append(value)
        elif word == "path":
            path = value
        elif word == "program":
            name, _, where = value.partition(" ")
            programs[name] = where
        elif word == "present":
            present.add(value)
    return _session(
        effective_uid(sections),
        tuple(dict.fromkeys(homes)),
        path,
        tuple(programs.items()),
        frozenset(present),
    )


@shared
def _session(
    uid: int,
    homes: tuple[str, ...],
    path: str,
    programs: tuple[tuple[str, str], ...],
    present: frozenset[str],
) -> LoginSession:
    return LoginSession(uid=uid, homes=homes, path=path, programs=dict(programs), present=present)


def effective_uid(sections: Sections) -> int:
    """Return the user id that the probe ran as (proc_pid_status(5))."""
    for line in sections.lines("kernel")["/proc/self/status"]:
        if line.startswith("Uid:"):
            return int(line.split()[2])
    raise NoAnswerError("the user that the probe ran as is not in /proc/self/status")


def parse_limits(sections: Sections) -> Mapping[str, Limit]:
    """Read /proc/self/limits: the limits of what this ssh session starts, in bytes or numbers of things."""
    limits = {}
    for line in sections.lines("kernel")["/proc/self/limits"]:
        name = _LIMIT_NAMES.get(line[:26].strip())
        if name:
            soft, hard = (
                UNLIMITED if word == "unlimited" else int(word) for word in line[26:].split()[:2]
            )
            limits[name] = Limit(soft, hard)
    return limits


def parse_environment(sections: Sections) -> Mapping[str, str]:
    """Read section ``environment``: the variables that a command over ssh sees; secrets are "<redacted>"."""
    lines = sections.text("environment").splitlines()
    if len(lines) > MOST_VARIABLES:
        raise NoAnswerError(f"it has more than {MOST_VARIABLES:,} lines")
    pairs = (line.partition("=") for line in lines)
    return {name: value for name, equals, value in pairs if equals}
