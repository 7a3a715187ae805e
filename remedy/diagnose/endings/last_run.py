"""Logs to which several runs were appended: those before the last that ended well are no part of it."""

from __future__ import annotations

import re
from dataclasses import replace

from remedy.diagnose.endings.ends import ENDED_WELL
from remedy.diagnose.scanner.log_scan import LogScan

# Where the next run begins that is appended to the same log.
_STARTS = re.compile(
    r"^.{0,80}(?:\binit(?:iali[sz]ing)?\b.{0,40}\bworld_size\b|\binit_process_group\b|Bootstrap ?: Using"
    r"|Setting OMP_NUM_THREADS environment variable for each process|Rendezvous'ing worker group"
    r"|^srun: job \d+ queued|distributed_init_method)",
    re.MULTILINE,
)


def of_the_last_run(scan: LogScan) -> LogScan:
    """Return a log from the line on by which a run says that it ended well, where another begins below it.

    Args:
        scan: the log.
    """
    start = max((match.start() for match in _STARTS.finditer(scan.tail)), default=0)
    ends = ENDED_WELL.finditer(scan.tail, 0, start)
    end = max((match.end() for match in ends), default=0)
    if not end:
        return scan
    tail = scan.tail[end:].partition("\n")[2]
    before = scan.lines - tail.rstrip("\n").count("\n") - 1
    return replace(
        scan,
        tail=tail,
        events=[event for event in scan.events if event.line > before],
        steps=tuple(step for step in scan.steps if step.line > before),
    )
