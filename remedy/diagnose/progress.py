"""Whether a log goes on, ended well, or ended badly: told from its own last lines, apart from the catalogue."""

from __future__ import annotations

import re

from remedy.diagnose.catalogue import Role
from remedy.diagnose.exceptions import is_named
from remedy.diagnose.harmless import is_harmless
from remedy.diagnose.refusals import meaning_of
from remedy.diagnose.scan import LogScan
from remedy.diagnose.steps import is_step

MOST_LINES = 400  # at the end of a log that are read for warnings
PAGE = 20  # lines; of fewer that report no failure most are the beginning of a start
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
# What says nothing by itself, and yet is more than a log in which nothing is reported; and how others say it.
_SUSPECT = re.compile(
    r"\bnot found\b|\bno such\b|\bfault\b|\binvalid\b|\billegal\b|^usage: |\bmissing\b|\blost\b|\bunreachable\b"
    r"|\bstuck\b|\bhangs?\b|\bhung\b|\bcrash|\bcorrupt|\bmismatch|\bdisconnected\b|\bexit(?:ed|ing)?\b\D{0,24}\b[1-9]"
    r"|\bsignal \d|\btime(?:d out|out)\b|\btraceback\b|\bnan\b|\bbroken\b|\bgave up\b|\bgiving up\b"
    r"|fehler|erreur|\béchec|错误|失败|錯誤|失敗|エラー|오류|실패|ошибк",
    re.IGNORECASE,
)
# Numbers and names that have the words of a failure: the rest of their line may still report one.
_NAMED_SO = re.compile(
    r"error_handling|\bnot an? (?:error|failure)\b|errors?[=: ]+(?:0|none|\[\])|\b(?:no|0) errors?"
    r"|\b[Ss]tandard error\b|\bfailures? ?[=:] ?(?:0|none)\b|\b0 tests completed and failed\b"
    r"|\b(?:frame|bit|block|symbol|mean|squared|abs(?:olute)?|rel(?:ative)?|max(?:imum)?|avg|average|residual"
    r"|test|train(?:ing)?|val(?:idation)?|root)[ _-]errors?\b(?=\s*[=:]?\s*-?[\d.])"
    r"|error rate|_error\b(?![\"']? ?[:=])|error[-_ ]?handling|errors?\.py|failed: 0"
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
    return bool(_WENT_WRONG.search(line) and _WENT_WRONG.search(_NAMED_SO.sub(" ", line)))


def failure_lines(text: str) -> list[str]:
    """Return the lines that report a failure, after the last one that reports progress."""
    failures: list[str] = []
    for line in text.splitlines():
        if is_named(line) or (reports_failure(line) and not is_harmless(line)):
            failures.append(line)
        elif is_progress(line) or "WorkerState.SUCCEEDED" in line:
            failures.clear()
        elif _NCCL_WENT_ON.search(line):
            failures = [failure for failure in failures if not _OF_NCCL.search(failure)]
    return failures


def is_silent_of_failure(text: str) -> bool:
    """Return whether the end of a log has a page of lines, and no word of a failure in any of them."""
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) >= PAGE and not any(
        is_named(line)
        or (not is_harmless(line) and (reports_failure(line) or _SUSPECT.search(line)))
        for line in lines
    )


def was_warned(scan: LogScan) -> bool:
    """Return whether a log has something before its last steps that could pass for a failure, and was none."""
    if any(event.role is not Role.GOOD for event in scan.events):
        return True
    lines = scan.tail.splitlines()[-MOST_LINES:]
    return any(
        WARNING.search(line) or _WENT_WRONG.search(line) or meaning_of(line) for line in lines
    )
