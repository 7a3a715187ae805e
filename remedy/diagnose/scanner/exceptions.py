"""The exception that a Python traceback in a log ends with, behind any prefix of its lines."""

from __future__ import annotations

import re
from dataclasses import replace

from remedy.diagnose import lines
from remedy.diagnose.phrases.harmless import is_harmless
from remedy.diagnose.phrases.kinds import FRAME, Raised
from remedy.diagnose.scanner import enclosed

TRACEBACK = enclosed.TRACEBACK.encode()
EXCEPTION = "python-exception"
LONGEST = 32 << 10  # bytes of a traceback that are read
MOST_LINES = 2_000  # of a traceback; Python itself sums up what repeats
MOST_LINES_OF_A_FRAME = (
    6  # what Python 3.13 prints of one: file, code, marks, and what is left of the one before
)

MOST_OF_A_MESSAGE = 40  # lines after its first
MOST_OF_A_RULE = 4  # lines between an exception and the traceback that it passes on

# What ends the message of an exception: another traceback, a stack of C++, a line of a log.
_IS_ANOTHER = re.compile(
    r"Traceback|(?:During handling|The above exception)|Stack trace:|\s*\[bt\]|Exception raised from"
    r"|\[?(?:\d{4}-\d\d-\d\d|[IWEF]\d{4} )|(?:INFO|WARNING|ERROR)\b|[\w.-]+:\d+:\d+ \["
)
# An exception that Python itself ignored, or one whose message is the traceback of another process.
_MARK = "Exception ignored "
_IGNORED = re.compile(rb"Exception ignored (?:in|on|while)\b[^\n]*\n\Z")
_PASSED_ON = re.compile(
    r"(?:[\"'=*#~-]{2,}|-- Process \d+ terminated with the following error:)? *$"
)
_LINE = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_FRAME_BEGINS = '  File "'
_FRAME_TEXT = re.compile(rb'  File "[^"\n]{1,500}", line \d+, in ')
# Bytes between the first line of a traceback and its first frame, where both are one line.
JOINED = 12
_WARNED = re.compile(r"(?:^|[\[ |:])W\d{3,4} \d\d:\d\d|\bWARN(?:ING)?\b")
_ANYWHERE = re.compile(
    r"(?:^|[\]):>|] +|\b(?:ERROR|CRITICAL|FATAL) (?:\w{1,20}=\S{1,40} ){0,3})"
    r"((?:[a-z_]\w{0,60}\.){0,8}(?:[A-Z]\w{0,80}(?:Error|Exception)|Exception)(?:: .*)?)$"
)
MOST_BETWEEN = 40  # lines of others between the last frame of a traceback and its exception
LAST_LINES = 400  # at the end of a log that are read for an exception without a traceback


def is_named(line: str) -> bool:
    """Return whether a line names an exception and its message."""
    match = _ANYWHERE.search(line[: lines.WIDEST])
    return match is not None and ": " in match[1]


def is_ignored(before: bytes) -> bool:
    """Return whether Python reports a traceback of something that it ignored: of a destructor, at its end.

    Args:
        before: what stands before the traceback.
    """
    return _IGNORED.search(before) is not None


def without_ignored(text: str) -> str:
    """Return lines with those empty that report what Python ignored: their number stays.

    Args:
        text: the end of a log.
    """
    if _MARK not in text:
        return text
    kept: list[str] = []
    at = -1  # where the text of a report begins on its lines, -1 outside one
    for line in text.split("\n"):
        begin = line.find(_MARK)
        is_inside = at >= 0 or begin >= 0
        if begin >= 0:
            at = begin
        elif at >= 0 and line[at:] and line[at] not in " \t" and "Traceback" not in line:
            at = -1  # the exception itself, its last line
        kept.append("" if is_inside else line)
    return "\n".join(kept)


def is_joined(raw: bytes) -> bool:
    """Return whether a line holds a traceback to its end, as where a collector or a person joined its lines.

    Args:
        raw: the line.
    """
    frame = raw.partition(TRACEBACK)[2].find(b'File "')
    return frame >= 0 and frame < JOINED


def last_named(ending: str) -> Raised | None:
    """Return the last exception that lines name, with or without a traceback; None where they name none.

    One that a logger warned of was caught; one that is harmless by itself ended nothing.

    Args:
        ending: the last lines of a log; ``after`` counts from its last line backwards.
    """
    for number, line in enumerate(reversed(ending.rstrip().splitlines()[-LAST_LINES:])):
        match = _ANYWHERE.search(line[: lines.WIDEST])
        if match and not (_WARNED.search(line[: match.start(1)]) or is_harmless(line)):
            return Raised(match[1], -number, "")
    return None


def is_warned_of(opening: str) -> bool:
    """Return whether a logger warned of a traceback: what it raised was caught.

    Args:
        opening: its first line, with what stands before it.
    """
    return bool(_WARNED.search(opening.partition(TRACEBACK.decode())[0]))


def reach(opening: str) -> int:
    """Return how many bytes after the first line of a traceback are read.

    Args:
        opening: this line.
    """
    return enclosed.LONGEST if enclosed.is_boxed(opening) else LONGEST


def raised(opening: str, following: bytes) -> Raised | None:
    """Return the exception that a traceback ends with; None where its end is not there.

    Args:
        opening: the first line of the traceback, cleaned.
        following: what stands after this line, from its end on.
    """
    if f'{TRACEBACK.decode()}:  File "' in opening:
        return None  # numpy shows where it was imported, below a warning
    if enclosed.is_boxed(opening):
        box = enclosed.below_box(opening, _texts(following, enclosed.LONGEST)[1:])
        if box is None or not _LINE.match(box.text):
            return None
        return Raised(box.text, box.after, box.file)
    texts = _texts(following)[1:]
    return _end_of(_prefix(opening, texts), texts)


def _prefix(opening: str, texts: list[str]) -> lines.Prefix:
    """Return what stands before the lines of a traceback; its first may follow a progress bar on one line."""
    prefix = lines.prefix_of(opening, TRACEBACK.decode(), texts)
    first = texts[0] if texts else ""
    end = prefix.end(first)
    is_below = end is not None and FRAME.match(first[end:])
    if is_below or not _FRAME_TEXT.search(first.encode()):
        return prefix
    return lines.prefix_of(first, _FRAME_BEGINS, texts[1:])


def in_record(line: bytes) -> Raised | None:
    """Return the exception of a traceback that a record of JSON holds on one line; None where it holds none.

    Args:
        line: the whole line.
    """
    head, _, rest = enclosed.of_record(line.decode("utf-8", "replace")).partition("\n")
    exception = raised(head, f"\n{rest}".encode("utf-8", "replace")) if rest else None
    return replace(exception, after=0, more=()) if exception else None


def beheaded(beginning: bytes) -> Raised | None:
    """Return the exception of a traceback that a log begins in the middle of; None where it does not.

    Args:
        beginning: of the log.
    """
    if not _FRAME_TEXT.search(beginning[:LONGEST]):
        return None
    texts = _texts(beginning)
    for number, text in enumerate(texts[:MOST_LINES_OF_A_FRAME]):
        if TRACEBACK.decode() in text:
            return None
        if _FRAME_TEXT.search(text.encode()):
            prefix = lines.prefix_of(text, _FRAME_BEGINS, texts[number + 1 :])
            return _end_of(prefix, texts[number:], number)
    return None


def _texts(raw: bytes, longest: int = LONGEST) -> list[str]:
    rows = raw[:longest].split(b"\n", MOST_LINES)[:MOST_LINES]
    return [lines.clean(row[: lines.WIDEST]) for row in rows]


def _end_of(prefix: lines.Prefix, texts: list[str], first: int = 1) -> Raised | None:
    file = code = ""
    between = 0
    for number, text in enumerate(texts, first):
        end = prefix.end(text)
        if end is None:
            continue
        message = text[end:]
        if frame := FRAME.match(message):
            file = frame["file"]
        elif message.startswith("    ") and message.strip("^~ "):
            code = message.strip()
        if not message or message[0] in " \t|+" or message.startswith("Traceback"):
            between = 0
            continue
        # Lines of others can stand between; where many do, the exception itself was never printed.
        between += 1
        if between > MOST_BETWEEN:
            return None
        if _LINE.match(message):
            rest = texts[number - first + 1 :]
            is_empty = message.endswith(":")
            passes_on = is_empty and _passes_on(prefix, rest)
            return Raised(message, number, file, _more(prefix, rest), passes_on, code)
    return None


def _passes_on(prefix: lines.Prefix, texts: list[str]) -> bool:
    """Return whether nothing but a rule stands between the first line of a message and another traceback."""
    for text in texts[:MOST_OF_A_RULE]:
        end = prefix.end(text)
        message = "" if end is None else text[end:]
        if message.startswith(TRACEBACK.decode()):
            return True
        if not _PASSED_ON.match(message):
            return False
    return False


def _more(prefix: lines.Prefix, texts: list[str]) -> tuple[str, ...]:
    """Return the lines of a message after its first: up to where something else begins."""
    more = []
    for text in texts[:MOST_OF_A_MESSAGE]:
        end = prefix.end(text)
        message = "" if end is None else text[end:]
        if _IS_ANOTHER.match(message):
            break
        more.append(message)
    return tuple(more)
