"""Ranks of whose end the logs say nothing, beside others that ended well: whose success is not theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from remedy.diagnose.endings.ends import shows_an_end
from remedy.diagnose.lines import rank_of_file
from remedy.diagnose.scanner.job_setting import together
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.text import listed

EARLY = 0.9  # of the steps of the others: who made fewer of them stopped before they did
LEAST = 10  # steps that are missing

_STREAM = re.compile(r"(?:^|[/._-])(?:std)?(?:err|out)(?:\.\w{1,4})?$")


def unheard(scans: Sequence[LogScan]) -> tuple[str, ...]:
    """Return sentences about logs that are empty, that stop before the others, or that are not there.

    Args:
        scans: every log of the run.
    """
    if len(scans) < 2:
        return ()
    return (*_empty(scans), *_early(scans), *_absent(scans))


def _empty(scans: Sequence[LogScan]) -> Iterator[str]:
    """Yield the logs in which nothing stands; a stream of output often has nothing."""
    for scan in scans:
        if not (scan.size or scan.trouble or _STREAM.search(scan.name)):
            yield f"{scan.name}: is empty"


def _early(scans: Sequence[LogScan]) -> Iterator[str]:
    """Yield the logs whose steps end before those of others, and that show no end."""
    last = {scan.name: _last_step(scan) for scan in scans}
    most = max(last.values())
    for scan in scans:
        step = last[scan.name]
        if 0 < step < min(EARLY * most, most - LEAST) and not shows_an_end([scan]):
            yield f"{scan.name}: its steps end at {step}, those of another log at {most}"


def _last_step(scan: LogScan) -> int:
    """Return the number of the last step of a log, 0 where its steps have none."""
    return next((step.count for step in reversed(scan.steps) if step.count is not None), 0)


def _absent(scans: Sequence[LogScan]) -> Iterator[str]:
    """Yield the ranks that have no log where every log is named by its rank."""
    ranks = {rank_of_file(scan.name) for scan in scans if not _STREAM.search(scan.name)}
    world = together(scan.setting for scan in scans).world
    if None in ranks or not ranks or world <= len(ranks) or max(r or 0 for r in ranks) >= world:
        return
    missing = [str(rank) for rank in range(world) if rank not in ranks]
    yield f"no log of rank{'s' * (len(missing) > 1)} {listed(missing)} (of {world} ranks)"
