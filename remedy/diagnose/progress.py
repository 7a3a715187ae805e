"""Whether a log goes on, ended well, or ended badly: told from its own last lines, apart from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remedy.diagnose.catalogue import CLEAR, Role
from remedy.diagnose.exceptions import EXCEPTION, is_named
from remedy.diagnose.refusals import meaning_of
from remedy.diagnose.scan import Event, LogScan
from remedy.diagnose.steps import are_moving, is_bar_at_its_beginning, is_step

LAST = 6000  # characters at the end of a log that show how it ended
MOST_LINES = 400  # at the end of a log that are read for warnings
STRANGE = 0.05  # of its characters cannot be read, and it is no text
STRONG = 0.9  # a text of this weight is a failure even where the log goes on
STEPS_AFTER = 2  # an exception, and the job went on
FATAL = 0.97  # and of this weight even where the log says that the run was completed

LAST_STEP = r"^(?!.*\bepoch).{0,80}\b(?:step|iter(?:ation)?)s?\W{1,3}(?P<last>\d{2,12}) ?/ ?(?P=last)\b"
_PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|(?<!packet )loss|lr|it/s|s/it|samples|tokens|throughput|acc\d?|ppl)\b"
    r"|\b(?:busbw|algbw)\W{1,4}\d"
    r"|Out of bounds values : 0 OK|\d%\|",
    re.IGNORECASE,
)
_ENDED_WELL = re.compile(
    r"(?:training|train|job|run|benchmark|evaluation|test|script|suite)s? (?:is |was |has )?(?:been )?"
    r"(?:finished|completed?|done|succeeded)"
    r"|Out of bounds values : 0 OK|finished successfully|completed successfully|Pod completed"
    r"|successfully (?:finished|completed)|works well|\bexits successfully\b|\btraining is done\]"
    # Slurm writes ExitCode=0:0 of jobs that run, too.
    r"|(?:exit(?:ed)?[ _-]?(?:with )?(?:code|status)|\brc|return value)\W{1,12}0\b(?!:\d)"
    r"|# All processes entering MPI_Finalize"
    r"|worker group successfully finished|WorkerState\.SUCCEEDED"
    # LAMMPS, NWChem, VASP, Quantum ESPRESSO, CP2K, GROMACS, NAMD, Gaussian, WRF, HPL, OpenFOAM
    r"|Total wall time: \d|^ Total times +cpu: +[\d.]+s +wall: |General timing and accounting informations for"
    r"|^ *JOB DONE\. *$|PROGRAM ENDED AT +\d|Finished mdrun on rank \d|^WallClock: +[\d.]+ +CPUTime: "
    r"|Normal termination of Gaussian|SUCCESS COMPLETE WRF|^End of Tests\.|^Finalising parallel run"
    r"|`Trainer\.fit` stopped: `max_\w+=\S{1,20}` reached|Signaling Trainer to stop"
    r"|\bstatus[\"']{0,2} ?[:=] ?[\"']success[\"']"
    # The last of its steps.
    rf"|{LAST_STEP}",
    re.IGNORECASE | re.MULTILINE,
)
# How programs take leave in other words, and what serves until it is stopped.
_LEFT = re.compile(
    r"\bdone\b|\bfinished\b|\bcompleted?\b|\bend of (?:run|training|job|program)\b|Destroy COMPLETE"
    r"|waiting up to \d+ seconds for all training processes to terminate"
    r"|\btotal (?:\w+ )?time\b|\b[Tt]ook (?:total|after \w+)? ?[\d.]+ ?s(?:ec\w*)?\b"
    r"|\bexiting (?:normally|cleanly|gracefully)\b|\bshut(?:ting)? ?down\b"
    r"|destroy_process_group"
    r"|\bENDING TIMING RUN\b|\b[A-Z]{3,20}_STOP \d{10}\b"  # MLPerf's scripts
    r"|startup complete|Started server process|Uvicorn running|OUT_OF_RANGE: End of sequence",
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
# Numbers and names that have the words of a failure: the rest of their line may still report one.
_NAMED_SO = re.compile(
    r"error_handling|\bnot an? (?:error|failure)\b|errors?[=: ]+(?:0|none|\[\])|\b(?:no|0) errors?"
    r"|\bfailures? ?[=:] ?(?:0|none)\b"
    r"|error rate|_error\b(?![\"']? ?[:=])|error[-_ ]?handling|errors?\.py|failed: 0"
    r"|(?:\w+ ){0,2}\w+(?<!\d) *[:=] *(?:no|none|n/a|0|false|disabled) *$"
    r"|\berror(?=.{0,80}\bloss\b)|(?<=loss).{0,80}\berror\b",
    re.IGNORECASE,
)
_MEANT_WELL = re.compile(
    r"err=-3|algbw|NCCL INFO|warnings?\.warn|harmless|errno: 97|timeout\(ms\)(?!.*tim(?:ed|ing) out)"
    r"|can (?:safely )?be (?:safely )?ignored|sub-?optimal|false[- ]positive"
    r"|retry ?\((?P<try>\d+)/(?!(?P=try)\))\d+\)|could not find TensorRT|uv_loop_close failed"
    r"|Failed to open libibverbs|initializing an OpenFabrics device|loopback address as fallback"
    r"|client socket cannot be|see all help / error messages|Invoked with (?:_raw_params|cmd)=|\bCOMMAND="
    r"|libibverbs: Warning|create fsnotify watcher"
    r"|\[preauth\]|sshd\[\d+\]: (?:Failed password|Invalid user|Disconnected)|OUT_OF_RANGE: End of sequence"
    r"|factory for plugin \w+ when one has already been registered"
    r"|Failure in hcoll_sharp_base_select|shm_unlink\(/?ucx_shm"
    # torch's heartbeat, where the store left before it; its frames; what its processes say last.
    r"|\[W\d{3,4} [\d:.]+ TCPStore\.cpp:|TCPStore server has shut down too early"
    r"|Exception raised from (?:recv|send)Bytes at|\bframe #\d+: |destroy_process_group\(\) was not called",
    re.IGNORECASE,
)
# What programs print between two steps beside steps.
_AT_WORK = re.compile(
    r"\b(?:INFO|DEBUG)\b|\b(?:sav(?:ed?|ing)|written|writing)\b|\b(?:eval|valid)\w*\W.*\d|\bloss_?\w*\W{1,2}\d"
    r"|^\W{0,4}[\w ./-]{1,40}[:=] *-?[\d.]{1,20}%?$",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d+")


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
    if _WENT_WRONG.search(line) or "wandb: " in line:
        return False
    return bool(_PROGRESS.search(line) or is_step(line))


def is_reassuring(line: str) -> bool:
    """Return whether a line has the words of a failure and reports none."""
    return bool(_MEANT_WELL.search(line)) or _went_wrong(line) != bool(_WENT_WRONG.search(line))


def _went_wrong(line: str) -> bool:
    """Return whether a line has the words of a failure, apart from numbers and names that have them."""
    return bool(_WENT_WRONG.search(line) and _WENT_WRONG.search(_NAMED_SO.sub(" ", line)))


def reports_failure(line: str) -> bool:
    """Return whether a line has the words of a failure, apart from numbers and names that have them."""
    return _went_wrong(line)


def is_stopped_by_hand(text: str) -> bool:
    """Return whether the last line of a log is what a terminal shows for Ctrl-C."""
    return text.rstrip().endswith("\n^C")


def _ending(text: str) -> str:
    """Return the last lines of a log: of a line that was cut off nobody can say what it is."""
    return text if len(text) <= LAST else text[-LAST:].partition("\n")[2]


def sent_nothing(text: str) -> bool:
    """Return whether a benchmark at the end of a log reports no bandwidth: its ranks were alone."""
    return bool(_NOTHING_SENT.search(_ending(text)))


def failure_lines(text: str) -> list[str]:
    """Return the lines that report a failure, after the last one that reports progress."""
    failures: list[str] = []
    for line in text.splitlines():
        if is_named(line) or (_went_wrong(line) and not _MEANT_WELL.search(line)):
            failures.append(line)
        elif is_progress(line) or "WorkerState.SUCCEEDED" in line:
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
    logs = {scan.name: scan for scan in scans}
    if not scans or any(_was_raised_last(event, logs[event.source]) for event in failures):
        return False
    ends = [_ending(scan.tail) for scan in scans]
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


def _was_raised_last(event: Event, log: LogScan) -> bool:
    """Return whether a program raised an exception, whatever explains it, and made no step after it."""
    if event.symptom == EXCEPTION:
        return True
    is_clear = event.weight >= CLEAR and is_named(event.text)
    # One step can be what a program had in its buffer when it ended.
    return is_clear and sum(step.line > event.line for step in log.steps) < STEPS_AFTER


def shows_an_end(scans: Sequence[LogScan]) -> bool:
    """Return whether a log says that its program was done, or that it serves until somebody stops it.

    Args:
        scans: every log of the run.
    """
    ends = [line for scan in scans for line in _ending(scan.tail).splitlines()]
    return any(
        _ENDED_WELL.search(line) or (_LEFT.search(line) and not is_progress(line)) for line in ends
    )


def strange_end(scan: LogScan) -> str:
    """Return the last line after the last step that a program at work does not print; "" where there is none.

    Args:
        scan: a log with steps.
    """
    lines = scan.tail.splitlines()[-MOST_LINES:]
    last = max((at for at, line in enumerate(lines) if is_progress(line)), default=len(lines))
    known = {_NUMBERS.sub("", line) for line in lines[:last]}
    for line in reversed(lines[last + 1 :]):
        is_ordinary = _AT_WORK.search(line) or _WARNING.search(line)
        if any(map(str.isalpha, line)) and not is_ordinary and _NUMBERS.sub("", line) not in known:
            return line.strip()
    return ""


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
