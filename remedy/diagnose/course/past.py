"""What the log of a host reports that was over before the job failed: from days before, or amid its steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

from remedy.diagnose.catalogue import CLEAR, Role
from remedy.diagnose.course.levels import as_hint
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.endings.ends import line_of_good_end, went_well
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.parts import is_of_hosts
from remedy.diagnose.scanner.rows import numbered_rows

ZONES = 15 * 3600.0  # seconds by which the clocks of two logs can differ
ZONE = 900.0  # seconds: time zones differ by a quarter of an hour, and by multiples of it
STEPS = 2  # that can be printed late, or be under way, when a host fails
HALF_AN_HOUR = 1800.0  # the usual difference between zones, and its multiples
SERIOUS = 0.8  # what weighs so much is said, unless the job was completed and reports no failure
MARGIN = 60.0  # seconds by which clocks differ beside that, and that a failure takes to show

_FAILURES = frozenset((Role.CAUSE, Role.APPLICATION))
# A process that was killed, or ended; what else a host's log reports can last.
_OVER_AT_ONCE = frozenset(("host-oom", "peer-died-timeout", APPLICATION))
# A card that was lost stays so until somebody resets it.
_LASTS = re.compile(r"fallen off the bus|GPU is lost|RmInitAdapter failed|\bXid [^\n]{0,40}: 79\b")
# The last line of what dmesg and journalctl print.
_OF_A_HOST = re.compile(
    r"(?:^|\n)(?:\[[\w: .]{10,40}\] \w"
    r"|\w{3} +\d{1,2} [\d:]{8} \S{1,80} [\w./-]{1,60}(?:\[\d{1,8}\])?: )[^\n]*\s*\Z"
)


def without_the_past(scans: Sequence[LogScan]) -> list[LogScan]:
    """Return the logs without what those of hosts report from long before the job, or before its last steps.

    Clocks of logs can differ by their zones: what is most of a day older than the job is known to be, and what
    lies amid its steps by no difference of zones. What came before the job by its own clock, and is near
    its end by no other, is a hint, unless it lasts.

    Args:
        scans: every log of the run.
    """
    hosts = {scan.name for scan in scans if is_of_hosts(scan.name) or _OF_A_HOST.search(scan.tail)}
    others = [scan for scan in scans if scan.name not in hosts]
    begins = [scan.begin for scan in others if scan.begin is not None]
    if not begins or not hosts:
        return list(scans)
    oldest = min(begins) - ZONES
    works = _at_work(others)
    is_before = _before(others)

    def is_over(event: Event) -> bool:
        if event.time is None:
            return False
        return works(event.time) or (event.time < oldest and _is_over_at_once(event))

    is_explained = any(
        event.role is Role.CAUSE and event.weight >= CLEAR
        for scan in others
        for event in scan.events
    )

    def hinting(event: Event) -> Event:
        is_past = (
            event.role in _FAILURES
            and event.time is not None
            and is_before(event.time)
            and not _LASTS.search(event.text)
        )
        # What a program did to its card, it would report itself.
        is_of_another = event.role is Role.APPLICATION and is_explained
        return as_hint(event) if is_past or is_of_another else event

    kept = [_since(oldest, works, is_over, scan) if scan.name in hosts else scan for scan in scans]
    return [
        replace(scan, events=[*map(hinting, scan.events)]) if scan.name in hosts else scan
        for scan in kept
    ]


def all_went_well(scans: Sequence[LogScan], failures: Sequence[Event]) -> bool:
    """Return whether a run was completed, or goes on; one that was completed outlived what its hosts warn of.

    Args:
        scans: every log of the run; none of them reports a failed or killed rank.
        failures: what speaks for a cause.
    """
    jobs = [scan for scan in scans if not is_of_hosts(scan.name)]
    own = [event for event in failures if not is_of_hosts(event.source)]
    is_serious = any(event.weight >= SERIOUS for event in failures if event not in own)
    if is_serious and own:
        return False
    if not is_serious and went_well(scans, failures):
        return True
    ended = [*filter(None, map(_to_its_good_end, jobs))]
    return len(jobs) < len(scans) and len(ended) == len(jobs) and went_well(ended, own)


def _to_its_good_end(scan: LogScan) -> LogScan | None:
    """Return a log up to the first command below the line by which it ended well, None where it did not."""
    end = line_of_good_end(scan)
    if not end:
        return None
    last = next((line for line in scan.commands if line > end), scan.lines + 1) - 1
    first, rows = numbered_rows(scan)
    return replace(scan, lines=last, tail="\n".join(rows[: max(0, last + 1 - first)]))


def _before(scans: Sequence[LogScan]) -> Callable[[float], bool]:
    """Return what says of a time whether it was before a job, and near its end in no zone.

    Args:
        scans: the logs of the job; one of them at least has a time.
    """
    begin = min(scan.begin for scan in scans if scan.begin is not None)
    steps = [step.time for scan in scans for step in scan.steps if step.time is not None]
    failed = [event.time for scan in scans for event in scan.events if event.time is not None]
    first, last = max(steps, default=begin) - MARGIN, max(failed, default=begin) + MARGIN

    def is_before(time: float) -> bool:
        if time >= begin - MARGIN:
            return False
        zones = max(1, ceil((first - time) / HALF_AN_HOUR))
        return zones * HALF_AN_HOUR > ZONES or time + zones * HALF_AN_HOUR > last

    return is_before


def _at_work(scans: Sequence[LogScan]) -> Callable[[float], bool]:
    """Return what says of a time whether every log with steps made more of them after it, in whatever zone."""
    times = [
        known
        for scan in scans
        if (known := [step.time for step in scan.steps if step.time is not None])
    ]
    enough = [known for known in times if len(known) > STEPS]
    if not enough or len(enough) < len(times):
        return lambda _: False
    last = min(known[-1] for known in enough)
    until = min(known[-1 - STEPS] for known in enough)
    pauses = (later - earlier for known in enough for earlier, later in pairwise(known))
    near = STEPS * max(pauses) + MARGIN

    def works(time: float) -> bool:
        apart = (time - last) % ZONE
        is_by_zone = apart <= near or apart >= ZONE - near
        return time < until and (time < last - ZONES or not is_by_zone)

    return works


def _since(
    oldest: float, works: Callable[[float], bool], is_over: Callable[[Event], bool], scan: LogScan
) -> LogScan:
    """Return a host's log without what was over; a GPU that was lost stays so, unless the job went on."""
    events = [event for event in scan.events if not is_over(event)]
    is_old = scan.time is not None and (scan.time < oldest or works(scan.time))
    return replace(scan, events=events, tail="" if is_old else scan.tail)


def _is_over_at_once(event: Event) -> bool:
    if event.role is Role.KILLED:
        return True
    return all(cause.label in _OVER_AT_ONCE for cause in event.causes if cause.weight >= CLEAR)
