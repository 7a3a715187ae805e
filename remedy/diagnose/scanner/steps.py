"""The steps that a log reports near its end, by rank: a run that goes on refutes what warned before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from remedy.diagnose import lines

ENDING = 64 << 10  # bytes at the end of a log that are read for steps
LEAST_PAUSE = 60.0  # seconds without a step; a shorter pause is an evaluation or a checkpoint
SHAPE = 40  # characters by which lines of one kind are known
OWN_STEPS = 2  # of the rank that warned
STEPS = 4  # of other ranks in the same log: a collective needs them all
PAUSES = 10  # times the usual time between two steps: so long a pause is an end

# What was measured was done; the number of a step alone can be a setting.
_MEASURED = re.compile(
    r"(?:\b|_)loss\b['\"]?[ =:#\[(]{1,4}-?\d"
    r"|\b(?:train|valid|eval|test)[-_]\w{2,16}: ?\d"
    r"|\d ?(?:it/s|s/it|tok(?:en)?s?/s|samples/s)|throughput(?: \(tokens?/s\))?: ?\d|\d%\|"
    r"|^ *\d+ +\d+ +(?:float|half|bfloat16|double|u?int\d+) +(?:sum|prod|min|max|avg|none) "
    r"|^\d+ +\d+\.\d\d(?: +\d+\.\d\d)*$"  # a row of the OSU benchmarks
    r"|^ *\d+ +\d+(?: +\d+\.\d\d){3,4}$"  # of the Intel MPI benchmarks
    r"|^ *\d+ +\d+ +\d+\.\d\d +\d+\.\d\d\s+\d+\.\d{4,6}\s*$"  # of perftest
    r"|\d [KMGT]?bits/sec\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b(?:global[_ ]|train[_ ])?(?:steps?|iter(?:ation)?s?|epochs?|rounds?)\b['\"]?[ =:#\[(]{1,4}-?\d"
    r"|\[batch=\d",
    re.IGNORECASE,
)
_NO_STEP = re.compile(
    r"\b(?:error|fatal|abort|failed|failure|exception|killed|timed out|timeout|args|config)|\bwandb: "
    r"|\bnan\b(?! iterations)"
    # Who waits makes none.
    r"|\bno (?:answer|response|reply)\b|\bwaiting for\b|\bgiving up\b"
    # What is done before the first step.
    r"|\b(?:initiali[sz]ation|loading|downloading|fetching|tokenizing|preprocessing|generating train split)\b",
    re.IGNORECASE,
)
# Of one kind: the step of a job, and where a progress bar stands.
_COUNT = re.compile(
    r"\b(?:global[_ ]|train[_ ])?(?:step|iter(?:ation)?)\b['\"]?[ =:#\[(]{1,4}(\d{1,9})\b(?!\.\d)"
    r"|[| ](\d{1,9})/\d{1,12} \[",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(r"\W{0,4}(?:\.{3,6}|\u2026)(?: ?[\w ,]{1,40}(?:\.{3,6}|\u2026)?)?\W{0,4}")
_NUMBERS = re.compile(r"[\d.,:e+-]{1,20}")
_BAR_AT_ITS_BEGINNING = re.compile(r"\b0%\|(?![^\n]{0,160}[| ][1-9]\d{0,11}/\d)|[| ]0/\d{1,12} \[")


def is_step(text: str) -> bool:
    """Return whether a line reports a step, a loss or a rate; one that reports a failure beside it does not."""
    is_number = _MEASURED.search(text) or _COUNTED.search(text)
    return bool(is_number) and not _NO_STEP.search(text)


def is_bar_at_its_beginning(line: str) -> bool:
    """Return whether a line is a progress bar that has not moved."""
    return bool(_BAR_AT_ITS_BEGINNING.search(line))


@dataclass(frozen=True)
class Step:
    """A line that reports a step, a loss or a rate.

    Args:
        line: its number in the log.
        process: that printed it, None where that is not known.
        time: when it was printed, None where it does not say.
        shape: its text without numbers; "" where it reports what was measured, a loss or a rate.
        count: of the steps until it, as it says itself; None where it does not.
    """

    line: int
    process: lines.Process
    time: float | None
    shape: str = ""
    count: int | None = None


def steps_of(ending: bytes, first: int) -> tuple[Step, ...]:
    """Return the steps that the end of a log reports; the same words of one process again are no step.

    Args:
        ending: the last lines of the log.
        first: the number of the first of them.
    """
    steps: list[Step] = []
    seen = set()
    for number, raw in enumerate(ending.split(b"\n"), first):
        # Of what a progress bar overwrites, the last state is enough.
        text = lines.clean(raw.rstrip(b"\r").rpartition(b"\r")[2][: lines.WIDEST])
        line = lines.split(text)
        if steps and _LEFT_OUT.fullmatch(line.text):
            # Who pasted the log left out more of them.
            steps.append(replace(steps[-1], line=number, time=None, count=None))
        if (line.process, line.text) in seen or not is_step(line.text):
            continue
        if is_bar_at_its_beginning(line.text):
            continue
        seen.add((line.process, line.text))
        shape = "" if _MEASURED.search(line.text) else _NUMBERS.sub("0", line.text)[:SHAPE]
        count = _COUNT.search(line.text)
        made = int(next(filter(None, count.groups()))) if count else None
        steps.append(Step(number, line.process, lines.time_of(text), shape, made))
    return tuple(steps)


def made_by(steps: Sequence[Step]) -> int:
    """Return how many steps a process made by what it reports: every tenth, say, or all but the first.

    Args:
        steps: of one process.
    """
    counts = [step.count for step in steps if step.count is not None]
    return max(len(steps), sum(max(0, later - earlier) for earlier, later in pairwise(counts)))


def are_moving(steps: Sequence[Step]) -> bool:
    """Return whether steps follow each other: a lone number can be a setting, or the first step of a hang.

    Args:
        steps: of one log.
    """
    shapes = [step.shape for step in steps]
    return "" in shapes or len(set(shapes)) < len(shapes)


def have_stopped(steps: Sequence[Step], until: float | None) -> bool:
    """Return whether no step was made for much longer than usual.

    Args:
        steps: of one log.
        until: when its last line was printed, None where that is not known: then nothing is.
    """
    times = [step.time for step in steps if step.time is not None]
    if until is None or not times:
        return False
    usual = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
    return until - times[-1] > max(LEAST_PAUSE, PAUSES * usual)


def goes_on_after(line: int, steps: Iterable[Step], process: lines.Process = None) -> bool:
    """Return whether a job makes steps after a line: its own rank a few, or all together more.

    Args:
        line: its number in the log.
        steps: of the same log.
        process: that printed the line, None where that is not known.
    """
    after = [step for step in steps if step.line > line]
    return sum(step.process == process for step in after) >= OWN_STEPS or len(after) >= STEPS
