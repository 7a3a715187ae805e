"""Reading one log in one pass: which entries of the catalogue match where.

Memory is bounded: a block, a little before and after it, and a few events of each entry. So is time: patterns
see so much of a line at most, on so many lines with one text, and for so many seconds a log. What was not read
is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from remedy.bounds import Allowance
from remedy.diagnose import lines
from remedy.diagnose.catalogue import CauseWeight, Role, Symptom, catalogue, compiled, readings
from remedy.diagnose.phrases.kinds import Raised
from remedy.diagnose.scanner import exceptions, steps, windows
from remedy.diagnose.scanner.collected import as_lines
from remedy.diagnose.scanner.engine import Across, Find, Held, make_finder
from remedy.diagnose.scanner.exceptions import EXCEPTION, TRACEBACK
from remedy.diagnose.scanner.gloo_ports import unswapped
from remedy.diagnose.scanner.intervals import Interval, interval_of
from remedy.diagnose.scanner.job_setting import OPENING, setting_of
from remedy.diagnose.scanner.last_errors import as_warning
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.reader import Source
from remedy.diagnose.scanner.sessions import commands_of, is_typed
from remedy.diagnose.scanner.translated import in_english
from remedy.diagnose.scanner.unread import Unread
from remedy.diagnose.scanner.unwrap import unwrapped
from remedy.diagnose.scanner.windows import AROUND, REACH
from remedy.diagnose.states import blocks
from remedy.diagnose.states.signs import BlockSign

ENOUGH = 12  # events of one entry in one log; more add nothing
OF_RANKS = 512  # of an entry that says of each rank how far it came
WINDOWS = 200  # places in one very long line that are read
PATIENCE = 5_000  # lines with one literal that are tried in one log
BLOCKS = "state"  # how the names begin of what blocks show
SECONDS = 30.0  # of work with patterns a log; 74 MiB of the corpus, again and again, take 3


@dataclass(frozen=True)
class Index:
    """The catalogue, made ready for scanning."""

    find: Find
    held: Held
    across: Across
    literals: tuple[bytes, ...]
    entries: dict[bytes, tuple[Symptom, ...]]
    longest: int


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
        *make_finder(texts),
        texts,
        {text: tuple(symptoms) for text, symptoms in entries.items()},
        max(map(len, texts)),
    )


def scan(source: Source, prepared: Index, data: Iterator[bytes] | None = None) -> LogScan:
    """Read one log to its end, or as far as it can be read.

    Args:
        source: the log.
        prepared: the catalogue.
        data: its bytes, where their reading was begun already.
    """
    return _Scan(source, prepared).run(source.read() if data is None else data)


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
        self.allowance = Allowance(SECONDS)
        self.unread = Unread()
        self.fields: frozenset[int] = frozenset()  # lines that are read as parts of blocks
        self.windows = 0  # of the line that was read last, where it is a very long one

    def run(self, data: Iterator[bytes]) -> LogScan:
        kept, opening, done, size = b"", b"", 0, 0
        hits: list[tuple[int, int]] = []
        log = unwrapped(in_english(as_lines(data)))
        for block in log.blocks:
            if not size:
                opening = block[:OPENING]
                self._beheaded(block)
                signs = blocks.signs_of(block)
                self.events += [_of_block(self.source.name, sign) for sign in signs]
                self.fields = blocks.fields_of(block)
            size += len(block)
            hits += self._hits(kept, block)
            # What follows a hit has to be there before it is tried.
            whole = len(kept) + len(block)
            end = max(done, whole - AROUND)
            begin = max(0, end - AROUND)
            if hits and hits[0][1] < end:
                self._try_lines(kept + block, done, end, hits)
            else:
                self.lines += kept.count(b"\n", done, end)
                self.lines += block.count(b"\n", max(0, done - len(kept)), max(0, end - len(kept)))
            hits = [(number, at - begin) for number, at in hits if at >= end]
            kept = block[begin - len(kept) :] if begin >= len(kept) else kept[begin:] + block
            done = end - begin
        self._try_lines(kept, done, len(kept), hits)
        ending = kept[-steps.ENDING :]
        first = self.lines + 1 - ending.count(b"\n")
        made = tuple(
            replace(step, line=log.number(step.line)) for step in steps.steps_of(ending, first)
        )
        for event in self.events:
            event.line = log.number(event.line)
        tail = exceptions.without_ignored(lines.clean_text(kept))
        return LogScan(
            name=self.source.name,
            events=self.events,
            tail=tail,
            lines=log.number(self.lines + (not kept.endswith(b"\n") and bool(kept))),
            size=size,
            steps=made,
            commands=tuple(map(log.number, commands_of(ending, first))),
            time=lines.last_time(ending),
            begin=lines.first_time(opening),
            trouble=self.source.trouble,
            unread=self.unread.sentences(width=2 * REACH, most=PATIENCE, seconds=SECONDS),
            is_whole=not (self.source.trouble or self.unread.late),
            setting=setting_of(f"{lines.clean_text(opening)}\n{tail[-OPENING:]}"),
            is_state=blocks.is_state(opening, tail),
        )

    def _hits(self, kept: bytes, block: bytes) -> list[tuple[int, int]]:
        """Return the literals of a block, and those that begin in what is kept before it."""
        reach = self.index.longest - 1
        seam = kept[-reach:]
        before = len(kept) - len(seam)
        hits = [(n, at + before) for n, at in self.index.across(seam + block[:reach], len(seam))]
        return hits + [(number, at + len(kept)) for number, at in self.index.find(block)]

    def _try_lines(
        self, buffer: bytes, start: int, end: int, hits: Iterable[tuple[int, int]]
    ) -> None:
        """Try the entries on every line of ``buffer[start:end]`` that holds a literal of theirs."""
        if end <= start:
            return
        counted, last = start, -1
        for number, hit in hits:
            if hit >= end:
                break
            # A literal that was tried so often stands on ordinary lines.
            if hit < last or self.unread.late or self._is_frequent(number):
                continue
            self.tried[number] += 1
            self.lines += buffer.count(b"\n", counted, hit)
            counted = hit
            if self.allowance.is_spent:
                self.unread.late = self.lines + 1
                continue
            with self.allowance:
                last = self._hit(buffer, hit)
        self.lines += buffer.count(b"\n", counted, end)

    def _is_frequent(self, number: int) -> bool:
        if self.tried[number] < PATIENCE:
            return False
        self.unread.frequent.add(self.index.literals[number].decode())
        return True

    def _hit(self, buffer: bytes, hit: int) -> int:
        """Try the entries on the line of a hit; return how far it was read, or need not be."""
        begin, end = windows.bounds(buffer, hit)
        if self.lines + 1 in self.fields:
            return end
        raw = buffer[begin:end]
        if TRACEBACK in raw:
            self._exception(buffer, begin, end)
            # A collector may have joined the lines of a traceback.
            if not exceptions.is_joined(raw):
                return end
        held = (self.index.literals[number] for number in sorted(self.index.held(raw)))
        entries = chain.from_iterable(self.index.entries.get(literal, ()) for literal in held)
        symptoms = {e.id: e for e in entries if self.counts[e.id] < _most(e)}
        if not symptoms:
            return end
        if windows.is_cut(buffer, begin, end):
            self.windows = self.windows + 1 if self.lines + 1 in self.unread.wide else 1
            self.unread.wide.add(self.lines + 1)
            if self.windows > WINDOWS:
                newline = buffer.find(b"\n", end)
                return newline if newline >= 0 else len(buffer)
        text = lines.without_guesses(lines.clean(raw))
        if is_typed(text):
            # What a command names is compared with what others name, and reports nothing.
            symptoms = {name: entry for name, entry in symptoms.items() if entry.across}
        read = as_warning(text, buffer, begin)
        texts = readings(read, symptoms.values())
        for entry in symptoms.values():
            around = windows.around(buffer, begin, end, entry.lines) if entry.near else ""
            if match := entry.match(texts, around):
                self.counts[entry.id] += 1
                self.events.append(self._event(entry, match, text, buffer, begin))
        return end

    def _event(
        self, entry: Symptom, match: re.Match[str], text: str, buffer: bytes, begin: int
    ) -> Event:
        details = {key: value for key, value in match.groupdict().items() if value}
        if entry.extract and (extracted := compiled(entry.extract).search(text)):
            details |= {key: value for key, value in extracted.groupdict().items() if value}
        if entry.gloo_port:
            details = unswapped(text, details)
        line, interval = lines.split(text), self._interval(text, buffer, begin)
        return Event(
            symptom=entry.id,
            role=entry.role,
            source=self.source.name,
            line=self.lines + 1,
            text=line.text,
            rank=self._rank(line),
            host=line.host,
            process=self._process(line),
            time=interval.time,
            until=interval.until,
            nearest=interval.nearest,
            details=_local(line) | details,
            causes=tuple(cause for cause in entry.causes if cause.counts_on(text)),
            meaning=entry.meaning,
        )

    def _exception(self, buffer: bytes, begin: int, end: int) -> None:
        """Read the exception that a traceback ends with."""
        if self.counts[EXCEPTION] >= 4 * ENOUGH:
            return
        if exceptions.is_ignored(buffer[max(0, begin - REACH) : begin]):
            return
        opening = lines.clean(buffer[begin:end])
        if exception := exceptions.in_record(windows.whole(buffer, begin, exceptions.LONGEST)):
            self._raised(opening, exception, buffer, begin)
            return
        following = buffer[end : end + exceptions.reach(opening)]
        if exception := exceptions.raised(opening, following):
            if not exception.passes_on:
                self._raised(opening, exception, buffer, begin)
        elif len(following) >= AROUND:
            self.unread.tracebacks.add(self.lines + 1)

    def _beheaded(self, block: bytes) -> None:
        """Read the exception of a traceback whose beginning was cut off with that of the log."""
        exception = exceptions.beheaded(block)
        if exception is not None:
            opening = lines.clean(block[: lines.WIDEST].split(b"\n", 1)[0])
            self._raised(opening, exception, block, 0)

    def _raised(self, opening: str, exception: Raised, buffer: bytes, begin: int) -> None:
        first, interval = lines.split(opening), self._interval(exception.text, buffer, begin)
        self.counts[EXCEPTION] += 1
        self.events.append(
            Event(
                symptom=EXCEPTION,
                role=Role.APPLICATION,
                source=self.source.name,
                line=self.lines + 1 + exception.after,
                text=exception.text[:REACH],
                rank=self._rank(first),
                host=first.host,
                process=self._process(first),
                time=interval.time,
                until=interval.until,
                nearest=interval.nearest,
                details=_local(first)
                | ({"path": exception.path} if exception.path else {})
                | ({"level": "warning"} if exceptions.is_warned_of(opening) else {}),
                causes=exception.causes,
                meaning="the program raised this exception.",
                extent=exception.extent,
            )
        )

    def _rank(self, line: lines.LogLine) -> int | None:
        return self.rank if line.rank is None else line.rank

    def _process(self, line: lines.LogLine) -> lines.Process:
        return self.rank if line.process is None else line.process

    def _interval(self, text: str, buffer: bytes, begin: int) -> Interval:
        interval = interval_of(text, buffer, begin, self.time)
        self.time = interval.time
        return interval


def _local(line: lines.LogLine) -> dict[str, str]:
    """Return the number of a rank on its host as a detail, where nothing better is known."""
    return {} if line.local is None or line.rank is not None else {"local_rank": str(line.local)}


def _of_block(name: str, sign: BlockSign) -> Event:
    """Return what a block of names and values shows, where a log is what a tool printed of a host."""
    return Event(
        symptom=f"{BLOCKS}-{sign.label}",
        role=sign.role,
        source=name,
        line=sign.line,
        text=sign.text,
        details=dict(sign.details),
        causes=(CauseWeight(label=sign.label, weight=sign.weight),),
        meaning="what a tool shows of the state of this host.",
    )


def _most(entry: Symptom) -> int:
    """Return how many events of an entry one log has at most."""
    return OF_RANKS if entry.role in (Role.GOOD, Role.CONSEQUENCE) else ENOUGH
