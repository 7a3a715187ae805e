"""Logs as collectors keep them: a record, or a line behind a collector's words, is made into what was printed.

journalctl, fluentd, Loki, Google's and other clouds' logging write records of JSON; Airflow, a logger around a
child process, `grep -n` or a quotation put something before each line. The level that a collector gives a line
says where it was printed, and not what it reports, so it is left out where it is the same on all of them. Lines
keep their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from remedy.diagnose import lines

FIRST = 64 << 10  # bytes by which the form is known
ROWS = 40  # lines of them that are looked at, at most
LEAST = 3  # lines, before something that they have in common is a collector's
SHARE = 0.95  # of them that have to have the form
LONGEST = 256 << 10  # bytes of a record; a longer line stays as it is
_OF_A_CLOUD = ('"textPayload"', '"jsonPayload"', '"kubernetes"')
_JOURNAL = '"__REALTIME_TIMESTAMP"'
# Before a record: fluentd's time and tag, or nothing.
_HEAD = re.compile(r"(?:\S{1,80}\t\S{1,200}\t)?(?=\{)")
_MESSAGES = ("textPayload", "log", "message", "msg", "line", "body", "event", "text")
_TIMES = ("timestamp", "time", "@timestamp", "ts", "asctime", "datetime")
_LEVELS = ("level", "severity", "levelname", "log.level")
_OF_EXCEPTIONS = ("exc_info", "exception", "stack_trace", "exc_text", "stack")
_STAMP = r"\d{4}-\d\d-\d\d[T ,]{1,2}\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?UTC|Z|[+-]\d\d:?\d\d)?"
_NAME = (
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
    r"|trace|debug|info|warn(?:ing)?|error|critical)"
)


class _Form(NamedTuple):
    """What stands before each line.

    Args:
        pattern: with the groups ``text``, and ``time``, ``rank``, ``quoted`` where there are any; a ``number``
            is one that grows from line to line.
        same: whether its group ``origin`` is the same on all lines: a logger's own come from many places.
        least: lines by which it is known.
    """

    pattern: re.Pattern[str]
    same: bool = False
    least: int = LEAST


_FORMS = (
    # Airflow
    _Form(
        re.compile(
            rf"\[(?P<time>{_STAMP})\] \{{[\w.]{{1,60}}:\d{{1,6}}\}} {_NAME} - (?P<text>.*)$"
        ),
        least=1,
    ),
    # glog and absl around a child's lines
    _Form(
        re.compile(
            r"(?P<origin>[IWEF])\d{4} (?P<time>\d\d:\d\d:\d\d\.\d{1,6}) +\d{1,9} "
            r"(?P<place>[\w./-]{1,80}:\d{1,6})\] (?P<text>.*)$"
        ),
        same=True,
    ),
    # Python's logging, loguru and structlog around them
    _Form(
        re.compile(rf"(?P<time>{_STAMP}) - (?P<origin>[\w.-]{{1,80}} - {_NAME}) - (?P<text>.*)$"),
        same=True,
    ),
    _Form(
        re.compile(
            rf"(?P<time>{_STAMP}) \| (?P<origin>{_NAME} *\| [\w.<>]{{1,80}}:[\w.<>]{{1,60}}:\d{{1,6}}) - "
            r"(?P<text>.*)$"
        ),
        same=True,
    ),
    _Form(
        re.compile(
            rf"(?P<time>{_STAMP}) (?P<origin>\[{_NAME} *\]) (?P<text>.*?)"
            r"(?: \[[\w.-]{1,60}\](?: rank=(?P<rank>\d+))?)?$"
        ),
        same=True,
    ),
    # logfmt
    _Form(
        re.compile(
            rf'(?:time|ts)="?(?P<time>{_STAMP})"? (?P<origin>level={_NAME}) msg=(?P<quoted>"(?:[^"\\]|\\.)*")'
            r"(?: rank=(?P<rank>\d+))?.*$"
        ),
        same=True,
    ),
    # Determined
    _Form(
        re.compile(
            rf"\[(?P<time>{_STAMP})\] (?P<origin>\w{{1,16}}) (?:\[rank=(?P<rank>\d+)\] )?\|\| "
            rf"(?:{_NAME}: )?(?P<text>.*)$"
        ),
        same=True,
    ),
    # grep -n, nl, a quotation, an indented block
    _Form(
        re.compile(r"(?P<origin>[\w./-]{1,200}\.[a-z]\w{0,7}):(?P<number>\d{1,9}):(?P<text>.*)$"),
        same=True,
    ),
    _Form(re.compile(r" {0,6}(?P<number>\d{1,9})\t(?P<text>.*)$")),
    _Form(re.compile(r"(?:> |>$)(?P<text>.*)$")),
    _Form(re.compile(r"(?:    |\t)(?P<text>.*)$")),
)


def as_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a log with the lines that were printed; one that no collector kept stays as it is.

    Args:
        blocks: of the log.
    """
    first = next(blocks, b"")
    data = chain((first,) if first else (), blocks)
    reader = _reader(first[:FIRST])
    return data if reader is None else _lines(data, reader)


def _reader(beginning: bytes) -> Callable[[str], str] | None:
    """Return what makes lines of what a log is made of; None where that is lines already."""
    rows = beginning.split(b"\n")
    # The last row may not be whole.
    whole = rows[:-1] if len(beginning) >= FIRST else rows
    texts = [row.decode("utf-8", "replace").rstrip("\r") for row in whole if row.strip()][:ROWS]
    if not texts:
        return None
    if texts[0].startswith("{") and _JOURNAL in texts[0]:
        return lambda row: lines.of_journal(row).replace("\n", "\r")
    is_of_a_cloud = any(mark in texts[0] for mark in _OF_A_CLOUD)
    if "{" in texts[0] and (is_of_a_cloud or len(texts) >= LEAST) and _are_records(texts):
        levels = {str(_first(_record(text) or {}, _LEVELS)) for text in texts}
        return lambda row: _of_record(row, with_level=len(levels) > 1)
    form = next((form for form in _FORMS if _has_form(texts, form)), None)
    return None if form is None else lambda row: _of_form(row, form.pattern)


def _are_records(texts: Sequence[str]) -> bool:
    messages = [isinstance(_message(_record(text) or {}), str) for text in texts]
    return sum(messages) >= SHARE * len(texts)


def _record(text: str) -> Mapping[str, Any] | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    try:
        record = json.loads(text[head.end() :])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _message(record: Mapping[str, Any]) -> object:
    payload = record.get("jsonPayload")
    return _first(payload if isinstance(payload, dict) else record, _MESSAGES)


def _first(record: Mapping[str, Any], keys: Sequence[str]) -> object:
    return next((record[key] for key in keys if key in record), None)


def _of_record(row: str, *, with_level: bool) -> str:
    """Return the line of a record. One that holds a traceback stays: its lines are read where they stand."""
    record = _record(row)
    if record is None or any(record.get(key) for key in _OF_EXCEPTIONS):
        return row
    message = _message(record)
    if not isinstance(message, str) or "\n" in message.rstrip("\n"):
        return row
    level = f"{_first(record, _LEVELS) or ''} ".upper() if with_level else ""
    return _stamped(str(_first(record, _TIMES) or ""), level + message.rstrip("\n"))


def _has_form(texts: Sequence[str], form: _Form) -> bool:
    matches = [match for text in texts if (match := form.pattern.match(text))]
    if len(matches) < max(form.least, SHARE * len(texts)):
        return False
    numbers = [int(m["number"]) for m in matches if m.groupdict().get("number")]
    if any(later <= number for number, later in pairwise(numbers)):
        return False
    if not form.same:
        return True
    origins = {(match["origin"], match.groupdict().get("place")) for match in matches}
    return len(origins) == 1


def _of_form(row: str, pattern: re.Pattern[str]) -> str:
    match = pattern.match(row)
    if match is None:
        return row
    groups = match.groupdict()
    text = groups.get("text") or ""
    if quoted := groups.get("quoted"):
        try:
            text = str(json.loads(quoted, strict=False)).replace("\n", "\r")
        except ValueError:
            return row
    if rank := groups.get("rank"):
        text = f"[rank{rank}]: {text}"
    return _stamped(groups.get("time") or "", text)


def _stamped(time: str, text: str) -> str:
    """Return a line with its time before it, where it has none of its own."""
    stamp = time.replace(", ", " ").removesuffix(" UTC")
    if not stamp or lines.time_of(text[:60]) is not None or lines.time_of(stamp) is None:
        return text
    return f"{stamp} {text}"


def _lines(blocks: Iterator[bytes], reader: Callable[[str], str]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        rows = (rest + block).split(b"\n")
        rest = rows.pop()
        if rows:
            yield b"".join(_line(row, reader) + b"\n" for row in rows)
        if len(rest) > LONGEST:
            yield rest
            rest = b""
    if rest:
        yield _line(rest, reader)


def _line(row: bytes, reader: Callable[[str], str]) -> bytes:
    """Return one line for one line: so they keep their numbers."""
    if len(row) > LONGEST:
        return row
    text = row.decode("utf-8", "replace").rstrip("\r")
    return reader(text).encode("utf-8", "replace")
