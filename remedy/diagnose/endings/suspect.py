"""Lines that are seldom printed where all is well: too weak to name a cause, and enough to doubt a good end."""

from __future__ import annotations

import re

from remedy.diagnose.endings.progress import is_progress, reports_failure, without_names
from remedy.diagnose.phrases.harmless import is_harmless
from remedy.diagnose.scanner.exceptions import is_named
from remedy.diagnose.scanner.sessions import is_typed

PAGE = 20  # lines; of fewer that report no failure most are the beginning of a start

_NO_NUMBER = r"\b(?:loss|grad)\w*\W{1,4}nan\b"
_WORDS = (
    r"\bnot found\b|\bno such\b|\bfault\b|\bsegfault\b|\binvalid\b|\billegal\b|\bunreachable\b|\bbroken\b",
    r"\bstuck\b|\bhangs?\b|\bhung\b|\bcrash|\bcorrupt|\bmismatch|\bdisconnected\b|\btraceback\b",
    # How a process ended.
    r"\bexit(?:ed|ing)?(?: (?:with|code|status|unexpectedly)){1,3}\W{1,3}[1-9]|^\W{0,3}exit [1-9]",
    r"(?-i:> Exited$)|\breturn ?code\W{1,3}[1-9]|\b(?:status|code) [1-9]\d{0,2}\W*$|\bnon-zero\b",
    r"\bsignal \d|(?-i:\bSIG(?:TERM|KILL|INT|HUP|ABRT|SEGV|BUS|FPE|ILL)\b)|\bunexpectedly\b",
    r"(?<!\bJob )\bterminated\b(?! (?:at|of its own accord|normally|successfully)\b|['\"])",
    # Who did not answer.
    r"\btimed out\b|\bgave up\b|\bgiving up\b|\bstopped (?:answering|responding)\b|\bunresponsive\b",
    r"\b(?:lost|vanished|gone|went away|drained|flap(?:ped)?)\b|\bnever (?:arrived|came|answered)\b",
    r"\bcould not\b|\b(?:did|does|has|have) not (?:answer|respond|arrive|start|reply|return|finish|complete)",
    r"\bdid not\W*$|\bno (?:output|answer|response|reply)\b|\bexcept (?:rank|node|host)\b",
    r"(?<!done )\bwaiting for (?:\w+ ){0,3}(?:ranks?|workers?|nodes?|peers?|processes|hosts?|barrier)\b",
    # What came of it.
    r"(?-i:\bFAIL\b|\bERR\b|\bNOT OK\b)|\brejected\b|\bcasualt|\b0 bytes\b|!=|\bdiffers on\b",
    r"\b(?:success|pass|hit) rate\W{1,4}0(?:\.0{1,4})? ?%",
    r"\b(?:answers|outputs|predictions|results) (?:are |were )?empty\b",
    rf"\bwrong (?:sums?|results?|answers?)\b|{_NO_NUMBER}",
    r"fehler|erreur|\béchec|错误|失败|錯誤|失敗|エラー|오류|실패|ошибк",
)
_SUSPECT = re.compile("|".join(_WORDS), re.IGNORECASE)
_NAN = re.compile(_NO_NUMBER, re.IGNORECASE)
_PART_OF_ALL = re.compile(
    r"\b(\d{1,7}) (?:out )?of (\d{1,7}) (?:ranks|nodes|hosts|workers|processes|tests|jobs)\b"
)


def is_suspect(line: str) -> bool:
    """Return whether a line has a word of a failure, or one that is seldom said where all is well.

    Args:
        line: of a log.
    """
    if is_named(line):
        return not is_harmless(line)
    if is_typed(line) or (is_progress(line) and not _NAN.search(line)):
        return False
    rest = without_names(line)
    is_part = any(part != all_ for part, all_ in _PART_OF_ALL.findall(rest))
    has_words = is_part or reports_failure(line) or _SUSPECT.search(rest)
    return bool(has_words) and not is_harmless(line)


def is_silent_of_failure(text: str) -> bool:
    """Return whether the end of a log has a page of lines, and nothing suspect in any of them.

    Args:
        text: the last lines of the log.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) >= PAGE and not any(map(is_suspect, lines))
