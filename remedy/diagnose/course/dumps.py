"""Logs that are no text: what the dump of a flight recorder says of its rank, and nothing of any other data."""

from __future__ import annotations

from collections.abc import Iterable

from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.course.behind import RECORDER
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.states import recorder
from remedy.diagnose.states.recorder import Collective
from remedy.errors import UsageError

_WAITS = CauseWeight(label="peer-died-timeout", weight=0.8)
_HINT = CauseWeight(label="peer-died-timeout", weight=0.3)


def scan_dump(name: str, blocks: Iterable[bytes]) -> LogScan:
    """Read a dump of a flight recorder.

    Args:
        name: of the file, which holds the rank.
        blocks: its bytes.
    """
    data, trouble = bytearray(), ""
    for block in blocks:
        data += block
        if len(data) > recorder.LARGEST:
            trouble = f"a dump of more than {recorder.LARGEST >> 20} MiB is not read"
            break
    collectives: tuple[Collective, ...] = ()
    if not trouble:
        try:
            collectives = recorder.collectives(bytes(data))
        except UsageError as error:
            trouble = error.message
    rank = recorder.rank_of(name)
    return LogScan(
        name=name,
        events=[_event(name, rank, collective) for collective in collectives],
        tail="",
        lines=1,
        size=len(data),
        trouble=trouble,
        is_whole=not trouble,
    )


def of_no_text(name: str, size: int) -> LogScan:
    """Return what is read of a file that is no text: nothing, and that it is none.

    Args:
        name: of the file.
        size: bytes that were looked at.
    """
    return LogScan(name, [], tail="\ufffd", lines=0, size=size, trouble="", is_whole=False)


def _event(name: str, rank: int | None, collective: Collective) -> Event:
    what = f"collective {collective.sequence} {collective.operation}".rstrip()
    what += f" of {collective.group}" if collective.group else ""
    if collective.is_done:
        text = f"flight recorder: completed {what}, and waits in none after it"
    else:
        size = f", size {collective.size}" if collective.size else ""
        text = f"flight recorder: waits in {what} ({collective.state}{size})"
    return Event(
        symptom=RECORDER,
        role=Role.SIGN if collective.is_done else Role.CONSEQUENCE,
        source=name,
        line=1,
        text=text,
        rank=rank,
        process=rank,
        host="",
        time=None,
        details={
            "sequence": str(collective.sequence),
            "operation": collective.operation,
            "group": collective.group,
            "ranks": ",".join(map(str, collective.ranks)),
            "size": collective.size,
            "between_two": "yes" if collective.is_between_two else "",
        },
        causes=(_HINT if collective.is_done else _WAITS,),
        meaning="how far this rank came in the collectives of a group.",
    )
