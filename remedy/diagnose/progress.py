"""Whether a log goes on, ended well, or ended badly: told from its own last lines, apart from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.exceptions import EXCEPTION, is_named
from remedy.diagnose.refusals import meaning_of
from remedy.diagnose.scan import Event, LogScan
from remedy.diagnose.steps import are_moving, is_bar_at_its_beginning, is_step

LAST = 6000  # characters at the end of a log that show how it ended
MOST_LINES = 400  # at the end of a log that are read for warnings
STRANGE = 0.05  # of its characters cannot be read, and it is no text
STRONG = 0.9  # a text of this weight is a failure even where the log goes on
FATAL = 0.97  # and of this weight even where the log says that the run was completed

_PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|(?<!packet )loss|lr|it/s|s/it|samples|tokens|throughput|acc\d?|ppl)\b"
    r"|\b(?:busbw|algbw)\W{1,4}\d"
    r"|Out of bounds values : 0 OK|\d%\|",
    re.IGNORECASE,
)
_ENDED_WELL = re.compile(
    r"(?:training|train|job|run|benchmark|evaluation|test)s? (?:is |was |has )?(?:been )?"
    r"(?:finished|completed?|done|succeeded)"
    r"|Out of bounds values : 0 OK|finished successfully|completed successfully|Pod completed"
    r"|successfully (?:finished|completed)|Exit code 0\b|works well|exitcode: 0\b"
    r"|# All processes entering MPI_Finalize",
    re.IGNORECASE,
)
# How programs take leave in other words, and what serves until it is stopped.
_LEFT = re.compile(
    r"\bdone\b|\bfinished\b|\bcompleted?\b|\bend of (?:run|training|job|program)\b|Destroy COMPLETE"
    r"|\btotal (?:\w+ )?time\b|\bexiting\b|\bshut(?:ting)? ?down\b|destroy_process_group"
    r"|startup complete|Started server process|Uvicorn running",
    re.IGNORECASE,
)
_WARNING = re.compile(r"\bwarn(?:ing)?s?\b|Warning\b|(?:^|[\[ ])W\d{4} ", re.IGNORECASE)
# One rank alone: nothing was sent, so nothing was proved.
_NOTHING_SENT = re.compile(r"# Avg bus bandwidth +: 0(?:\.0{1,6})? *$", re.MULTILINE)
_WENT_WRONG = re.compile(
    r"\b(?:error|fatal|abort(?:ed|ing)?|failed|failure|exception|core dumped|panic|killed|denied|refused"
    r"|unable to|cannot|tim(?:ed|ing) out|timeout exceeded)\b",
    re.IGNORECASE,
)
_MEANT_WELL = re.compile(
    r"error_handling|\bnot an? (?:error|failure)\b|errors?[=: ]+(?:0|none|\[\])|no errors?|0 errors"
    r"|error rate|_error\b(?![\"']? ?[:=])|error[-_ ]?handling"
    r"|err=-3|algbw|NCCL INFO|errors?\.py|loss|warnings?\.warn|harmless|failed: 0|errno: 97"
    r"|timeout\(ms\)(?!.*tim(?:ed|ing) out)"
    r"|[:=] *(?:no|none|n/a|0|false|disabled) *$"
    r"|can (?:safely )?be (?:safely )?ignored|sub-?optimal|false[- ]positive"
    r"|retry ?\(\d+/\d+\)|could not find TensorRT|uv_loop_close failed"
    r"|Failed to open libibverbs|loopback address as fallback|client socket cannot be",
    re.IGNORECASE,
)


# What NCCL says once it has its networks, its ranks or its connections: it did without what it missed before.
_NCCL_WENT_ON = re.compile(
    r"NCCL INFO .{0,160}(?:Using network |Init START|Init COMPLETE|Connected all )"
)
_OF_NCCL = re.compile(r" NCCL (?:WARN|ATTN) ")


def is_text(text: str) -> bool:
    """Return whether the end of a log is text: of other bytes hardly any are characters."""
    return text.count("\ufffd") <= STRANGE * len(text)


def is_progress(line: str) -> bool:
    """Return whether a line reports a step, a loss or a rate."""
    return bool(_PROGRESS.search(line) or is_step(line)) and not _WENT_WRONG.search(line)


def is_reassuring(line: str) -> bool:
    """Return whether a line has the words of a failure and reports none."""
    return bool(_MEANT_WELL.search(line))


def is_stopped_by_hand(text: str) -> bool:
    """Return whether the last line of a log is what a terminal shows for Ctrl-C."""
    return text.rstrip().endswith("\n^C")


def failure_lines(text: str) -> list[str]:
    """Return the lines that report a failure, after the last one that reports progress."""
    failures: list[str] = []
    for line in text.splitlines():
        if is_named(line) or (_WENT_WRONG.search(line) and not _MEANT_WELL.search(line)):
            failures.append(line)
        elif is_progress(line):
            failures.clear()
        elif _NCCL_WENT_ON.search(line):
            failures = [failure for failure in failures if not _OF_NCCL.search(failure)]
    return failures


def went_well(scans: Sequence[LogScan], failures: Sequence[Event]) -> bool:
    """Return whether the run was completed, or goes on, whatever was printed before.

    Args:
        scans: every log of the run; none of them reports a failed or killed rank.
        failures: what speaks for a cause.
    """
    if not scans or any(event.symptom == EXCEPTION for event in failures):
        return False
    ends = [scan.tail[-LAST:] for scan in scans]
    if any(map(is_stopped_by_hand, ends)):
        return False
    if any(failure_lines(end) or _NOTHING_SENT.search(end) for end in ends):
        return False
    if any(_ENDED_WELL.search(end) for end in ends):
        return all(event.weight < FATAL for event in failures)
    if any(event.weight >= STRONG for event in failures):
        return False
    # A log with a failure has to go on itself: progress in the log of another rank proves nothing of it.
    moving = {scan.name for scan in scans if _goes_on(scan, failures)}
    return bool(moving) and {event.source for event in failures} <= moving


def shows_an_end(scans: Sequence[LogScan]) -> bool:
    """Return whether a log says that its program was done, or that it serves until somebody stops it.

    Args:
        scans: every log of the run.
    """
    ends = [line for scan in scans for line in scan.tail[-LAST:].splitlines()]
    return any(
        _ENDED_WELL.search(line) or (_LEFT.search(line) and not is_progress(line)) for line in ends
    )


def was_warned(scan: LogScan) -> bool:
    """Return whether a log has something before its last steps that could pass for a failure, and was none."""
    if any(event.role is not Role.GOOD for event in scan.events):
        return True
    lines = scan.tail.splitlines()[-MOST_LINES:]
    return any(
        _WARNING.search(line) or _WENT_WRONG.search(line) or meaning_of(line) for line in lines
    )


def _goes_on(scan: LogScan, failures: Sequence[Event]) -> bool:
    """Return whether a log ends with progress, after the last failure in it."""
    if not are_moving(scan.steps):
        return False
    ends = [scan.tail.rfind(event.text[:80]) for event in failures if event.source == scan.name]
    last = max(ends, default=-1)
    after = scan.tail[last:].splitlines()[1:] if last >= 0 else scan.tail.splitlines()
    return any(
        _PROGRESS.search(line) and not (is_bar_at_its_beginning(line) or is_named(line))
        for line in after[-5:]
    )
