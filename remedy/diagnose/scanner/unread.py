"""What of a log patterns did not see: nothing is left out without being said."""

from __future__ import annotations

from dataclasses import dataclass, field

from remedy.text import counted


@dataclass
class Unread:
    """What one log has too much of.

    Args:
        wide: numbers of lines that are too long to be read whole.
        tracebacks: numbers of the lines where one begins that is too long.
        frequent: texts on more lines than are tried.
        late: number of the line from which nothing was tried any more, for time; 0 where there was enough.
    """

    wide: set[int] = field(default_factory=set)
    tracebacks: set[int] = field(default_factory=set)
    frequent: set[str] = field(default_factory=set)
    late: int = 0

    def sentences(self, *, width: int, most: int, seconds: float) -> tuple[str, ...]:
        """Say it.

        Args:
            width: characters of a line that are read.
            most: lines with one text that are tried.
            seconds: of work that a log may take.
        """
        sentences = []
        if self.late:
            sentences.append(
                f"not read from line {self.late} on: its lines took more than {seconds:g} s of work"
            )
        if self.wide:
            sentences.append(
                f"{_lines(self.wide)} longer than {width:,} characters: read only around texts that "
                "are known, the rest was not"
            )
        if self.tracebacks:
            sentences.append(
                f"the end of a traceback was not read, {_lines(self.tracebacks)} its beginning"
            )
        if self.frequent:
            texts = ", ".join(repr(text) for text in sorted(self.frequent)[:3])
            more = f" and {counted(len(self.frequent) - 3, 'other text')}" * (
                len(self.frequent) > 3
            )
            sentences.append(f"only the first {most:,} places were read of {texts}{more}")
        return tuple(sentences)


def _lines(numbers: set[int]) -> str:
    first = f"line {min(numbers)}"
    if len(numbers) == 1:
        return f"{first} is"
    return f"{first} and {counted(len(numbers) - 1, 'other line')} are"
