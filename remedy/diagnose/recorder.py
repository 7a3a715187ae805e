"""Dumps of torch's flight recorder: how far a rank came in each group of ranks.

Pickles or JSON, of NCCL or gloo (torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp).
The rank stands in the name of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remedy.errors import UsageError
from remedy.plain_pickle import PlainPickleError, loads

LARGEST = 256 << 20  # bytes of a dump
_PICKLE = b"\x80"
_UNDER_WAY = ("scheduled", "started")
_KEYS = (b'"pg_config"', b'"pg_status"')


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
        return self.state == "completed"


def is_dump(head: bytes) -> bool:
    """Return whether a file begins like a dump."""
    return head[:1] == _PICKLE or (
        head[:1] == b"{" and any(key in head[: 1 << 16] for key in _KEYS)
    )


def collectives(data: bytes) -> tuple[Collective, ...]:
    """Return the last collective of each group in a dump.

    Args:
        data: the dump.

    Raises:
        UsageError: it is no dump, or holds more than plain values.
    """
    if data[:1] == _PICKLE:
        try:
            dump = loads(data)
        except PlainPickleError as error:
            raise UsageError(
                str(error),
                next_step="Only dumps of torch's flight recorder are read: give the text logs beside it.",
            ) from error
    else:
        try:
            dump = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the JSON is broken: {error}") from error
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), (list, tuple)):
        raise UsageError("no dump of torch's flight recorder: it has no entries")
    return tuple(_last_of_groups(dump))


def _last_of_groups(dump: Mapping[str, Any]) -> Iterator[Collective]:
    config = dump.get("pg_config")
    groups = [g for g in config.values() if isinstance(g, dict)] if isinstance(config, dict) else []
    by_name = {str(group.get("name")): group for group in groups}
    # gloo's recorder leaves the name of the only group empty.
    only = groups[0] if len(groups) == 1 else {}
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in dump.get("entries", []):
        if not isinstance(entry, dict):
            continue
        # Of messages between two ranks the last of each pair counts, and only while it is under way.
        place = _group_of(entry), str(entry.get("profiling_name", "")) if _of_two(entry) else ""
        if place not in last or _number(entry) >= _number(last[place]):
            last[place] = entry
    for (name, _), entry in last.items():
        if _of_two(entry) and entry.get("state") not in _UNDER_WAY:
            continue
        group = by_name.get(name, only)
        operation = str(entry.get("profiling_name", "")).rpartition(":")[2]
        yield Collective(
            group=_described(entry, name)[:80],
            ranks=_ranks(group.get("ranks")),
            sequence=_number(entry),
            operation=operation.split("(")[0][:40],
            state=str(entry.get("state", ""))[:20],
            size=str(entry.get("input_sizes") or "")[:80],
            is_between_two=_of_two(entry),
        )


def _group_of(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group")
    first = group[0] if isinstance(group, (list, tuple)) and group else entry.get("pg_id", "")
    return str(first)


def _described(entry: Mapping[str, Any], name: str) -> str:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and len(group) == 2 and group[1]:
        return str(group[1])
    return name


def _of_two(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("is_p2p"))


def _number(entry: Mapping[str, Any]) -> int:
    """Return the number of an entry; torch before 2.4 counted all of them as one (``seq_id``)."""
    key = "p2p_seq_id" if _of_two(entry) else "collective_seq_id"
    value = entry.get(key, entry.get("seq_id", -1))
    return value if isinstance(value, int) else -1


def _ranks(text: object) -> tuple[int, ...]:
    """Return the ranks of a group, which its description holds as text: "[0, 1]"."""
    try:
        ranks = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return ()
    if not isinstance(ranks, list) or not all(isinstance(rank, int) for rank in ranks):
        return ()
    return tuple(ranks)
