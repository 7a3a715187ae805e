"""What the last lines of a log say in the system's words, where no entry of the catalogue knows the program."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from remedy.diagnose import lines
from remedy.diagnose.course.levels import is_no_report
from remedy.diagnose.diagnosis import Candidate, Quote
from remedy.diagnose.endings.progress import is_of_nccl, is_progress, is_reassuring, nccl_went_on
from remedy.diagnose.judgement.context import factors_of, weighed
from remedy.diagnose.judgement.phase import STEPS, after_steps
from remedy.diagnose.judgement.refuted import answered_in
from remedy.diagnose.phrases.plain import OWN, PUBLIC, Words
from remedy.diagnose.phrases.refusals import is_of_an_end, meaning_of
from remedy.diagnose.phrases.topics import causes_about
from remedy.diagnose.scanner.job_setting import together
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.diagnose.scanner.sessions import is_typed

LAST_LINES = 25  # at the end of a log: what stands before was survived
# What a program asked of a service of the web says nothing of the hosts of a job; what it tells is no failure.
_ELSEWHERE = re.compile(
    rf"{PUBLIC}|HTTPS?Connection|huggingface|wandb|\bunix:/|\b(?:pip|apt|yum|git|curl|wget)\b|\b(?:INFO|DEBUG)\b"
)


def by_words(scans: Sequence[LogScan]) -> tuple[Quote, tuple[Candidate, ...]] | None:
    """Return the last line that says in the system's words why something failed, and what that can be.

    Args:
        scans: logs in which no entry of the catalogue decides.
    """
    factors = factors_of(together(scan.setting for scan in scans))
    # What was not read of a log may hold the failure.
    for scan in filter(lambda scan: scan.is_whole, scans):
        matches = [
            (after, text, words)
            for after, text in _last_lines(scan)
            if (words := meaning_of(text)) and not (words is OWN and any(causes_about(text)))
        ]
        # A process that was ended is named only where nothing was said before.
        for after, text, words in sorted(matches, key=lambda line: is_of_an_end(line[2])):
            lead = Quote(file=scan.name, line=max(1, scan.lines - after), text=text.strip())
            meant = map(after_steps, words.causes) if len(scan.steps) >= STEPS else words.causes
            causes = (weighed(cause, factors) for cause in meant)
            return lead, tuple(
                Candidate(label=c.label, score=c.weight, reason=c.because, evidence=(lead,))
                for c in sorted(causes, key=lambda cause: -cause.weight)
            )
    return None


def says_otherwise(
    scans: Sequence[LogScan], lead: Quote, labels: Collection[str], *, of_others: bool
) -> bool:
    """Return whether a log says in the system's words, before a line, that something else had failed.

    Args:
        scans: the logs.
        lead: the line.
        labels: what it speaks for.
        of_others: whether the line reports that a process suffers from another: then its own words count,
            too, and what is likeliest by them; otherwise everything that they can mean.
    """
    return any(
        _is_another(words, labels, of_others=of_others)
        for scan in scans
        if scan.name == lead.file
        for after, text in _last_lines(scan)
        if scan.lines - after < lead.line + of_others
        for words in (meaning_of(text),)
    )


def _is_another(words: Words | None, labels: Collection[str], *, of_others: bool) -> bool:
    if words is None or is_of_an_end(words):
        return False
    causes = words.causes[: 1 if of_others else None]
    return not any(cause.label in labels for cause in causes)


def _last_lines(scan: LogScan) -> Iterator[tuple[int, str]]:
    """Yield the last lines of a log back to one that reports progress, each with how many follow it."""
    is_answered, went_on = answered_in(scan), False
    for after, line in enumerate(reversed(scan.tail.rstrip().splitlines()[-LAST_LINES:])):
        text = lines.without_guesses(line[: lines.WIDEST])
        if is_progress(text):
            return
        went_on = went_on or nccl_went_on(text)
        if not (
            (went_on and is_of_nccl(text))
            or is_typed(text)
            or is_answered(scan.lines - after, text)
            or is_reassuring(text)
            or is_no_report(text)
            or _ELSEWHERE.search(text)
        ):
            yield after, text
