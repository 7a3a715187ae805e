"""Ranks that wait for each other: which of them is behind, by the last collective of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from remedy.diagnose.catalogue import Role
from remedy.diagnose.lines import rank_of_file
from remedy.diagnose.scanner.log_scan import Event
from remedy.diagnose.states.recorder import rank_of
from remedy.text import clipped, is_number, listed

COLLECTIVE = "nccl-watchdog"
RECORDER = "flight-recorder"
WAITING = frozenset((COLLECTIVE, RECORDER))
"""The entries of lines in which a rank says what it waits in."""
ALL_RANKS = {"", "default_pg"}  # how a watchdog and a recorder call the group of all ranks
STANDING = "torch-dump-signal"  # the entry of the line in which a rank says how far it came

SAID, SHOWN = 120, 3  # characters of a last line, and logs of which it is shown

_ENDS = re.compile(r"(?:send|recv) (\d{1,6})(?:->|<-)(\d{1,6})")


def ranks_behind(
    events: Sequence[Event], logs: Mapping[str, str], broken: Iterable[str] = ()
) -> str:
    """Say which rank is behind, by the last collective of each; "" where the logs do not show it.

    Args:
        events: of all logs.
        logs: the last line of each that has steps, "" of others, by its name, which may have a rank.
        broken: names of the logs that could not be read to their end: how far their ranks came nobody knows.
    """
    unread = {rank_of(name) for name in broken}
    groups: dict[str, dict[int, _Mark]] = {}
    members: dict[str, set[int]] = {}
    waits: dict[str, set[int]] = {}
    between_two: list[Event] = []
    for event in events:
        number = event.details.get("sequence", "")
        if event.symptom not in WAITING or event.rank is None:
            continue
        if event.details.get("between_two"):
            between_two.append(event)
            continue
        if not is_number(number):
            continue
        group = event.details.get("group", "")
        last = groups.setdefault(group, {})
        mark = _Mark(int(number), event.details.get("operation", ""))
        last[event.rank] = min(last.get(event.rank, mark), mark)
        listed_ranks = event.details.get("ranks", "").split(",")
        members.setdefault(group, set()).update(int(r) for r in listed_ranks if is_number(r))
        if event.symptom == COLLECTIVE or event.role is Role.CONSEQUENCE:
            waits.setdefault(group, set()).add(event.rank)
    if groups.keys() <= ALL_RANKS:
        own = {rank for name in logs if (rank := rank_of_file(name)) is not None}
        for name, last in groups.items():
            members[name] = members[name] or set(range(max((*last, *own)) + 1))
            last.update(_idle(events, last))
    sentences = (
        _behind(groups[name], members[name], name, _elsewhere(waits, name) | unread)
        for name in waits
    )
    return (
        next(filter(None, sentences), "")
        or _unanswered(between_two, set().union(*waits.values()))
        or _quiet(events, logs)
    )


def _quiet(events: Iterable[Event], logs: Mapping[str, str]) -> str:
    """Say which logs report no wait where most do; "" where that says nothing."""
    waiting = {event.source for event in events if event.symptom in WAITING}
    quiet = [name for name, line in logs.items() if line and name not in waiting]
    if not waiting or not quiet or len(quiet) > len(waiting):
        return ""
    ends = (f"{name} ends with {clipped(logs[name], SAID)!r}" for name in quiet)
    return f"what reports no wait comes first: {listed(ends, SHOWN)}"


def _idle(events: Iterable[Event], last: Mapping[int, _Mark]) -> dict[int, _Mark]:
    """Return how far the ranks came that wait for nothing, and are behind those that do.

    Args:
        events: of all logs.
        last: where the others wait.
    """
    marks: dict[int, _Mark] = {}
    for event in events:
        number = event.details.get("completed", "")
        is_idle = event.symptom == STANDING and number == event.details.get("enqueued")
        if is_idle and event.rank is not None and event.rank not in last and is_number(number):
            marks[event.rank] = _Mark(int(number), "")
    least = min((mark.number for mark in last.values()), default=0)
    return {rank: mark for rank, mark in marks.items() if mark.number < least}


def _elsewhere(waits: Mapping[str, Collection[int]], group: str) -> frozenset[int]:
    """Return the ranks that wait in other groups only: it is not they who are awaited in this one."""
    others = {rank for name, ranks in waits.items() if name != group for rank in ranks}
    return frozenset(others - set(waits[group]))


def _unanswered(messages: Sequence[Event], waiting: Collection[int]) -> str:
    """Say which rank did not send, or take, what another waits for; "" where no dump shows it."""
    waiting = {*waiting, *(event.rank for event in messages if event.rank is not None)}
    for event in messages:
        ends = _ENDS.search(event.details.get("operation", ""))
        if ends is None:
            continue
        other = next((int(end) for end in ends.groups() if int(end) != event.rank), None)
        if other is not None and other not in waiting:
            return (
                f"rank {event.rank} waits for rank {other} ({ends[0]}), which does not: "
                "its log and its host come first"
            )
    return ""


class _Mark(NamedTuple):
    """How far a rank came."""

    number: int
    operation: str

    def __str__(self) -> str:
        return f"{self.number} {self.operation}".rstrip()


def _behind(
    last: Mapping[int, _Mark],
    members: Collection[int],
    group: str,
    elsewhere: Collection[int | None],
) -> str:
    """Say which rank of one group is behind, absent, or in another collective than the others.

    Args:
        last: how far each rank came.
        members: of the group, where that is known.
        group: its name.
        elsewhere: ranks that wait in another group, or of which nothing could be read.
    """
    missing = sorted((set(members) or set(range(max(last) + 1))) - set(last) - set(elsewhere))
    of = f" of {group}" if group else ""
    if len(last) > 1 and missing and len(missing) <= len(last):
        return (
            f"{_ranks(sorted(last))} waited in a collective{of}, and {_ranks(missing)} did not say so: "
            "their logs and their hosts come first"
        )
    # Collectives of several groups of ranks are counted apart: only few ranks beside all others say something.
    numbers = {mark.number for mark in last.values()}
    if len(numbers) > 1:
        least = min(numbers)
        few = sorted(rank for rank, mark in last.items() if mark.number == least)
    else:
        counts = Counter(mark.operation for mark in last.values())
        usual = counts.most_common(1)[0][0]
        few = sorted(rank for rank, mark in last.items() if mark.operation != usual)
    others = [mark for rank, mark in last.items() if rank not in few]
    few = [rank for rank in few if rank not in elsewhere]
    if not few or len(few) * 2 > len(last):
        return ""
    stand = "stands" if len(few) == 1 else "stand"
    return (
        f"{_ranks(few)} {stand} at collective {last[few[0]]}{of}, others at {max(others)}: "
        "check the rank first that is behind, or called something else"
    )


def _ranks(numbers: Sequence[int]) -> str:
    word = "rank" if len(numbers) == 1 else "ranks"
    return f"{word} {listed(map(str, numbers))}"
