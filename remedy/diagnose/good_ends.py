"""Whether a good end can be believed: what a log says below it, and what its run went without.

That a program came to its end is its own claim, or that of the script around it. A loss that is no number, a
status that is not 0, ranks of which nothing is heard, a GPU that was never used and ranks that were each alone
speak against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remedy.diagnose.answers import answer_of
from remedy.diagnose.catalogue import CLEAR
from remedy.diagnose.diagnosis import (
    APPLICATION,
    HEALTHY,
    UNKNOWN,
    Candidate,
    Diagnosis,
    Quote,
    sure,
)
from remedy.diagnose.ends import doubtful_end, is_loss_of_no_number, suspect_end
from remedy.diagnose.job_setting import CPU, JobSetting
from remedy.diagnose.outside import QUIET
from remedy.diagnose.scan import Event, LogScan
from remedy.diagnose.unheard import unheard
from remedy.text import clipped

SAID = 160  # characters of a line that are shown
ALONE = "each-alone"
WITHOUT = 0.75  # the most that is sure of what a run went without which did not fail

# Why a program finds no GPU.
_NO_GPU = frozenset(
    (
        *("driver-mismatch", "device-visibility", "container-gpu-runtime"),
        *("fabricmanager-not-running", "gpu-hardware-xid"),
    )
)


def examined(
    diagnosis: Diagnosis,
    reported: Sequence[Event],
    scans: Sequence[LogScan],
    setting: JobSetting,
    successes: Iterable[Event],
) -> Diagnosis:
    """Return the answer to logs that say that all went well: that, or what speaks against it.

    Args:
        diagnosis: by the logs' own words; what is not healthy is returned as it is.
        reported: the events of all logs, those that later steps refute among them.
        scans: every log of the run.
        setting: where the job ran.
        successes: the lines by which a run states its own success: their logs are believed.
    """
    if diagnosis.label == HEALTHY and (shortfall := _of_shortfall(reported, setting)):
        return shortfall
    if not diagnosis.is_fine:
        return diagnosis
    believed = {event.source for event in successes}
    others = [scan for scan in scans if scan.name not in believed]
    diagnosis = _by_its_last_lines(diagnosis, others)
    if diagnosis.is_fine and (missing := unheard(scans)):
        notes = (*diagnosis.notes, *missing)
        return diagnosis.model_copy(update={"notes": notes, **sure(QUIET)})
    return diagnosis


def _by_its_last_lines(diagnosis: Diagnosis, scans: Sequence[LogScan]) -> Diagnosis:
    """Answer that nobody knows where a log says that its run ended well, and something else below."""
    line = next(filter(None, map(doubtful_end, scans)), "")
    if not line and len(scans) > 1:
        # The success of one rank is not that of the others.
        line = next(filter(None, map(suspect_end, scans)), "")
    if not line:
        return diagnosis
    if is_loss_of_no_number(line):
        note = f"it was through its steps, and its loss is no number: {clipped(line, SAID)}"
        return Diagnosis(label=APPLICATION, notes=(note,), **sure(QUIET))
    candidates = (
        Candidate(label=HEALTHY, score=0.45, reason="it says that it ended well"),
        Candidate(label=APPLICATION, score=0.4, reason="or it ended with an error of its own"),
    )
    note = f"it does not end like a good run: {clipped(line, SAID)}"
    return Diagnosis(label=UNKNOWN, candidates=candidates, notes=(note,), **sure(0.0))


def _of_shortfall(reported: Sequence[Event], setting: JobSetting) -> Diagnosis | None:
    """Return why a run that did not fail had no GPU, or no other rank; None where it had what it needs."""
    alone = [event for event in reported if event.symptom == ALONE]
    if alone:
        return _without(alone, "its ranks worked each alone, and together on nothing")
    without = [event for event in reported if _explains_no_gpu(event)]
    if without and setting.devices == {CPU}:
        return _without(without, "it ran on the CPU")
    return None


def _explains_no_gpu(event: Event) -> bool:
    return any(cause.label in _NO_GPU and cause.weight >= CLEAR for cause in event.causes)


def _without(events: Sequence[Event], what: str) -> Diagnosis:
    answer = answer_of(events, [], [])
    note = f"no line reports a failure, and {what}"
    return answer.model_copy(update={"notes": (note,), **sure(min(answer.certainty, WITHOUT))})
