"""What NCCL's RAS service answers: which ranks of a job are missing, or behind the others.

An answer is JSON from NCCL 2.28.7 on, and text for people before. Source: NVIDIA/nccl at 2.30.7, src/ras/
client_support.cc; answers of 2.28.9 were seen on a GPU, where the JSON of a missing rank lacks a comma.

It travels to the host with the agent: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

DEAD, UNRESPONSIVE, MISSING, BEHIND = "dead", "unresponsive", "missing", "behind"

_COMMUNICATOR = re.compile(r"^#\d+-\d+ \([0-9a-f]+\) (\w+)")
_SECTION = re.compile(r"^(INCOMPLETE|DEAD|TIMEOUT)$")
_RANK = re.compile(r"^  Rank (\d{1,9}) -- (?:.* managed by process (\d{1,9}) on node (\S{1,80}))?")
# Up to 2.26 all in one line.
_RANKS = re.compile(r"^  The missing ranks?: ([\d,]+)$")
_AT = re.compile(r"^  \d{1,9} ranks? ha(?:s|ve) launched up to operation (\d{1,18})$")
_RANK_AT = re.compile(
    r"^  Rank (\d{1,9}) has launched up to operation (\d{1,18})"
    r"(?: -- .* managed by process (\d{1,9}) on node (\S{1,80}))?"
)
# Between a value and the next name of an object.
_NO_COMMA = re.compile(r'(?<=[0-9"}\]el])(\s*\n\s*)(?=")')


class RasRank(NamedTuple):
    """A rank that RAS misses, or that launched fewer operations than the others.

    Args:
        rank: its number.
        state: "dead", "unresponsive", "missing" or "behind".
        pid: of its process on its host; "" where the answer does not say.
        node: the address of its host.
        launched: how many operations it launched, where it is behind; -1 else.
    """

    rank: int
    state: str
    pid: str = ""
    node: str = ""
    launched: int = -1


def missing(text: str) -> dict[int, str]:
    """Find the ranks of the largest communicator that RAS misses, each with its state; never raises.

    Args:
        text: an answer, as JSON or for people.

    Returns:
        the state of each, as in ``RasRank``.
    """
    return {rank.rank: rank.state for rank in ranks_of(text)}


def ranks_of(text: str) -> list[RasRank]:
    """Find the ranks of the largest communicator that RAS misses, or that are behind; never raises.

    Args:
        text: an answer, as JSON or for people.
    """
    if not text.lstrip().startswith("{"):
        return _of_text(text)
    try:
        return _of_json(json.loads(_NO_COMMA.sub(r",\1", text)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _of_json(answer: Any) -> list[RasRank]:
    ranks: list[RasRank] = []
    communicators = sorted(
        answer["communicators"], key=lambda communicator: -int(communicator["size"])
    )
    for communicator in communicators[:1]:
        for rank in communicator.get("missing_ranks", ()):
            status = rank.get("status", {})
            dead, mute = status.get("considered_dead"), status.get("unresponsive")
            state = DEAD if dead else UNRESPONSIVE if mute else MISSING
            ranks.append(RasRank(int(rank["rank"]), state, *_place(rank)))
        launched = {
            RasRank(int(rank["rank"]), BEHIND, *_place(rank)): sum(
                map(int, rank.get("collective_counts", {}).values())
            )
            for rank in communicator.get("ranks", ())
        }
        ranks += _behind(list(launched.items()))
    return ranks


def _place(rank: Any) -> tuple[str, str]:
    pid, node = rank.get("pid"), rank.get("host")
    return str(pid) if isinstance(pid, int) else "", str(node)[:80] if isinstance(node, str) else ""


def _behind(launched: list[tuple[RasRank, int]]) -> list[RasRank]:
    """Return the ranks that launched fewer than the most, unless these are most of them.

    One rank alone that is further called something that the others do not: it is not they who are late.
    """
    counts = Counter(count for _, count in launched)
    most = max(counts, default=0)
    few = [rank._replace(launched=count) for rank, count in launched if count < most]
    return few if len(few) <= counts[most] else []


def _of_text(text: str) -> list[RasRank]:
    """Read the blocks ``#0-0 (hash) INCOMPLETE``, of which the first is the largest communicator's."""
    absent: dict[int, RasRank] = {}
    behind: list[RasRank] = []
    for kind, lines in _blocks(text):
        if kind == "INCOMPLETE":
            absent.update((rank.rank, rank) for rank in _absent(lines))
        elif kind == "MISMATCH":
            behind += _late(lines)
    return [*absent.values(), *behind]


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the kind and the lines of each block of the first communicator."""
    kind: str = ""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        head = _COMMUNICATOR.match(line)
        if head or not line.strip() or _SECTION.match(line):
            if kind:
                yield kind, lines
            kind, lines = (head[1] if head and line.startswith("#0-0 ") else ""), []
        else:
            lines.append(line)


def _absent(lines: list[str]) -> Iterator[RasRank]:
    for line in lines:
        single, listing = _RANK.match(line), _RANKS.match(line)
        if single:
            yield RasRank(int(single[1]), MISSING, single[2] or "", single[3] or "")
        for listed in re.findall(r"\d+", listing[1]) if listing else ():
            yield RasRank(int(listed), MISSING)


def _late(lines: list[str]) -> list[RasRank]:
    """Return the ranks that are named with fewer operations than the others, who are only counted."""
    ranks: list[RasRank] = []
    operation, most = -1, 0
    for line in lines:
        at, alone, single = _AT.match(line), _RANK_AT.match(line), _RANK.match(line)
        if at:
            operation = int(at[1])
            most = max(most, operation)
        elif alone:
            place = alone[3] or "", alone[4] or ""
            ranks.append(RasRank(int(alone[1]), BEHIND, *place, int(alone[2])))
        elif single:
            place = single[2] or "", single[3] or ""
            ranks.append(RasRank(int(single[1]), BEHIND, *place, operation))
    return [rank for rank in ranks if rank.launched < most]
