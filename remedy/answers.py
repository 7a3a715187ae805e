"""Reading what scripts print on hosts: only lines with the nonce of the script count.

A nonce is new for each script, so that nothing else in the same stream passes for its answer: not a greeting
or a warning, not what an earlier run left in a pipe, not a line that somebody on the host made up. Two framings
exist:

- a *line*: ``[MARK ]NONCE REST``, for short answers that are read even where the script was cut off;
- a *block*: ``MARK NONCE WORD``, then text of any form, then ``MARK NONCE end``.

Where the channel cannot say how a script ended, its exit code is the last line of its errors: ``WORD CODE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A rank's report holds the end of its log; 2,048 hosts in one report of links take 1 MiB.
LONGEST = 4 << 20
MOST = 20_000
LAST_WORDS = 1 << 16
EXCERPT = 200
"""Characters of a host's own words that go into a message."""
_CODE = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True)
class Answer:
    """The lines of one script.

    Args:
        lines: what follows the nonce, in order.
        began: whether its nonce came at all, be it in a line that something else had begun.
        foreign: how everything else that was printed begins, for messages.
        fault: why not all lines of the script are here, "" when they are.
    """

    lines: tuple[str, ...]
    began: bool
    foreign: str = ""
    fault: str = ""

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The lines, each taken apart at its blanks."""
        return tuple(tuple(line.split(" ")) for line in self.lines)


@dataclass(frozen=True)
class Block:
    """The text between the marks of one script.

    Args:
        kind: the word behind the first mark.
        text: what follows it, as far as it came.
        complete: whether the last mark is there.
    """

    kind: str
    text: str
    complete: bool


def read_answer(stdout: str, nonce: str, *, mark: str = "") -> Answer:
    """Take the lines of a script out of all that a host printed.

    Args:
        stdout: what the host printed.
        nonce: of the script.
        mark: the word before the nonce, where the script prints one.
    """
    prefix = f"{mark} {nonce} " if mark else f"{nonce} "
    lines: list[str] = []
    foreign = fault = ""
    for line in _lines(stdout):
        if not line.startswith(prefix):
            foreign = foreign or line.strip()[:EXCERPT]
        elif len(line) > LONGEST:
            fault = f"a line is longer than {LONGEST >> 20} MiB"
        elif len(lines) == MOST:
            fault = f"there are more than {MOST} lines"
            break
        else:
            lines.append(line[len(prefix) :].removesuffix("\r"))
    return Answer(tuple(lines), nonce in stdout, foreign, fault)


def _lines(text: str) -> Iterator[str]:
    """Yield lines one by one: a flood of short ones would be ten times itself as a list."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]


def read_block(stdout: str, nonce: str, mark: str, kinds: tuple[str, ...]) -> Block | None:
    """Return the block of a script; None where it did not begin.

    Args:
        stdout: what the host printed.
        nonce: of the script.
        mark: the word before the nonce.
        kinds: the words that can follow it.
    """
    words = "|".join(map(re.escape, kinds))
    begin = re.search(rf"{re.escape(mark)} {re.escape(nonce)} ({words})\r?\n", stdout)
    if begin is None:
        return None
    end = stdout.find(f"{mark} {nonce} end", begin.end())
    text = stdout[begin.end() :] if end < 0 else stdout[begin.end() : end]
    return Block(begin[1], text, complete=end >= 0)


def read_exit(stderr: str, word: str) -> tuple[str, int | None]:
    """Return a script's errors, and its exit code; None where it did not come to its end.

    Args:
        stderr: all that came as errors; its last line is the mark where the script came to its end.
        word: the mark's first word, new for each script; the exit code follows it.
    """
    before, _, last = stderr.rstrip("\n").rpartition("\n")
    mark, _, code = last.partition(" ")
    if mark != word or not _CODE.fullmatch(code):
        return stderr, None
    return before.rstrip("\n"), int(code)


def silence(stderr: str) -> str:
    """Return why a script that ended gave no answer: the last words of its errors."""
    lines = stderr[-LAST_WORDS:].strip().splitlines()
    return lines[-1][:EXCERPT] if lines else "the script ended without an answer"
