"""What a failure can be by when it came: ranks that have made steps together had met before.

So had two ends of a connection that was lost: no firewall refuses it later that was there from the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import CERTAIN
from remedy.diagnose.scanner.log_scan import Event, LogScan

# Causes for which ranks do not meet at all.
OF_A_START = frozenset(
    (
        "duplicate-hostname",
        "firewall-ports",
        "hostname-unresolvable",
        "ipv6-issue",
        "loopback-hostname",
        "rank-mismatch",
        "wrong-interface",
    )
)
AFTER_STEPS = 0.7  # of the weight that such a cause has in a start
# Not by a peer that was never reached: gloo and NCCL print "closed" of a connection that they are still making.
_LOST = re.compile(
    r"\b[Cc]onnection (?:to \S{1,80} )?(?:was |has been )?(?:closed by server|lost)\b|\b[Ll]ost connection\b"
)
STEPS = 2  # of one log, so that no lone number passes for the work of a job


def in_phase(events: Iterable[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Return the events with the causes of a start weighed down where their log reports steps before.

    Args:
        events: of all logs.
        scans: the logs.
    """
    events = list(events)
    working = {scan.name: scan.steps[STEPS - 1].line for scan in scans if len(scan.steps) >= STEPS}
    for event in events:
        if _LOST.search(event.text):
            working[event.source] = min(event.line, working.get(event.source, event.line))
    return [
        replace(event, causes=tuple(map(after_steps, event.causes)))
        if event.line > working.get(event.source, event.line)
        else event
        for event in events
    ]


def after_steps(cause: CauseWeight) -> CauseWeight:
    """Return a cause with the weight that it has after steps of a job.

    Args:
        cause: of a text.
    """
    # A text that is certain says so whenever it comes.
    if cause.label not in OF_A_START or cause.weight >= CERTAIN:
        return cause
    return cause.model_copy(update={"weight": round(cause.weight * AFTER_STEPS, 3)})
