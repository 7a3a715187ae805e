"""Editing files of assignments: a managed block, and foreign lines that contradict it.

Four dialects of ``NAME=VALUE`` lines, read as their owner reads them. Works on bytes; what is neither the
block nor a line that must not count comes through byte for byte.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from remedy.edit.block import END, block_span

BEGIN = b"# BEGIN remedy (this block is replaced as a whole)"
DISABLED = b"#remedy disabled# "

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHELL_BREAK = re.compile(r";|&&|\|\||\bthen\b|\bdo\b")
_SHELL_WORD = re.compile(r"""([A-Za-z_][A-Za-z0-9_]*)=("[^"]*"|'[^']*'|[^\s"']*)(?=\s|$)\s*""")
_EXPORT = re.compile(r"(export|readonly|declare\s+-\w*x\w*|typeset\s+-\w*x\w*|SetEnv)\s+")
_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?[-=]([^}$`\\]*)\}")
_SETS_DEFAULT = re.compile(r":\s+[\"']?\$\{([A-Za-z_][A-Za-z0-9_]*):?=([^}$`\\]*)\}")


class Dialect(str, enum.Enum):
    """Who reads the file.

    PAM is /etc/environment (pam_env(8)): a later line wins, "#" begins a comment anywhere, one pair of quotes
    goes. NCCL is nccl.conf (src/misc/param.cc): an earlier line wins, nothing is trimmed, "#" counts in the
    first column only. MCA is Open MPI's (docs/mca.rst) and UCX ucx.conf: blanks around "=" go, a later line
    wins.
    """

    PAM = "pam"
    NCCL = "nccl"
    MCA = "mca"
    UCX = "ucx"

    @property
    def first_wins(self) -> bool:
        """Return whether of two lines for one name the earlier counts."""
        return self is Dialect.NCCL

    @property
    def on_top(self) -> bool:
        """Return whether a new block goes to the top: where the first wins, or sections may follow."""
        return self in (Dialect.NCCL, Dialect.UCX)


@dataclass(frozen=True)
class Assignment:
    """A line that counts: its number from 1, name and value; ``ours`` when it is in the managed block."""

    line: int
    name: str
    value: str
    ours: bool = False


def assignments(content: bytes, dialect: Dialect) -> tuple[Assignment, ...]:
    """Return every assignment of a file, in its order."""
    lines = content.splitlines(keepends=True)
    first, last = block_span(lines, BEGIN) or (len(lines), len(lines))
    result = []
    for index, line in enumerate(lines):
        pair = _PARSERS[dialect](line.decode("utf-8", "surrogateescape"))
        if pair is not None:
            result.append(Assignment(index + 1, *pair, ours=first < index < last))
    return tuple(result)


def effective(lines: Collection[Assignment], dialect: Dialect) -> dict[str, Assignment]:
    """Return the assignment that decides each name."""
    ordered = reversed(list(lines)) if dialect.first_wins else lines
    return {assignment.name: assignment for assignment in ordered}


def disabled(content: bytes, dialect: Dialect) -> tuple[Assignment, ...]:
    """Return the assignments of the lines that ``edit`` disabled."""
    result = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith(DISABLED):
            pair = _PARSERS[dialect](line[len(DISABLED) :].decode("utf-8", "surrogateescape"))
            if pair is not None:
                result.append(Assignment(number, *pair))
    return tuple(result)


def edit(
    content: bytes, block: bytes, sole_values: Mapping[str, str | None], dialect: Dialect
) -> bytes:
    """Put the managed block into a file, and disable foreign lines.

    Args:
        content: the file as it is.
        block: the lines of the block; b"" removes the block.
        sole_values: names whose foreign lines must not count, with the value that may stay (None: none may).
        dialect: who reads the file.
    """
    lines = content.splitlines(keepends=True)
    span = block_span(lines, BEGIN)
    new_block = b"".join([BEGIN, b"\n", block, END, b"\n"]) if block else b""
    out: list[bytes] = []
    for index, line in enumerate(lines):
        if span is not None and span[0] <= index <= span[1]:
            if index == span[0]:
                out.append(new_block)
            continue
        if line.strip() in (BEGIN, END):
            continue  # half of a torn block; its other lines count as foreign
        pair = _PARSERS[dialect](line.decode("utf-8", "surrogateescape"))
        if pair is not None and pair[0] in sole_values and pair[1] != sole_values[pair[0]]:
            line = DISABLED + line
        out.append(line)
    if span is None and new_block:
        if dialect.on_top:
            return b"".join([new_block, *out])
        if out and not out[-1].endswith((b"\n", b"\r")):
            out.append(b"\n")
        out.append(new_block)
    return b"".join(out)


def shell_assignments(line: str) -> tuple[tuple[str, str], ...]:
    """Return what a line of a shell start-up file (or SetEnv of sshd_config) leaves set.

    A value that the shell computes is left out: only the host knows it. Of ``${NAME:-VALUE}`` the value counts,
    which jobs get where nothing else was set.
    """
    if line.lstrip().startswith("#"):
        return ()
    result: list[tuple[str, str]] = []
    for part in _SHELL_BREAK.split(line):
        text = part.strip()
        if default := _SETS_DEFAULT.match(text):
            result.append((default[1], default[2]))
            continue
        exported = _EXPORT.match(text)
        text = text[exported.end() :] if exported else text
        pairs = []
        while match := _SHELL_WORD.match(text):
            default = _DEFAULT.fullmatch(value := match[2].strip("\"'"))
            pairs.append((match[1], default[2] if default and default[1] == match[1] else value))
            text = text[match.end() :]
        if text and not text.startswith("#"):
            continue  # set for that one command, or no assignment at all
        result += [(name, value) for name, value in pairs if not set(value) & set("$`\\")]
    return tuple(result)


def _pam(line: str) -> tuple[str, str] | None:
    """Read a line as pam_env does; seen on Debian 12: ``A = b`` sets nothing, ``A="x`` drops the quote."""
    text = line.split("#", 1)[0].strip(" \t\r\n").removeprefix("export ")
    name, equals, value = text.strip(" \t").partition("=")
    if not equals or not _NAME.match(name):
        return None
    if value[:1] in ('"', "'"):
        value = value[1:-1] if len(value) > 1 and value[-1] == value[0] else value[1:]
    return name, value


def _nccl(line: str) -> tuple[str, str] | None:
    text = line.rstrip("\r\n")
    name, equals, value = text.partition("=")
    return None if line.startswith("#") or not equals or not name else (name, value)


def _trimmed(line: str) -> tuple[str, str] | None:
    name, equals, value = line.split("#", 1)[0].partition("=")
    name = name.strip()
    return (name, value.strip()) if equals and _NAME.match(name) else None


_PARSERS: Mapping[Dialect, Callable[[str], tuple[str, str] | None]] = {
    Dialect.PAM: _pam,
    Dialect.NCCL: _nccl,
    Dialect.MCA: _trimmed,
    Dialect.UCX: _trimmed,
}


def untrimmed(lines: Collection[Assignment]) -> Iterator[Assignment]:
    """Yield lines of nccl.conf that do not set the variable, or the value, that they seem to.

    NCCL neither trims nor unquotes: ``NCCL_DEBUG = INFO`` sets a variable whose name ends in a blank.
    """
    for line in lines:
        if line.name != line.name.strip() or line.value != line.value.strip(" \t\"'"):
            yield line
