"""A process that was killed while its launcher lived: most often the kernel did it, for memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remedy.diagnose.answers import undecided
from remedy.diagnose.diagnosis import Candidate, Diagnosis, sure
from remedy.diagnose.first_failed import first_report
from remedy.diagnose.ranking import quote
from remedy.diagnose.scan import Event, LogScan

MEMORY = "host-oom"
LONE = 0.5
"""How sure it is that the kernel killed a process of which nothing else is known: the text proves nothing."""
SIGKILL = -9
# Open MPI names one process, of a job that it ran until then.
_BY_MPIRUN = re.compile(r"noticed that process rank \d{1,6} .{0,160}exited on signal 9 \(Killed\)")


def of_a_kill(
    scans: Sequence[LogScan],
    killed: Sequence[Event],
    signs: Sequence[Event],
    effects: Sequence[Event],
) -> Diagnosis | None:
    """Answer where a launcher reports that one process was killed before any other failed; else None.

    A whole job that is killed takes its launcher with it: nobody is left to report the first process.

    Args:
        scans: the logs.
        killed: the lines that report it.
        signs: what speaks for a cause beside them.
        effects: what followed from it.
    """
    report = first_report(scans)
    is_first = report is not None and int(report["code"]) == SIGKILL
    if not is_first and not any(_BY_MPIRUN.search(event.text) for event in killed):
        return None
    answer = undecided(killed, signs, effects)
    reason = "the kernel uses signal 9 when memory runs out; dmesg on that host shows it"
    known = next((c for c in answer.candidates if c.label == MEMORY), None)
    memory = known or Candidate(
        label=MEMORY, score=LONE, reason=reason, evidence=(quote(killed[0]),)
    )
    rest = tuple(c for c in answer.candidates if c.label != MEMORY)
    return answer.model_copy(update={"label": MEMORY, "candidates": (memory, *rest), **sure(LONE)})
