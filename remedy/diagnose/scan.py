"""Reading one log in one pass: which entries of the catalogue match where.

Memory is bounded: a block, a little before and after it, and a few events of each entry.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from remedy.diagnose import lines
from remedy.diagnose.catalogue import CauseWeight, Role, Symptom, catalogue
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.engine import Find, make_finder
from remedy.diagnose.reader import Source

AROUND = 16 << 10  # bytes before and after a hit that are searched
REACH = 800  # characters of a very long line that are read on either side of a hit
ENOUGH = 12  # events of one entry in one log; more add nothing
PATIENCE = 5_000  # lines with one literal that are tried in one log

TRACEBACK = b"Traceback (most recent call last)"
EXCEPTION = "python-exception"
_EXCEPTION_LINE = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
# Raised about the system, not by the program's logic: unexplained, they do not speak against the program.
_SYSTEM_ERROR = re.compile(
    r"(?:OS|IO|Connection\w*|BrokenPipe|\w*Timeout|Permission|Interrupted|Dist\w+|Rendezvous\w*|\w*Network)Error"
    r"|torch\.distributed|RendezvousC"
    r"|.*(?:NCCL|[Gg]loo|HCCL|CUDA error|cudaError|\[Errno|errno|socket|c10d|enforce fail|signal"
    r"|shared object|undefined symbol|memory|/dev/|device)"
)
_SYSTEM = CauseWeight(label=APPLICATION, weight=0.45)
_PROGRAM = CauseWeight(label=APPLICATION, weight=0.7)
_FRAME = re.compile(r'^ +File "(?P<file>[^"]+)", line \d+')
_DETAILS = frozenset(
    (
        *("host", "rank", "address", "port", "interface", "device", "path", "version", "library"),
        *("module", "setting", "operation", "xid", "code", "pid"),
    )
)


@dataclass
class Event:
    """A place where an entry matched, or where a program raised an exception."""

    symptom: str
    role: Role
    source: str
    line: int
    text: str
    rank: int | None
    host: str
    time: float | None
    details: dict[str, str] = field(default_factory=dict)
    causes: tuple[CauseWeight, ...] = ()
    meaning: str = ""

    @property
    def weight(self) -> float:
        """The weight of the cause that it speaks for most clearly, 0 where it speaks for none."""
        return max((cause.weight for cause in self.causes), default=0.0)


@dataclass
class LogScan:
    """What was read from one log."""

    name: str
    events: list[Event]
    tail: str
    lines: int
    size: int
    trouble: str


@dataclass(frozen=True)
class Index:
    """The catalogue, made ready for scanning."""

    find: Find
    literals: tuple[bytes, ...]
    entries: dict[bytes, tuple[Symptom, ...]]


@cache
def index(without: frozenset[str] = frozenset()) -> Index:
    """Return the catalogue, ready for scanning.

    Args:
        without: families that are left out, for measuring.
    """
    entries: dict[bytes, list[Symptom]] = {}
    for symptom in catalogue():
        if symptom.family in without:
            continue
        for text in symptom.literals:
            entries.setdefault(text.encode(), []).append(symptom)
    texts = (*entries, TRACEBACK)
    return Index(
        make_finder(texts),
        texts,
        {text: tuple(symptoms) for text, symptoms in entries.items()},
    )


def scan(source: Source, prepared: Index) -> LogScan:
    """Read one log to its end, or as far as it can be read."""
    return _Scan(source, prepared).run()


class _Scan:
    def __init__(self, source: Source, prepared: Index) -> None:
        self.source = source
        self.index = prepared
        self.events: list[Event] = []
        self.counts: Counter[str] = Counter()
        self.tried: Counter[int] = Counter()
        self.rank = lines.rank_of_file(source.name)
        self.lines = 0
        self.time: float | None = None

    def run(self) -> LogScan:
        buffer, done, size = b"", 0, 0
        for block in self.source.read():
            size += len(block)
            buffer += block
            end = max(done, len(buffer) - AROUND)
            self._try_lines(buffer, done, end)
            begin = max(0, end - AROUND)
            buffer, done = buffer[begin:], end - begin
        self._try_lines(buffer, done, len(buffer))
        return LogScan(
            name=self.source.name,
            events=self.events,
            tail=lines.clean_text(buffer),
            lines=self.lines + (not buffer.endswith(b"\n") and bool(buffer)),
            size=size,
            trouble=self.source.trouble,
        )

    def _try_lines(self, buffer: bytes, start: int, end: int) -> None:
        """Try the entries on every line of ``buffer[start:end]`` that holds a literal of theirs."""
        if end <= start:
            return
        counted, last = start, -1
        for number, at in self.index.find(buffer[start:] if start else buffer):
            hit = at + start
            if hit >= end:
                break
            # A literal that was tried so often stands on ordinary lines.
            if hit < last or self.tried[number] > PATIENCE:
                continue
            self.tried[number] += 1
            self.lines += buffer.count(b"\n", counted, hit)
            counted = hit
            last = self._hit(buffer, hit)
        self.lines += buffer.count(b"\n", counted, end)

    def _hit(self, buffer: bytes, hit: int) -> int:
        """Try the entries on the line of a hit; return where the line ends."""
        begin, end = _bounds(buffer, hit)
        raw = buffer[begin:end]
        if TRACEBACK in raw:
            self._exception(buffer, begin, end)
            return end
        symptoms: dict[str, Symptom] = {}
        for literal in self.index.literals:
            if literal in raw:
                for entry in self.index.entries.get(literal, ()):
                    if self.counts[entry.id] < ENOUGH:
                        symptoms[entry.id] = entry
        if not symptoms:
            return end
        text = lines.clean(raw)
        around = ""
        for entry in symptoms.values():
            if entry.near and not around:
                around = _around(buffer, begin, end, entry.lines)
            match = entry.match(text, around)
            if match:
                self.counts[entry.id] += 1
                self.events.append(self._event(entry, match, text, buffer, begin))
        return end

    def _event(
        self, entry: Symptom, match: re.Match[str], text: str, buffer: bytes, begin: int
    ) -> Event:
        details = {key: value for key, value in match.groupdict().items() if value}
        if entry.extract and (extracted := re.search(entry.extract, text)):
            details |= {key: value for key, value in extracted.groupdict().items() if value}
        if entry.gloo_port:
            text, details = _unswapped(text, details)
        line = lines.split(text)
        return Event(
            symptom=entry.id,
            role=entry.role,
            source=self.source.name,
            line=self.lines + 1,
            text=line.text,
            rank=line.rank if line.rank is not None else self.rank,
            host=line.host,
            time=self._time(text, buffer, begin),
            details=details,
            causes=tuple(cause for cause in entry.causes if cause.counts_on(text)),
            meaning=entry.meaning,
        )

    def _exception(self, buffer: bytes, begin: int, end: int) -> None:
        """Read the exception that a traceback ends with."""
        if self.counts[EXCEPTION] >= 4 * ENOUGH:
            return
        opening = lines.clean(buffer[begin:end])
        first = lines.split(opening)
        following = [
            lines.clean(raw[:2000]) for raw in buffer[end : end + 2 * AROUND].split(b"\n")[1:]
        ]
        prefix = lines.prefix_of(opening, TRACEBACK.decode(), following)
        frame = ""
        for number, text in enumerate(following, 1):
            before = prefix.match(text)
            if before is None:
                continue
            text = text[before.end() :]
            if at := _FRAME.match(text):
                frame = at["file"]
            if not text or text[0] in " \t|+" or text.startswith("Traceback"):
                continue
            if not _EXCEPTION_LINE.match(text):
                continue
            self.counts[EXCEPTION] += 1
            self.events.append(
                Event(
                    symptom=EXCEPTION,
                    role=Role.APPLICATION,
                    source=self.source.name,
                    line=self.lines + 1 + number,
                    text=text[:REACH],
                    rank=first.rank if first.rank is not None else self.rank,
                    host=first.host,
                    time=self._time(text, buffer, begin),
                    details={"path": frame} if frame else {},
                    causes=(_SYSTEM if _SYSTEM_ERROR.match(text) else _PROGRAM,),
                    meaning="the program raised this exception.",
                )
            )
            return

    def _time(self, text: str, buffer: bytes, begin: int) -> float | None:
        """Return when a line was printed: its time, that of a line a little before, or the last one known."""
        time = lines.time_of(text)
        if time is None:
            for raw in reversed(buffer[max(0, begin - 4000) : begin].split(b"\n")[-40:]):
                time = lines.time_of(lines.clean(raw[:300]))
                if time is not None:
                    break
        if time is not None:
            self.time = time
        return self.time


def _bounds(buffer: bytes, hit: int) -> tuple[int, int]:
    """Return where the line of a hit begins and ends; a progress bar's carriage return ends a line as well."""
    low = max(0, hit - REACH)
    begin = max(buffer.rfind(b"\n", low, hit), buffer.rfind(b"\r", low, hit), low - 1) + 1
    high = min(len(buffer), hit + REACH)
    ends = [at for mark in (b"\n", b"\r") if (at := buffer.find(mark, hit, high)) >= 0]
    return begin, min(ends, default=high)


def _around(buffer: bytes, begin: int, end: int, count: int) -> str:
    before = buffer[max(0, begin - AROUND) : begin].split(b"\n")[-count - 1 :]
    after = buffer[end : end + AROUND].split(b"\n")[: count + 1]
    return "\n".join(lines.clean(raw[:REACH]) for raw in (*before, buffer[begin:end], *after))


_GLOO_PORT = re.compile(r"(?P<before>(?:remote|local|peer)[= ]\[[^\]]+\]:)(?P<port>\d{1,5})")


def _unswapped(text: str, details: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Correct the ports that gloo prints without ntohs (gloo/transport/tcp/address.cc)."""

    def corrected(match: re.Match[str]) -> str:
        return f"{match['before']}{swapped(int(match['port']))}"

    if "gloo" not in text.lower():
        return text, details
    new = _GLOO_PORT.sub(corrected, text)
    if new != text and details.get("port"):
        details = {**details, "port": str(swapped(int(details["port"])))}
    return new, details


def swapped(port: int) -> int:
    """Return a port with its two bytes swapped."""
    return (port & 0xFF) << 8 | port >> 8 if port < 65536 else port


def details_of(event: Event) -> dict[str, str]:
    """Return what an event names that a user can use."""
    return {key: value for key, value in event.details.items() if key in _DETAILS}
