"""How logs end: well, in the middle of their work, by hand, or with words that no program at work prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from remedy.diagnose.catalogue import CLEAR
from remedy.diagnose.endings.progress import (
    MOST_LINES,
    PROGRESS,
    WARNING,
    failure_lines,
    is_progress,
)
from remedy.diagnose.endings.suspect import is_suspect
from remedy.diagnose.phrases.harmless import is_harmless
from remedy.diagnose.scanner.exceptions import EXCEPTION, is_named
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.sessions import asks_for_status, exit_status, is_prompt
from remedy.diagnose.scanner.steps import are_moving, have_stopped, is_bar_at_its_beginning, is_step
from remedy.text import is_number

LAST = 6000  # characters at the end of a log that show how it ended
WIDE = 240  # characters of each of its lines
LAST_WORDS = 8  # lines with text at the end of a log in which its program takes leave
RESTARTED = "restarted"  # the entry of what starts ranks again
STRONG = 0.9  # a text of this weight is a failure even where the log goes on
STEPS_AFTER = 2  # an exception, and the job went on
NOT_STARTED = 0.9  # a host of this weight was not there: what ended well is others' work
FATAL = 0.97  # and of this weight even where the log says that the run was completed

# The last of all steps, and not of those of an epoch.
_LAST_STEP = (
    r"^(?!.*\b(?:eval|valid|test|warm))(?!.*\bepoch\D{1,5}(?P<epoch>\d{1,9}) ?/ ?(?!(?P=epoch)\b)\d).{0,80}"
    r"\b(?:step|iter(?:ation)?)s?\W{1,3}(?P<last>\d{2,12}) ?/ ?(?P=last)\b"
)
# The last epoch as Keras shows it, and all its batches, of one process or of several.
_LAST_EPOCH = re.compile(
    r"^(?:\S{1,40} )?Epoch (?P<epoch>\d{1,6})/(?P=epoch)$"
    r"(?:\n(?!.*\bEpoch \d)[^\n]*){0,40}?\n[^\n]{0,60}\b(?P<batch>\d{1,9})/(?P=batch)\b[^\n]*\bloss: ",
    re.MULTILINE,
)
_LOSS = re.compile(r"(?:\b|_)loss\b", re.IGNORECASE)
_LOSS_OF_NO_NUMBER = re.compile(r"(?:\b|_)loss\b['\"]?[ =:]{1,3}['\"]?nan\b", re.IGNORECASE)
ENDED_WELL = re.compile(
    r"(?:training|train|job|run|benchmark|evaluation|test|script|suite)s? (?:is |was |has )?(?:been )?"
    r"(?:finished|completed?|done|succeeded)"
    r"|Out of bounds values : 0 OK|finished successfully|completed successfully|Pod completed"
    r"|successfully (?:finished|completed)|works well|\bexit(?:s successfully|ing cleanly)\b"
    r"|\bRun finished \d{1,6} round|\bExit Success\b"
    r"|^Trial status: \d{1,6} TERMINATED$|\bTraining Over!|\bdone training in \d"
    r"|\bLearn more at https://docs\.ultralytics\.com/modes/|\btraining is done\]"
    # Slurm writes ExitCode=0:0 of jobs that run, too.
    r"|(?:exit(?:ed)?[ _-]?(?:with )?(?:code|status(?: code)?)|\brc|return value)\W{1,12}0\b(?!:\d)"
    r"|\becho \"?\$\?\"? *\n *0 *$"
    r"|^exit 0$|# All processes entering MPI_Finalize"
    r"|worker group successfully finished|WorkerState\.SUCCEEDED"
    # LAMMPS, NWChem, VASP, Quantum ESPRESSO, CP2K, GROMACS, NAMD, Gaussian, WRF, HPL, OpenFOAM
    r"|Total wall time: \d|^ Total times +cpu: +[\d.]+s +wall: |General timing and accounting informations for"
    r"|^ *JOB DONE\. *$|PROGRAM ENDED AT +\d|Finished mdrun on rank \d|^WallClock: +[\d.]+ +CPUTime: "
    r"|Normal termination of Gaussian|SUCCESS COMPLETE WRF|^End of Tests\.|^Finalising parallel run"
    # The benchmarks of CORAL, IO500, those of OSU with the last of their sizes.
    r"|^Figure of Merit\b|^No errors encountered during test|\bResult is ?:? VALID\b|^\*{3} Best metric: \d"
    r"|={4,} Stopping All Nodes ={4,}|^Test is a success!"
    r"|^\[SCORE \]|^IO-500 score:|^(?:1048576|4194304) +\d[\d.]* *$"
    r"|'train_runtime': '?\d|^ +train_runtime +="
    r"|`Trainer\.fit` stopped: `max_\w+=\S{1,20}` reached|Signaling Trainer to stop"
    r"|\bstatus[\"']{0,2} ?[:=] ?[\"']success[\"']"
    r"|\b(?:train )?job success\b|[\w,;] exit 0 *$|^iperf Done\.$|\bfinal status: SUCCEEDED\b"
    r"|\bExit codes: \[[^\]\n]{1,200}\] 0(?:,0){0,999} *$|^Executing transaction: done$"
    r"|^(?:\[[\d,]{1,12}\]<stdout>:)?Total img/sec on \d|\| 100% Completed \||\[exiting program (?:after|at)\b"
    rf"|^\[batch=(?P<batch>\d{{1,9}})/(?P=batch)\]|{_LAST_STEP}",
    re.IGNORECASE | re.MULTILINE,
)
_OF_MLPERF = r"\bENDING TIMING RUN\b|\b[A-Z]{3,20}_STOP \d{10}\b"
# How programs take leave in other words, and what serves until it is stopped.
_LEFT = re.compile(
    r"\bdone\b|\bfinished\b|\bcompleted?\b|\bend of (?:run|training|job|program)\b|Destroy COMPLETE"
    r"|waiting up to \d+ seconds for all training processes to terminate"
    r"|\btotal (?:\w+ )?time\b|\b[Tt]ook (?:total|after \w+)? ?[\d.]+ ?s(?:ec\w*)?\b"
    r"|\bexiting (?:normally|cleanly|gracefully)\b|\bshut(?:ting)? ?down\b"
    r"|destroy_process_group"
    rf"|{_OF_MLPERF}"
    r"|startup complete|Started server process|Uvicorn running|OUT_OF_RANGE: End of sequence",
    re.IGNORECASE,
)
# The last words of a program that says so in its own way, or of the script around it.
_LAST_WORDS = re.compile(
    r"^\W*(?:\d{1,5}\W{1,3})?(?:all )?(?:done|finished|completed?|converged|success(?:fully)?|the end)\W*$"
    r"|\b(?:total|elapsed|wall|execution|run(?:ning)?|training|overall|test)"
    r"(?: (?:clock|cpu|wall|run(?:ning)?|training|execution|elapsed|job))?[ _]time\d?\b[^\n]{0,24}\d"
    r"|^\W*(?:train(?:ing)?|job|run|script) end(?:ed|s)?\W*$|[,;:] (?:all )?done\W*$"
    r"|^real\s+(?:\d+m)?\d+\.\d+s?$|^\W*end(?:ed|ing)?\b[^\n]{0,24}\d{4}"
    rf"|{_OF_MLPERF}"
    r"|\bruntime(?: \([^)\n]{1,20}\))?\W{1,3}\d|\bfinished: +True\b|^\W*(?:\w+ )?epilog(?:ue)?\b"
    r"|\bfinal (?:\w+ ){0,3}(?:accuracy|score|loss|return|reward|results?|model|weights)\b"
    r"|\bfinished (?:evaluation\b|(?:at|in|after)\W{1,3}\d)"
    r"|^\|[^|\n]{0,60}\|[^\n]{0,200}\d\.\d+[^\n]{0,60}\|\W*$",  # a table of results
    re.IGNORECASE,
)
# One rank alone: nothing was sent, so nothing was proved.
_NOTHING_SENT = re.compile(r"# Avg bus bandwidth +: 0(?:\.0{1,6})? *$", re.MULTILINE)
# What programs print between two steps beside steps.
_AT_WORK = re.compile(
    r"\b(?:INFO|DEBUG)\b|\b(?:sav(?:ed?|ing)|written|writing)\b|\b(?:eval|valid)\w*\W.*\d|\bloss_?\w*\W{1,2}\d"
    r"|^\W{0,4}[\w ./-]{1,40}[:=] *-?[\d.]{1,20}%?$",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d+")


def is_stopped_by_hand(text: str) -> bool:
    """Return whether the last line of a log, before a prompt, is what a terminal shows for Ctrl-C."""
    lines = text.rstrip().splitlines()
    while lines and is_prompt(lines[-1]):
        lines.pop()
    return len(lines) > 1 and lines[-1] == "^C"


def _ending(text: str) -> str:
    """Return the last lines of a log: of a line that was cut off nobody can say what it is."""
    if len(text) > LAST:
        # A very long line is not the whole of an ending.
        text = "\n".join(line[:WIDE] for line in text[-LAST * 10 :].splitlines())
    return text if len(text) <= LAST else text[-LAST:].partition("\n")[2]


def sent_nothing(text: str) -> bool:
    """Return whether a benchmark at the end of a log reports no bandwidth: its ranks were alone."""
    return bool(_NOTHING_SENT.search(_ending(text)))


def went_well(scans: Sequence[LogScan], failures: Sequence[Event]) -> bool:
    """Return whether the run was completed, or goes on, whatever was printed before.

    Args:
        scans: every log of the run; none of them reports a failed or killed rank.
        failures: what speaks for a cause.
    """
    logs = {scan.name: scan for scan in scans}
    if not scans or any(_is_final(event, logs[event.source]) for event in failures):
        return False
    ends = [_ending(scan.tail) for scan in scans]
    if any(map(is_stopped_by_hand, ends)):
        return False
    if any(map(_NOTHING_SENT.search, ends)):
        return False
    if any(failure_lines(_since_steps(scan)) for scan in scans):
        return False
    if any(ENDED_WELL.search(end) for end in ends):
        return not any(_is_against_its_end(event, logs[event.source]) for event in failures)
    if any(event.weight >= STRONG for event in failures):
        return False
    # A log with a failure has to go on itself: progress in the log of another rank proves nothing of it.
    moving = {scan.name for scan in scans if _goes_on(scan, failures)}
    return bool(moving) and {event.source for event in failures} <= moving


def is_through(scans: Sequence[LogScan], effects: Sequence[Event]) -> bool:
    """Return whether each log shows its last epoch to its end, and what else failed came after that.

    Args:
        scans: every log of the run; nothing but effects failed in them.
        effects: what processes print that suffer from another.
    """
    ends = {scan.name: _end_of_training(scan) for scan in scans}
    is_late = all(event.line > ends.get(event.source, 0) for event in effects)
    return bool(ends) and all(ends.values()) and is_late


def _end_of_training(scan: LogScan) -> int:
    """Return the number of the line with which the last epoch ends, 0 where none does."""
    ending = _ending(scan.tail)
    last = max((match.end() for match in _LAST_EPOCH.finditer(ending)), default=0)
    return scan.lines - ending.rstrip("\n").count("\n", last) if last else 0


def line_of_good_end(scan: LogScan) -> int:
    """Return the number of the last line by which a log says that it ended well, 0 where none does.

    Args:
        scan: the log.
    """
    ending = _ending(scan.tail).rstrip("\n")
    last = max((match.end() for match in ENDED_WELL.finditer(ending)), default=-1)
    return scan.lines - ending.count("\n", last) if last >= 0 else 0


def _is_after_its_end(event: Event, log: LogScan) -> bool:
    """Return whether something clear failed below the line by which a program says that it ended well."""
    return event.weight >= CLEAR and event.line > (line_of_good_end(log) or log.lines)


def _is_against_its_end(event: Event, log: LogScan) -> bool:
    """Return whether a log that says that it ended well cannot mean what failed in it."""
    most = NOT_STARTED if _is_of_a_start(event) else FATAL
    return event.weight >= most or _is_after_its_end(event, log)


def _is_of_a_start(event: Event) -> bool:
    """Return whether ranks could not be started on a host."""
    return any(c.label == "ssh-launch-failure" and c.weight >= NOT_STARTED for c in event.causes)


def _is_final(event: Event, log: LogScan) -> bool:
    """Return whether nothing after a failure refutes it: an exception, or what another command did since."""
    was_left = event.weight >= CLEAR and any(line > event.line for line in log.commands)
    return was_left or _was_raised_last(event, log)


def _was_raised_last(event: Event, log: LogScan) -> bool:
    """Return whether a program raised an exception, whatever explains it, and made no step after it."""
    # One step can be what a program had in its buffer when it ended.
    made_none = sum(step.line > event.line for step in log.steps) < STEPS_AFTER
    if event.symptom == EXCEPTION:
        return made_none or not ENDED_WELL.search(_since_steps(log))
    return event.weight >= CLEAR and is_named(event.text) and made_none


def _since_steps(scan: LogScan) -> str:
    """Return the last lines of a log that ended well from its last steps, or its last start, on.

    What it outlived stands above.
    """
    ending = _ending(scan.tail)
    if not ENDED_WELL.search(ending):
        return ending
    starts = [event.line + 1 for event in scan.events if event.symptom == RESTARTED]
    if len(scan.steps) >= STEPS_AFTER:
        starts.append(scan.steps[-STEPS_AFTER].line)
    lines = ending.rstrip("\n").split("\n")
    above = len(lines) - 1 - (scan.lines - max(starts, default=0))
    return "\n".join(lines[max(0, above) :])


def shows_an_end(scans: Sequence[LogScan]) -> bool:
    """Return whether a log says that its program was done, or that it serves until somebody stops it.

    Args:
        scans: every log of the run.
    """
    return any(has_returned(scan) or _takes_leave(_ending(scan.tail)) for scan in scans)


def _takes_leave(ending: str) -> bool:
    """Say whether a program says that it was done: of loading or compiling it says so before its last step."""
    lines = ending.splitlines()
    last = max((at for at, line in enumerate(lines) if is_step(line)), default=-1)
    return any(map(ENDED_WELL.search, lines)) or any(map(_LEFT.search, lines[last + 1 :]))


def has_returned(scan: LogScan) -> bool:
    """Return whether a log ends at a prompt: its program ended, and printed nothing more.

    Args:
        scan: the log.
    """
    rows = scan.tail.rstrip().splitlines()[-2:]
    return is_prompt("".join(rows[-1:])) or exit_status(rows) == 0


def says_farewell(scans: Sequence[LogScan]) -> bool:
    """Return whether each log ends with what a program, or the script around it, says last of all.

    Args:
        scans: every log of the run.
    """
    return bool(scans) and all(map(_says_farewell, scans))


def _says_farewell(scan: LogScan) -> bool:
    lines = [line for line in _ending(scan.tail).splitlines() if line.strip()][-LAST_WORDS:]
    return any(_LAST_WORDS.search(line) or ENDED_WELL.search(line) for line in lines)


def doubtful_end(scan: LogScan) -> str:
    """Return the last line by which a log does not end like that of a good run; "" where there is none.

    Lines count from the first on by which a program takes leave after its steps, or makes the last of them.
    Words that programs also say when they are stopped are none long after the last step.

    Args:
        scan: a log that shows an end.
    """
    lines = [line for line in _ending(scan.tail).splitlines() if line.strip()]
    if exit_status(lines) == 0:
        return ""
    last = _since_the_end(lines)
    if last and have_stopped(scan.steps, scan.time) and not any(map(ENDED_WELL.search, lines)):
        return last[-1].strip()
    losses = [line for line in lines if _LOSS.search(line)]
    if losses and is_loss_of_no_number(losses[-1]):
        return losses[-1].strip()
    failed = next((status for asked, status in pairwise(last) if _is_failed(asked, status)), "")
    return failed or next((line.strip() for line in reversed(last) if is_suspect(line)), "")


def _since_the_end(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the first on by which a program takes leave after its steps."""
    signs = (ENDED_WELL, _LAST_WORDS, _LEFT)
    ends = [
        at
        for at, line in enumerate(lines)
        # "Horovod has been shut down", says an exception.
        if any(sign.search(line) for sign in signs) and not is_suspect(line)
    ]
    work = max((at for at, line in enumerate(lines) if is_progress(line)), default=-1)
    # What was done before the last step (compiling, loading) was no end.
    first = next((at for at in ends if at > work), max(ends, default=len(lines)))
    return lines[first:]


def is_loss_of_no_number(line: str) -> bool:
    """Return whether a line reports a loss of NaN: of the last step, the model is worth nothing.

    Args:
        line: of a log.
    """
    return bool(_LOSS_OF_NO_NUMBER.search(line))


def suspect_end(scan: LogScan) -> str:
    """Return the last line of a log where it has a word of a failure; "" where it has none.

    Args:
        scan: a log of a run another log of which ended well.
    """
    lines = [line.strip() for line in _ending(scan.tail).splitlines() if line.strip()]
    return lines[-1] if lines and is_suspect(lines[-1]) else ""


def _is_failed(asked: str, status: str) -> bool:
    """Say whether somebody asked a shell how a command ended, and the next line says with an error."""
    return bool(asks_for_status(asked) and is_number(status.strip()) and int(status))


def strange_end(scan: LogScan) -> str:
    """Return the last line after the last step that a program at work does not print; "" where there is none.

    Args:
        scan: a log with steps.
    """
    lines = scan.tail.splitlines()[-MOST_LINES:]
    last = max((at for at, line in enumerate(lines) if is_progress(line)), default=len(lines))
    known = {_NUMBERS.sub("", line) for line in lines[:last]}
    rest = [line for line in lines[last + 1 :] if not (is_prompt(line) or asks_for_status(line))]
    if any(map(ENDED_WELL.search, rest)):
        # How what it was part of is taken down.
        rest = [line for line in rest if is_suspect(line)]
    for line in reversed(rest):
        patterns = (_AT_WORK, WARNING, _LAST_WORDS)
        is_ordinary = is_harmless(line) or any(pattern.search(line) for pattern in patterns)
        if any(map(str.isalpha, line)) and not is_ordinary and _NUMBERS.sub("", line) not in known:
            return line.strip()
    return ""


def _goes_on(scan: LogScan, failures: Sequence[Event]) -> bool:
    """Return whether a log ends with progress, after the last failure in it."""
    if not are_moving(scan.steps):
        return False
    ends = [scan.tail.rfind(event.text[:80]) for event in failures if event.source == scan.name]
    last = max(ends, default=-1)
    after = scan.tail[last:].splitlines()[1:] if last >= 0 else scan.tail.splitlines()
    return any(
        PROGRESS.search(line) and not (is_bar_at_its_beginning(line) or is_named(line))
        for line in after[-5:]
    )
