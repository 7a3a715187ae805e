"""What ``nvidia-smi -q``, ``ibstat`` and NCCL's RAS print: blocks of names and values, of one card or rank.

A line of such a block means something only under its heading; so they are recognised by what they hold, and
read as blocks: of each host apart, where pdsh or srun put its name before every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from remedy.diagnose import lines
from remedy.diagnose.lines import Prefix
from remedy.diagnose.states.cards import cards, cards_of_xml
from remedy.diagnose.states.ports import ports
from remedy.diagnose.states.signs import BlockSign, Row
from remedy.verify.onhost import ras_answer

LARGEST = 4 << 20  # bytes that are read
MOST_PREFIXES, MOST_LENGTHS = 20_000, 40  # of what stands before the lines of a file

_MARKS = (
    *(b"NVSMI LOG", b"<nvidia_smi_log>", b"| NVIDIA-SMI ", b"CA '"),
    *(b"Communicators... (", b'"nccl_version"'),
)
_MARK = re.compile(
    r"(?P<before>.{0,120}?)(?:={14}NVSMI LOG={14}|<nvidia_smi_log>|\| NVIDIA-SMI |CA '[\w.-]{1,40}'\s*$"
    r"|Communicators\.\.\. \(|[ \t]*\{?[ \t]*\"nccl_version\"[ \t]*:)"
)
_TIME, OPENING = "\0", 240
_RAS = re.compile(r'\s*\{\s*"nccl_version"\s*:')
_RAS_TEXT = re.compile(r"^Communicators\.\.\. \(", re.MULTILINE)
_INSIDE = frozenset(" \t}+|=<")  # how the last line of such a thing begins
_FIELD = re.compile(r"[ \t]+\w[^:]{0,80}:(?: |$)|  Rank \d{1,9} -- ")
# Of what they hold, lines that begin at the margin mean something by themselves.
_OF_NO_FIELDS = re.compile(r"\| NVIDIA-SMI ")


def signs_of(data: bytes) -> tuple[BlockSign, ...]:
    """Return what is wrong by the blocks that the beginning of a file holds; nothing where it holds none.

    Args:
        data: the beginning of the file.
    """
    return tuple(
        replace(sign, details={**_of_host(prefix), **sign.details})
        for prefix, rows in _texts(data).items()
        for sign in _signs(rows)
    )


def is_state(data: bytes, tail: str) -> bool:
    """Return whether a file is what a tool printed of the state of a host or a job, and no log of a run.

    Many a job prints such a thing first, and its own lines after it: these begin at the margin.

    Args:
        data: the beginning of the file.
        tail: its last lines.
    """
    return any(_ends_inside(prefix, tail) for prefix in _texts(data))


def _ends_inside(prefix: Prefix, tail: str) -> bool:
    empty = {"", "".join(prefix.parts).rstrip()}
    last = next((row for row in reversed(tail.split("\n")) if row.rstrip() not in empty), "")
    end = prefix.end(last)
    return end is not None and last[end : end + 1] in _INSIDE


def fields_of(data: bytes) -> frozenset[int]:
    """Return the numbers of the lines that are fields of such blocks: alone they mean nothing.

    Args:
        data: the beginning of the file.
    """
    return frozenset(
        number
        for rows in _texts(data).values()
        if any(
            (mark := _MARK.match(line)) and not _OF_NO_FIELDS.match(line, mark.end("before"))
            for _, line in rows
        )
        for number, line in rows
        if _FIELD.match(line)
    )


def _signs(rows: Sequence[Row]) -> Iterator[BlockSign]:
    yield from cards(rows)
    yield from cards_of_xml(rows)
    yield from ports(rows)
    text = "\n".join(line for _, line in rows)
    if _RAS.match(text) or _RAS_TEXT.search(text):
        yield from _ranks(text, rows)


def _of_host(prefix: Prefix) -> Mapping[str, str]:
    host = lines.split(f"{''.join(prefix.parts)}-").host
    return {"host": host} if host else {}


def _texts(data: bytes) -> Mapping[Prefix, Sequence[Row]]:
    """Return the lines of each such text without what stands before each of them, by that."""
    if not any(mark in data for mark in _MARKS):
        return {}
    rows = data[:LARGEST].decode("utf-8", "replace").split("\n")
    # By their text with a sign in place of each time, which is another one on each line.
    known: dict[str, Prefix] = {}
    for match in filter(None, map(_MARK.match, rows)):
        if len(known) < MOST_PREFIXES:
            before = lines.before(match["before"])
            known[_TIME.join(before.parts)] = before
    lengths = sorted({len(text) for text in known})[-MOST_LENGTHS:]
    texts: dict[Prefix, list[Row]] = {prefix: [] for prefix in known.values()}
    for number, row in enumerate(rows, 1):
        opening = _TIME.join(lines.before(row[:OPENING]).parts)
        for length in lengths:
            prefix = known.get(opening[:length])
            end = None if prefix is None else prefix.end(row)
            if prefix is not None and end is not None:
                texts[prefix].append((number, row[end:].rstrip("\r")))
    return texts


def _ranks(answer: str, rows: Sequence[Row]) -> Iterator[BlockSign]:
    """Yield the ranks that NCCL's RAS misses in a job, or that are behind.

    Ranks of a job at work are an operation apart from time to time: to be behind once is no more than a hint.
    """
    for rank in ras_answer.ranks_of(answer):
        is_behind = rank.state == ras_answer.BEHIND
        says = (
            f"launched {rank.launched} operations, fewer than others" if is_behind else rank.state
        )
        where = f" (process {rank.pid} on {rank.node})" if rank.pid and rank.node else ""
        details = {"rank": str(rank.rank), "pid": rank.pid, "host": rank.node}
        known = {name: value for name, value in details.items() if value}
        text = f"NCCL's RAS: rank {rank.rank}{where}: {says}"
        begins = (f"  Rank {rank.rank} -- ", "  The missing rank")
        line = next((number for number, row in rows if row.startswith(begins)), rows[0][0])
        yield BlockSign(line, text, "peer-died-timeout", 0.59 if is_behind else 0.82, known, True)
