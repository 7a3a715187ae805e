"""Dumps of torch's flight recorder: how far a rank came in each group of ranks.

Pickles or JSON, of NCCL or gloo (torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp).
The rank stands in the name of the file.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remedy.diagnose import lines
from remedy.errors import UsageError
from remedy.plain_pickle import PlainPickleError, loads

LARGEST = 16 << 20  # bytes of a dump
_LISTS = (list, tuple, Iterator)
_ENTRIES = re.compile(r'"entries"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]+")
_LAST_NUMBER = re.compile(r"(\d{1,5})(?:\.[a-z]\w{0,7}){0,2}$")
_PICKLE = b"\x80"
_UNDER_WAY, _DONE = ("scheduled", "started"), "completed"
MOST_RANKS = 1 << 20
_LARGEST_NUMBER = 1 << 63
_DEEPEST, _WIDEST = 3, 8  # lists of the size of a collective that are shown
# torch sorts its keys: of a long dump the groups come after all the entries.
_KEYS = (b'"pg_config"', b'"pg_status"', b'"collective_seq_id"', b'"profiling_name"')


@dataclass(frozen=True)
class Collective:
    """The last collective of a rank in one group.

    Args:
        group: its description, such as ``default_pg``.
        ranks: that belong to it, by their numbers in the job.
        sequence: its number.
        operation: such as ``all_reduce``; "" where the recorder has it no more.
        state: scheduled, started or completed.
        size: what it takes, as the recorder has it; "" where it has none.
        is_between_two: whether it is a message from one rank to another: these are numbered apart.
    """

    group: str
    ranks: tuple[int, ...]
    sequence: int
    operation: str
    state: str
    size: str = ""
    is_between_two: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it was completed."""
        return self.state == _DONE


def rank_of(name: str) -> int | None:
    """Return the rank that the name of a dump has, None where it has none.

    Args:
        name: of the file; torch puts the rank behind whatever name it was given.
    """
    rank = lines.rank_of_file(name)
    number = _LAST_NUMBER.search(name)
    return int(number[1]) if rank is None and number else rank


def is_dump(head: bytes) -> bool:
    """Return whether a file begins like a dump."""
    if head[:1] == _PICKLE:
        return True
    text = head[: 1 << 16].removeprefix(codecs.BOM_UTF8).lstrip()
    return text[:1] == b"{" and any(key in text for key in _KEYS)


def collectives(data: bytes) -> tuple[Collective, ...]:
    """Return the last collective of each group in a dump.

    Args:
        data: the dump.

    Raises:
        UsageError: it is no dump, or holds more than plain values.
    """
    dump = _of_pickle(data) if data[:1] == _PICKLE else _of_json(data)
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", ()), _LISTS):
        raise UsageError("no dump of torch's flight recorder: it has no entries")
    return tuple(_last_of_groups(dump))


def _of_pickle(data: bytes) -> Any:
    try:
        return loads(data)
    except PlainPickleError as error:
        raise UsageError(
            str(error),
            next_step="Only dumps of torch's flight recorder are read: give the text logs beside it.",
        ) from error


def _of_json(data: bytes) -> Any:
    """Return a dump whose entries are read as they are asked for: all at once take ten times its size."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    begin = _ENTRIES.search(text)
    try:
        if begin is None:
            return json.loads(text)
        ends = (end for _, end in _decoded(text, begin.end()))
        close = text.index("]", max(ends, default=begin.end()))
        dump = json.loads(f"{text[: begin.end()]}{text[close:]}")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the JSON is broken: {error}") from error
    if isinstance(dump, dict):
        dump["entries"] = (entry for entry, _ in _decoded(text, begin.end()))
    return dump


def _decoded(text: str, at: int) -> Iterator[tuple[Any, int]]:
    """Yield the values of a list, each with where it ends.

    Args:
        text: of the dump.
        at: behind the bracket that opens the list.
    """
    decoder = json.JSONDecoder()
    while (at := _next(text, at)) < len(text) and text[at] != "]":
        value, at = decoder.raw_decode(text, at)
        yield value, at


def _next(text: str, at: int) -> int:
    """Return where the next value of a list begins, or its end."""
    between = _BETWEEN.match(text, at)
    return at if between is None else between.end()


def _last_of_groups(dump: Mapping[str, Any]) -> Iterator[Collective]:
    config = dump.get("pg_config")
    groups = [g for g in config.values() if isinstance(g, dict)] if isinstance(config, dict) else []
    by_name = {_text(group.get("name")): group for group in groups}
    # gloo's recorder leaves the name of the only group empty.
    only = groups[0] if len(groups) == 1 else {}
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in dump.get("entries", []):
        if not isinstance(entry, dict):
            continue
        # Of messages between two ranks the last of each pair counts, and only while it is under way.
        place = _group_of(entry), _text(entry.get("profiling_name")) if _of_two(entry) else ""
        if place not in last or _number(entry) >= _number(last[place]):
            last[place] = entry
    for (name, _), entry in last.items():
        state = entry.get("state")
        is_known = state in _UNDER_WAY or (state == _DONE and not _of_two(entry))
        if not is_known or _number(entry) < 0:
            continue
        group = by_name.get(name, only)
        operation = _text(entry.get("profiling_name")).rpartition(":")[2]
        yield Collective(
            group=_described(entry, name)[:80],
            ranks=_ranks(group.get("ranks")),
            sequence=_number(entry),
            operation=operation.split("(")[0][:40],
            state=str(state),
            size=_taken(entry)[:80],
            is_between_two=_of_two(entry),
        )


def _group_of(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group")
    first = group[0] if isinstance(group, (list, tuple)) and group else entry.get("pg_id", "")
    return _text(first)


def _described(entry: Mapping[str, Any], name: str) -> str:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and len(group) == 2 and group[1]:
        return _text(group[1])
    return name


def _text(value: object) -> str:
    """Return a text or a number as text, "" of all else: a list that holds itself twice has no end."""
    if isinstance(value, int):
        return str(value) if abs(value) < _LARGEST_NUMBER else ""
    return value if isinstance(value, str) else ""


def _taken(entry: Mapping[str, Any]) -> str:
    """Return what a collective takes, such as "[[4, 4]] of Float"."""
    kinds = entry.get("input_dtypes")
    kinds = [_text(kind) for kind in kinds[:_WIDEST]] if isinstance(kinds, (list, tuple)) else []
    size = _size(entry.get("input_sizes"))
    return f"{size} of {', '.join(dict.fromkeys(kinds))}" if size and any(kinds) else size


def _size(value: object, depth: int = _DEEPEST) -> str:
    """Return the sizes of what a collective takes, such as "[[4, 4]]"; "" where there are none."""
    if not isinstance(value, (list, tuple)) or not depth:
        return _text(value)
    sizes = ", ".join(_size(part, depth - 1) for part in value[:_WIDEST])
    return f"[{sizes}]" if sizes else ""


def _of_two(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("is_p2p"))


def _number(entry: Mapping[str, Any]) -> int:
    """Return the number of an entry; torch before 2.4 counted all of them as one (``seq_id``)."""
    key = "p2p_seq_id" if _of_two(entry) else "collective_seq_id"
    value = entry.get(key, entry.get("seq_id", -1))
    return value if isinstance(value, int) and abs(value) < _LARGEST_NUMBER else -1


def _ranks(text: object) -> tuple[int, ...]:
    """Return the ranks of a group, which its description holds as text: "[0, 1]"."""
    try:
        ranks = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return ()
    if not isinstance(ranks, list) or not all(
        isinstance(rank, int) and 0 <= rank < MOST_RANKS for rank in ranks
    ):
        return ()
    return tuple(ranks)
