"""What one probe is asked, and the shell text that asks it."""

from __future__ import annotations

import re
import secrets
import shlex
from functools import lru_cache
from importlib import resources

from pydantic import Field, field_validator

from remedy.probe import blocks as expected
from remedy.probe import searched, sources
from remedy.probe.ranges import ranges
from remedy.secret import shell_hints, shell_pattern
from remedy.spec.cluster import USER
from remedy.values import Record

NAMES_A_CALL = 500
"""Names in one call of getent: with their marks some 15 kB of arguments, far below any limit of exec."""

MOST_LITERAL = 64
"""Names that are written out; more are ranges, which awk on the host writes out."""

LAST_MARK = 0x00FFFFFF
"""Marks are the addresses 0.0.0.1 ... 0.255.255.255; 0.0.0.0 marks the host's own name."""

# The script's parts, in this order: the first sets what the others use, the last runs it all.
PARTS = (
    *("frame", "awake", "machine", "guards", "guests", "files", "places", "network"),
    *("routing", "names", "processes", "firewalls", "packets", "containers"),
    *("accelerators", "software", "boot", "run"),
)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}\Z")


class ProbeRequest(Record):
    """What one probe is asked beyond what it always looks at (``remedy.probe.sources``).

    Args:
        names: host names to resolve there, each once.
        user: as whom they are resolved; "" is the user of the ssh connection.
        files: further files to read whole; absolute paths, shell patterns allowed.
        interpreters: Python interpreters off the PATH whose packages are wanted; absolute paths.
        deadline: seconds that the whole probe may take on the host.
        tool_seconds: seconds that any one foreign tool (nvidia-smi, docker, nft, ...) may take.
        name_seconds: seconds for resolving all the names.
        nonce: marks this run's sections; a new random one by default.
        heads_of: what a line of the host's heads of journals holds where it is of this controller's, as an
            extended regular expression (POSIX); "" for none.
        blocks: of the hosts file, with their marks; a host that has one of them sends the rest of its file.
        asked_at: when the controller asks, by its own clock (epoch nanoseconds), so that the hosts' clocks can
            be compared; 0: they will not be.
    """

    names: tuple[str, ...] = ()
    user: str = Field(default="", pattern=f"^({USER})?$")
    files: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    deadline: int = Field(default=60, ge=1)
    tool_seconds: int = Field(default=10, ge=1)
    name_seconds: int = Field(default=10, ge=1)
    nonce: str = Field(default_factory=lambda: secrets.token_hex(16), pattern=r"^[0-9a-f]{32}$")
    heads_of: str = Field(default="", pattern=r"^[0-9a-f ^|]*$")
    blocks: tuple[bytes, ...] = Field(default=(), repr=False)
    asked_at: int = Field(default=0, ge=0)

    @field_validator("names")
    @classmethod
    def _names_are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [name for name in names if not _NAME.match(name)]
        if wrong:
            raise ValueError(f"not a host name that can be resolved: {wrong[0]!r}")
        return tuple(dict.fromkeys(names))

    @field_validator("blocks")
    @classmethod
    def _blocks_are_marked(cls, blocks: tuple[bytes, ...]) -> tuple[bytes, ...]:
        if blocks:
            expected.marks_of(blocks)
        return tuple(dict.fromkeys(blocks))

    @field_validator("files", "interpreters")
    @classmethod
    def _paths_are_absolute(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [path for path in paths if not path.startswith("/") or "\n" in path or ":" in path]
        if wrong:
            raise ValueError(f"not an absolute path without newline and colon: {wrong[0]!r}")
        return tuple(dict.fromkeys(paths))

    def all_files(self) -> tuple[str, ...]:
        """Return every path and pattern that is read whole, without those below a home directory."""
        return tuple(dict.fromkeys((*sources.FILES, *self.files)))


def mark(position: int) -> str:
    """Return the address that marks the end of the answer to the name at ``position`` (from 1)."""
    if not 0 <= position <= LAST_MARK:
        raise ValueError("more names than marks")
    return f"0.{position >> 16}.{position >> 8 & 255}.{position & 255}"


def render_probe(request: ProbeRequest) -> str:
    """Return the whole script for one host: to be run as ``sh -s`` with this text on stdin.

    Args:
        request: what is asked.

    Returns:
        POSIX shell. Everything from the request is quoted, so it stays data.
    """
    first_line, last_line = expected.marks_of(request.blocks) if request.blocks else ("", "")
    request_values = {
        "nonce": request.nonce,
        "stop_after": str(request.deadline),
        "tool_limit": str(request.tool_seconds),
        "name_limit": str(request.name_seconds),
        "jobs_user": request.user,
        "heads_of": request.heads_of,
        **_names(request.names),
        "block_digests": "\n".join(expected.by_digest(request.blocks)),
        "block_begin": first_line,
        "block_end": last_line,
        "files": "\n".join(request.all_files()),
        "interpreters": "\n".join(request.interpreters),
    }
    return "".join((*_assignments(request_values), _fixed_assignments(), _script()))


def _names(names: tuple[str, ...]) -> dict[str, str]:
    """Return the names with their marks in one group, or as ranges of which the host makes groups."""
    if len(names) > MOST_LITERAL:
        return {"name_groups": "", "name_ranges": "\n".join(ranges(names))}
    group = " ".join(f"{name} {mark(at)}" for at, name in enumerate(names, 1))
    return {"name_groups": group, "name_ranges": ""}


def _assignments(values: dict[str, str]) -> list[str]:
    return [f"{name}={shlex.quote(value)}\n" for name, value in values.items()]


@lru_cache(maxsize=1)
def _fixed_assignments() -> str:
    lines = {
        "home_files": sources.HOME_FILES,
        "scan_files": searched.SCAN_FILES,
        "scan_home_files": searched.SCAN_HOME_FILES,
        "kernel_files": sources.KERNEL_FILES,
        "link_files": sources.LINK_FILES,
        "rdma_files": sources.RDMA_FILES,
        "presence": sources.PRESENCE,
        "file_systems": sources.FILE_SYSTEMS,
    }
    words = {
        "units": sources.UNITS,
        "limit_units": sources.LIMIT_UNITS,
        "programs": sources.PROGRAMS,
        "packages": sources.PACKAGES,
        "daemons": sources.DAEMONS,
    }
    return "".join(
        _assignments(
            {name: "\n".join(items) for name, items in lines.items()}
            | {name: " ".join(items) for name, items in words.items()}
            | {"at_pattern": searched.AT_PATTERN, "outline_pattern": searched.OUTLINE_PATTERN}
            | {"scan_pattern": searched.SCAN_PATTERN, "variable_names": searched.VARIABLES}
            | {"names_a_call": str(NAMES_A_CALL)}
            | {"secret": shell_pattern(), "secret_hints": " ".join(shell_hints())}
        )
    )


@lru_cache(maxsize=1)
def _script() -> str:
    # A shell that reads its script from a pipe (bash does) reads it byte by byte: comments and indentation stay
    # here.
    folder = resources.files("remedy.probe") / "host"
    texts = ((folder / f"{name}.sh").read_text(encoding="utf-8") for name in PARTS)
    lines = (line.strip(" ") for text in texts for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))
