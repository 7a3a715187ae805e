"""What the last lines of a log say in the system's words, where no entry of the catalogue knows the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from remedy.diagnose import lines
from remedy.diagnose.diagnosis import Candidate, Quote
from remedy.diagnose.progress import is_progress, is_reassuring
from remedy.diagnose.refusals import is_of_an_end, meaning_of
from remedy.diagnose.scan import LogScan

LAST_LINES = 25  # at the end of a log: what stands before was survived
# What a program asked of a service of the web says nothing of the hosts of a job; what it tells is no failure.
_ELSEWHERE = re.compile(
    r"https?://|HTTPS?Connection|huggingface|wandb|\b(?:pip|apt|yum|git|curl|wget)\b|\b(?:INFO|DEBUG)\b"
)


def by_words(scans: Sequence[LogScan]) -> tuple[Quote, tuple[Candidate, ...]] | None:
    """Return the last line that says in the system's words why something failed, and what that can be.

    Args:
        scans: logs in which no entry of the catalogue decides.
    """
    # What was not read of a log may hold the failure.
    for scan in filter(lambda scan: scan.is_whole, scans):
        matches = [
            (after, text, words) for after, text in _last_lines(scan) if (words := meaning_of(text))
        ]
        # A process that was ended is named only where nothing was said before.
        for after, text, words in sorted(matches, key=lambda line: is_of_an_end(line[2])):
            lead = Quote(file=scan.name, line=max(1, scan.lines - after), text=text.strip())
            return lead, tuple(
                Candidate(label=c.label, score=c.weight, reason=c.because, evidence=(lead,))
                for c in words.causes
            )
    return None


def says_otherwise(scans: Sequence[LogScan], effect: Quote, label: str) -> bool:
    """Return whether a log says in the system's words, before an effect, that something else had failed.

    Args:
        scans: the logs.
        effect: what a process printed that suffered from another.
        label: what the effect speaks for.
    """
    return any(
        words is not None and words.causes[0].label != label
        for scan in scans
        if scan.name == effect.file
        for after, text in _last_lines(scan)
        if scan.lines - after < effect.line
        for words in (meaning_of(text),)
    )


def _last_lines(scan: LogScan) -> Iterator[tuple[int, str]]:
    """Yield the last lines of a log back to one that reports progress, each with how many follow it."""
    for after, line in enumerate(reversed(scan.tail.rstrip().splitlines()[-LAST_LINES:])):
        text = lines.without_guesses(line[: lines.WIDEST])
        if is_progress(text):
            return
        if not (is_reassuring(text) or _ELSEWHERE.search(text)):
            yield after, text
