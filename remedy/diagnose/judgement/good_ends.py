"""Whether a good end can be believed: what a log says below it, and what its run went without.

That a program came to its end is its own claim, or that of the script around it. A loss that is no number, a
status that is not 0, ranks of which nothing is heard, a GPU that was never used and ranks that were each alone
speak against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from remedy.diagnose.catalogue import Role
from remedy.diagnose.diagnosis import (
    APPLICATION,
    HEALTHY,
    UNKNOWN,
    Candidate,
    Diagnosis,
    sure,
)
from remedy.diagnose.endings.ends import doubtful_end, is_loss_of_no_number, suspect_end
from remedy.diagnose.endings.unheard import unheard
from remedy.diagnose.judgement.answers import answer_of
from remedy.diagnose.judgement.outside import QUIET
from remedy.diagnose.judgement.refuted import answered_in
from remedy.diagnose.scanner.events import speaks_clearly_for
from remedy.diagnose.scanner.job_setting import CPU, FABRIC, INFINIBAND, SOCKET, TCP, JobSetting
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.text import clipped

SAID = 160  # characters of a line that are shown
FIRM = 0.9  # a text of this weight is a failure: what follows it did without
ALONE = "each-alone"
WITHOUT = 0.75  # the most that is sure of what a run went without which did not fail

# What sent over TCP, what a tool shows to be there, and what keeps the one from the other.
_UNUSED = (
    (SOCKET, FABRIC, "efa-plugin-missing"),
    (SOCKET, INFINIBAND, "ib-misconfig"),
    (TCP, INFINIBAND, "mpi-nic-mismatch"),
)
_LIBRARY = "missing-library"
_OF_CUDA = re.compile(r"\blib(?:cu|nv|nccl)\w{2,20}\.so", re.IGNORECASE)
_NO_ROOM = re.compile(
    r"No space left on device|not enough space for |StorageFull|\bENOSPC\b|quota exceeded",
    re.IGNORECASE,
)
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
    if diagnosis.label == HEALTHY and (shortfall := _of_shortfall(reported, scans, setting)):
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


def _of_shortfall(
    reported: Sequence[Event], scans: Sequence[LogScan], setting: JobSetting
) -> Diagnosis | None:
    """Return why a run that did not fail had less than it asked for; None where it had what it needs."""
    answers = {scan.name: answered_in(scan) for scan in scans}
    lasting = [e for e in reported if not answers[e.source](e.line, e.text)]
    if not _are_at_once([event for event in lasting if event.symptom == ALONE], scans):
        lasting = [event for event in lasting if event.symptom != ALONE]
    for what, of_it in _SHORTFALLS:
        if events := [event for event in lasting if of_it(event, setting)]:
            return _without(events, what)
    return _of_repeats(lasting, scans) or _of_an_unused_fabric(setting)


def _are_at_once(events: Sequence[Event], scans: Sequence[LogScan]) -> bool:
    """Return whether processes said something before any of them made a step: else one ran after the other."""
    steps = {scan.name: [step.line for step in scan.steps] for scan in scans}
    return any(
        first.source != second.source
        or not any(first.line < line < second.line for line in steps[first.source])
        for first, second in pairwise(events)
    )


def _is_alone(event: Event, _: JobSetting) -> bool:
    return event.symptom == ALONE


def _explains_no_gpu(event: Event, setting: JobSetting) -> bool:
    if setting.devices != {CPU}:
        return False
    of_a_library = speaks_clearly_for(event, _LIBRARY) and _OF_CUDA.search(event.text)
    return bool(of_a_library) or any(speaks_clearly_for(event, label) for label in _NO_GPU)


def _found_no_room(event: Event, _: JobSetting) -> bool:
    if "NCCL WARN" in event.text:
        return False  # without that room its set-up fails: what went on has found another way
    of_room = speaks_clearly_for(event, "disk-full") or speaks_clearly_for(event, "shm-too-small")
    return of_room and bool(_NO_ROOM.search(event.text))


def _lost_files(event: Event, _: JobSetting) -> bool:
    return speaks_clearly_for(event, "storage-fault")


_SHORTFALLS: tuple[tuple[str, Callable[[Event, JobSetting], bool]], ...] = (
    ("its ranks worked each alone, and together on nothing", _is_alone),
    ("it ran on the CPU", _explains_no_gpu),
    ("there was no room for all that it had to write", _found_no_room),
    ("not all of its files could be read or written", _lost_files),
)


def _of_repeats(lasting: Sequence[Event], scans: Sequence[LogScan]) -> Diagnosis | None:
    """Return what failed again after the run had made steps: it was not got over."""
    steps = {scan.name: [step.line for step in scan.steps] for scan in scans}
    seen: dict[tuple[str, str], int] = {}
    for event in lasting:
        if event.role is not Role.CAUSE or event.weight < FIRM:
            continue
        first = seen.setdefault((event.source, event.symptom), event.line)
        if any(first < line < event.line for line in steps[event.source]):
            what = f"this came again after more steps (first {event.source}:{first})"
            return _without([event], what)
    return None


def _without(events: Sequence[Event], what: str) -> Diagnosis:
    """Answer with what events speak for, though the job went on."""
    answer = answer_of(events, [], [])
    note = f"nothing ended the job, but {what}"
    return answer.model_copy(update={"notes": (note,), **sure(min(answer.certainty, WITHOUT))})


def _of_an_unused_fabric(setting: JobSetting) -> Diagnosis | None:
    """Return why a run sent over TCP where a tool shows a fabric: the likeliest by what sent it."""
    for network, fabric, label in _UNUSED:
        if setting.networks == {network} and fabric in setting.fabrics:
            reason = "what it sent went over TCP, though a faster network is there"
            return Diagnosis(
                label=label,
                candidates=(Candidate(label=label, score=QUIET, reason=reason),),
                notes=(f"nothing ended the job, but {reason}",),
                **sure(QUIET),
            )
    return None
