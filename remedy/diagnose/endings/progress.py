"""Whether a log goes on, ended well, or ended badly: told from its own last lines, apart from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from remedy.diagnose.catalogue import Role
from remedy.diagnose.phrases.harmless import is_harmless
from remedy.diagnose.phrases.refusals import meaning_of
from remedy.diagnose.scanner.exceptions import is_named
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.diagnose.scanner.sessions import is_typed
from remedy.diagnose.scanner.steps import is_step

MOST_LINES = 400  # at the end of a log that are read for warnings
STRANGE = 0.05  # of its characters cannot be read, and it is no text

PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|(?<!packet )loss|lr|it/s|s/it|samples|tokens|throughput|acc\d?|ppl)\b"
    r"|\b(?:busbw|algbw)\W{1,4}\d"
    r"|Out of bounds values : 0 OK|\d%\|",
    re.IGNORECASE,
)
WARNING = re.compile(r"\bwarn(?:ing)?s?\b|Warning\b|(?:^|[\[ ])W\d{4} ", re.IGNORECASE)
_WENT_WRONG = re.compile(
    r"\b(?:error|fatal|abort(?:ed|ing)?|failed|failure|exception|core dumped|panic|killed|denied|refused"
    r"|unable to|cannot|tim(?:ed|ing) out|timeout exceeded)\b",
    re.IGNORECASE,
)
# Numbers and names that have the words of a failure: the rest of their line may still report one.
_NAMED_SO = re.compile(
    r"error_handling|\bnot an? (?:error|failure)\b|errors?[=: ]+(?:0|none|\[\])|\b(?:no|0) errors?"
    r"|\b[Ss]tandard error\b|\bfailures? ?[=:] ?(?:0|none)\b"
    r"|\b0 (?:tests?|jobs?|tasks?) failed\b|\b0 tests (?:completed and failed|skipped because of illegal)\b"
    r"|\b(?:frame|bit|block|symbol|mean|squared|abs(?:olute)?|rel(?:ative)?|max(?:imum)?|avg|average|residual"
    r"|test|train(?:ing)?|val(?:idation)?|root)[ _-]errors?\b(?=\s*[=:]?\s*-?[\d.])"
    r"|error rate|_error\b(?![\"']? ?[:=])|error[-_ ]?handling|errors?\.py"
    r"|failed[\"']? ?[:=] ?0\b|\bnorm of error\b"
    r"|(?:\w+ ){0,2}\w+(?<!\d) *[:=] *(?:no|none|n/a|0|false|disabled) *$"
    r"|\berror(?=.{0,80}\bloss\b)|(?<=loss).{0,80}\berror\b",
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
    if _WENT_WRONG.search(line) or "wandb: " in line:
        return False
    return bool(PROGRESS.search(line) or is_step(line))


def is_reassuring(line: str) -> bool:
    """Return whether a line has the words of a failure and reports none."""
    return is_harmless(line) or reports_failure(line) != bool(_WENT_WRONG.search(line))


def reports_failure(line: str) -> bool:
    """Return whether a line has the words of a failure, apart from numbers and names that have them."""
    if not _WENT_WRONG.search(line) or is_typed(line):
        return False
    return bool(_WENT_WRONG.search(without_names(line)))


def without_names(line: str) -> str:
    """Return a line without the numbers and names that have the words of a failure."""
    return _NAMED_SO.sub(" ", line)


def failure_lines(text: str) -> list[str]:
    """Return the lines that report a failure, after the last one that reports progress."""
    return [line for _, line in numbered_failures(text.splitlines())]


def numbered_failures(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return those lines, each with its number, from 0 on."""
    failures: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        if (is_named(line) or reports_failure(line)) and not is_harmless(line):
            failures.append((number, line))
        elif is_progress(line) or "WorkerState.SUCCEEDED" in line:
            failures.clear()
        elif nccl_went_on(line):
            failures = [failure for failure in failures if not is_of_nccl(failure[1])]
    return failures


def nccl_went_on(line: str) -> bool:
    """Return whether NCCL says that it has its networks, ranks or connections, whatever it warned of before."""
    return bool(_NCCL_WENT_ON.search(line))


def is_of_nccl(line: str) -> bool:
    """Return whether a line is a warning of NCCL's."""
    return bool(_OF_NCCL.search(line))


def was_warned(scan: LogScan) -> bool:
    """Return whether a log has something before its last steps that could pass for a failure, and was none."""
    if any(event.role is not Role.GOOD for event in scan.events):
        return True
    lines = scan.tail.splitlines()[-MOST_LINES:]
    return any(
        WARNING.search(line) or _WENT_WRONG.search(line) or meaning_of(line) for line in lines
    )
