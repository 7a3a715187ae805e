"""Which collective each rank waited for when its time was up, and whether anybody of the job did not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from remedy.diagnose.catalogue import Role
from remedy.diagnose.course.behind import COLLECTIVE, RECORDER
from remedy.diagnose.scanner.job_setting import together
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.text import is_number

PLACE = "watchdog-place"  # the entry of the line that names the group of a wait


class Wait(NamedTuple):
    """The first collective that a rank waited for until the time-out.

    Args:
        group: of ranks, as torch numbers it for all of them; "" where the lines do not name it.
        number: of the collective in its group.
        operation: of the collective, "" where the line does not say; ``size`` the same, in elements.
        event: the line.
    """

    group: str
    number: int
    operation: str
    size: str
    event: Event


def waits_of(events: Iterable[Event]) -> Mapping[int, Wait]:
    """Return what each rank waited for first, by rank.

    Args:
        events: of all logs.
    """
    events = list(events)
    groups = {_place(e): e.details.get("process_group", "") for e in events if e.symptom == PLACE}
    waits: dict[int, Wait] = {}
    for event in events:
        number = event.details.get("sequence", "")
        if not is_wait(event) or event.rank is None or not is_number(number):
            continue
        group = event.details.get("process_group") or groups.get(_place(event), "")
        group = group or event.details.get("group", "")
        operation, size = _as_torch_logs(event.details), event.details.get("size", "")
        waits.setdefault(event.rank, Wait(group, int(number), operation, size, event))
    return waits


def is_wait(event: Event) -> bool:
    """Return whether a rank waits for others in a collective, by its watchdog or by a recorder's dump."""
    if event.symptom == RECORDER:
        return event.role is Role.CONSEQUENCE and not event.details.get("between_two")
    return event.symptom == COLLECTIVE


def _as_torch_logs(details: Mapping[str, str]) -> str:
    """Return the name of a collective as torch's watchdog writes it: a recorder has it in small letters."""
    name = details.get("operation", "")
    return name if name.isupper() else name.upper().replace("ALL_", "ALL")


def all_wait(waits: Mapping[int, Wait], scans: Sequence[LogScan]) -> bool:
    """Return whether every rank that the logs show waited: none of them is gone, as far as they go.

    Args:
        waits: by rank.
        scans: the logs.
    """
    listed = (wait.event.details.get("ranks", "").count(",") + 1 for wait in waits.values())
    world = max(together(scan.setting for scan in scans).world, *listed, 0)
    if len(waits) < max(2, world) or set(waits) != set(range(len(waits))):
        return False
    return {scan.name for scan in scans} <= {wait.event.source for wait in waits.values()}


def share_a_group(waits: Collection[Wait]) -> bool:
    """Return whether the lines show that the ranks waited in one group: a number counts in its group alone.

    Args:
        waits: of several ranks.
    """
    return len({wait.group for wait in waits}) == 1 and all(wait.group for wait in waits)


def _place(event: Event) -> tuple[str, int | None, str | None]:
    return event.source, event.rank, event.details.get("sequence")
