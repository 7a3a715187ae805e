"""What stands on a line beside its text: colours, what a launcher puts before it (rank, host), the time."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone

from remedy.text import is_number

WIDEST = 1600
"""Characters of a line that patterns see at once."""

Process = int | str | None
"""What tells processes of one log apart: a rank, or else a number on a host ("local 3"); None if unknown."""

_TOO_WIDE = re.compile(f"[^\\n]{{{WIDEST}}}(?=[^\\n])")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

# What launchers put before a line. They can stand one after the other (Kubernetes before torchrun). A name has
# an end (RFC 1035), which is looked for first: otherwise a line of 2,000 letters takes seconds.
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(?:rank|Rank ?)(?P<rank>\d+)\]:? ?",  # torch
        r"\[default(?P<local>\d+)\]:",  # torchrun --tee
        r"\[(?P<role>[a-z]\w*?)(?P<local>\d+)(?:\|\d+)?\]:",  # torchrun with a role
        r"\[\d+,(?P<rank>\d+)\](?:<std(?:out|err|diag)>)?: ?",  # mpirun --tag-output
        # Open MPI, UCX
        r"\[(?!\d{4}-\d\d-\d\dT)(?P<host>[\w.-]+):\d+(?::\d+)?\] (?:\[\[\d+,\d+\],(?P<rank>\d+)\])?",
        r"\[pod/(?P<host>[\w.-]+)/[\w.-]+\] ",  # kubectl logs --prefix
        r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )",  # a container runtime's file
        # docker compose
        r"(?=[\w.-]{1,255}[ ]+\| )(?P<host>[\w.-]{0,64}[a-zA-Z][\w.-]{0,64}\d)(?:-\d+)?[ ]+\| ",
        r"(?P<rank>\d{1,5})\| (?=\S)",
        r" {0,5}(?P<rank>\d{1,5}): (?=\S)(?![\w.@-]{1,32}: <[A-Z])",  # srun --label, and no link of ip
        # Ray, SkyPilot, and others that put a name in parentheses
        r"\((?=[^\n]{0,160}\bpid=\d)(?:[^()\n]{0,60}\(?\brank=(?P<rank>\d{1,6})\)?)?[^()\n]{0,120}\) ",
        r"\((?:raylet|autoscaler|gcs_server)\b[^()\n]{0,80}\) ",
        r"\((?=[\w.-]{1,80}\) )(?P<host>[\w.-]{0,60}[a-zA-Z][\w.-]{0,60}\d)\) ",
        r"\[(?=[\w.-]{1,80}\] )(?!v\d)(?P<host>[a-z][\w-]{0,62}\d)\] (?=\S)",  # what a loop over ssh puts there
        r"slurmstepd-(?P<host>[\w.-]{1,64}): ",
        # a time, and GitLab's name of the stream
        r"\d{4}-\d\d-\d\d[T ][\d:]{8}(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:\d\d[OE][ +])?(?=\S)",
        # pdsh, pssh, accelerate, DeepSpeed
        r"(?=[\w.-]{1,255}: \S)(?P<host>[\w-]{0,64}[a-z][\w-]{0,64}\d[\w.-]{0,192}): ",
    )
)
_DATE = r"\d{4}-\d\d-\d\d[T ][\d:]{8}(?:[.,]\d{1,9})?"
_LEVEL = "(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)"
_PLACE = r"\[?[\w./-]{1,80}:\d{1,6}(?::\w{1,40})?\]? "  # a file and a line
# What loggers put before a text that passes through them: glog, vLLM, the kernel, syslog, Python's own.
_LOGGERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[IWEFD]\d{4} [\d:.]{8,18} +\d{1,9} [^\]\s]{1,120}\] ",
        rf"{_LEVEL} \d\d-\d\d [\d:]{{8}}(?:\.\d{{1,9}})? \[?[^\]\s]{{1,120}}\] ",
        r"\[ *\d{1,12}\.\d{1,9}\] ",
        r"[A-Z][a-z]{2} +\d{1,2} [\d:]{8} [\w.-]{1,64} [\w./-]{1,40}(?:\[\d{1,9}\])?: ",
        rf"(?:\[?{_DATE}\]? )?(?:- )?\[?{_LEVEL}\]?:?(?: -)? (?:{_PLACE}(?:-{{1,2}} |: )?)?",
    )
)
# Since 2.26 the time stands before NCCL's warnings, too.
_NCCL = re.compile(
    r"^(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?(?P<host>[\w.-]+):\d+:\d+ \[(?P<device>-?\d+)\] "
)
# What srun says of a task, or of several.
_SRUN = re.compile(
    r"srun: error: (?P<host>[\w.-]{1,255}): (?:task (?P<rank>\d{1,6})|tasks [\d,-]{1,200}): "
)
# What syslog and journald put before the text of the kernel, or of a service.
_SYSLOG = re.compile(
    r"(?:[A-Z][a-z]{2} +\d{1,2} [\d:]{8} )?(?P<host>[a-z][\w.-]{0,63}) (?:kernel|[\w.-]{2,40}\[\d{1,9}\]): "
)
_RANK_IN_TEXT = re.compile(r"\[[Rr]ank ?(\d+)\]|\bRankID:(\d+)|\brank=(\d+)\b")
_FILE_RANK = re.compile(
    r"(?:^|[/._-])(?:worker|workerlog|rank|std(?:out|err)|task|attempt_\d+/)[._-]?(\d{1,5})(?=[._/]|$)"
    r"|\.(\d{1,4})\.log$|/(\d{1,4})/std(?:out|err)\.log$"
)
_TIME = re.compile(
    r"(?P<year>20\d\d)[-/](?P<month>[01]\d)[-/](?P<day>[0-3]\d)[-T _]"
    r"(?P<h>[0-2]\d):(?P<m>[0-5]\d):(?P<s>[0-6]\d(?:[.,]\d{1,9})?)"
    r"(?:(?P<sign>[+-])(?P<zh>[01]\d):?(?P<zm>[0-5]\d)(?!\d))?"
    # glog, and torch's own: of the first nine months without a zero
    r"|(?:^|[\[: ])[IWEFD](?P<gmonth>[01]?\d)(?P<gday>[0-3]\d) "
    r"(?P<gh>[0-2]\d):(?P<gm>[0-5]\d):(?P<gs>[0-6]\d(?:\.\d{1,9})?)"
    r"|(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<nday>\d{1,2}) "
    r"(?P<nh>[0-2]\d):(?P<nm>[0-5]\d):(?P<ns>[0-6]\d)"
    # Redis, web servers, and RFC 5322
    r"|(?P<dday>[0-3]?\d)[ /](?P<dname>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ /]20\d\d[ :]"
    r"(?P<dh>[0-2]\d):(?P<dm>[0-5]\d):(?P<ds>[0-6]\d(?:\.\d{1,9})?)"
)
# A line as the json-file driver of Docker keeps it (moby: daemon/logger/jsonfilelog/jsonlog).
_DOCKER = re.compile(
    r'^\{"log":"(?P<log>(?:[^"\\]|\\.)*)","stream":"(?P<stream>std(?:out|err))"(?:,"attrs":\{[^{}]*\})?'
    r',"time":"(?P<time>[\dT:.+-]{19,35}Z?)"\}\s*$'
)
# A program that lists what could have happened (Ray, of a worker that ended) saw none of it.
_GUESSES = re.compile(
    r"There are some potential root causes"
    r"|(?:[Pp]ossible|[Pp]otential|[Cc]ommon) (?:causes|reasons)(?: \w+){0,4}:"
    # Nor is it what happened that somebody who asks for help looked for, or did about it.
    r"|\bI (?:(?:already|also|have|just|then) ){0,2}"
    r"(?:checked|raised|increased|tried|suspect|believe|assume|think|thought|ruled|verified|see an?|saw an?)\b"
)
# The first is that of daemontools (tai64n).
_CLOCK = re.compile(
    r"(?<=@)4[0-9a-f]{23}\b|\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?|\d{10,13}(?:\.\d{1,9})?"
)
_LINE_NUMBER = re.compile(r" {0,9}\d{1,9}[:\t -]")
_OF_A_GROUP = re.compile(r"[ |+-]*(?:Exception Group )?$")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


@dataclass(frozen=True)
class LogLine:
    """A line without what stands before it.

    Args:
        text: what the program itself printed.
        rank: of the process, None where the line does not name it.
        host: its name, "" where the line does not name it.
        local: the rank's number on its host, as torchrun puts it before a line; None where it does not.
        device: the card that NCCL names, which is no rank: of two hosts each has one with its number.
    """

    text: str
    rank: int | None = None
    host: str = ""
    local: int | None = None
    device: int | None = None

    @property
    def process(self) -> Process:
        """What tells it apart from other processes of the same host: the rank, or a number on the host."""
        number = self.device if self.local is None else self.local
        return f"local {number}" if self.rank is None and number is not None else self.rank


def clean(raw: bytes) -> str:
    """Return a line's bytes as text, without colours, control characters and Docker's JSON around it."""
    text = _unwrapped(raw.decode("utf-8", "replace"))
    return _CONTROL.sub("", _ANSI.sub("", text)).rstrip()


def without_guesses(text: str) -> str:
    """Return a line up to where it begins to list what the causes could be: that reports none of them."""
    guesses = _GUESSES.search(text)
    return text[: guesses.start()] if guesses else text


def _unwrapped(text: str) -> str:
    """Return a line of Docker's JSON as the other container runtimes keep it: time, stream and text."""
    if not text.startswith("{"):
        return text
    match = _DOCKER.match(text)
    if match is None:
        return of_journal(text) if '"__REALTIME_TIMESTAMP"' in text else text
    try:
        log = str(json.loads(f'"{match["log"]}"', strict=False))
    except ValueError:
        return text
    return f"{match['time']} {match['stream']} F {log}"


def of_journal(text: str) -> str:
    """Return a record of ``journalctl -o json`` in short: time, host, program and message.

    Args:
        text: of the record; what is none stays as it is.
    """
    try:
        record = json.loads(text, parse_int=str)
        moment = datetime.fromtimestamp(int(record["__REALTIME_TIMESTAMP"]) / 1e6, timezone.utc)
        host = record.get("_HOSTNAME", "localhost")
        program = record.get("SYSLOG_IDENTIFIER", record.get("_COMM", "kernel"))
        message = record["MESSAGE"]
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        OSError,
        RecursionError,
    ):
        return text
    if isinstance(message, list):
        # Bytes that are no UTF-8 stand there as numbers.
        numbers = (int(number) & 0xFF for number in message if is_number(str(number)))
        message = bytes(numbers).decode("utf-8", "replace")
    return f"{moment:%Y-%m-%dT%H:%M:%S} {host} {program}: {message}"


@dataclass(frozen=True)
class Prefix:
    """What stands before each line of a text of several lines: a time may be another one on each of them.

    Args:
        parts: what stands before, between and after the times.
        is_numbered: whether it is the number of each line, as ``grep -n`` and ``less -N`` show it.
    """

    parts: tuple[str, ...]
    is_numbered: bool = False

    def end(self, line: str) -> int | None:
        """Return where it ends on a line, None where the line does not begin with it."""
        if self.is_numbered:
            counter = _LINE_NUMBER.match(line)
            return counter.end() if counter else None
        at = 0
        for number, part in enumerate(self.parts):
            if number:
                clock = _CLOCK.match(line, at)
                if clock is None:
                    return None
                at = clock.end()
            if not line.startswith(part, at):
                return None
            at += len(part)
        return at


def before(text: str) -> Prefix:
    """Return a text that stands before lines as a prefix, with any time in place of its own."""
    return Prefix(tuple(_CLOCK.split(text)), bool(_LINE_NUMBER.fullmatch(text)))


def prefix_of(opening: str, mark: str, following: list[str]) -> Prefix:
    """Return what stands before each line of a text of several lines.

    It is what stands before the first line, with any time in place of its own: rank, host and process stay, so
    that the lines of another process between them are not taken for its own.

    Args:
        opening: the first line.
        mark: what the text itself begins with.
        following: the lines after it. Where none of them has the prefix, the words before the mark belong to
            the text, and only what launchers are known to put before a line is its prefix.
    """
    whole = opening[: max(0, opening.find(mark))]
    if not _OF_A_GROUP.match(whole):
        prefix = before(whole)
        for line in following:
            if (end := prefix.end(line)) is not None and line.startswith("  ", end):
                return prefix
    return before(opening[: len(opening) - len(split(opening).text)])


def split(text: str) -> LogLine:
    """Separate a line from what launchers put before it, and read the process and its host from that."""
    ranks: dict[str, int] = {}
    host = ""
    for _ in range(3):
        prefix = next((m for p in _PREFIXES if (m := p.match(text))), None)
        if prefix is None or prefix.end() == len(text):
            break
        groups = prefix.groupdict()
        ranks |= {kind: int(groups[kind]) for kind in ("rank", "local") if groups.get(kind)}
        host = host or groups.get("host") or ""
        text = text[prefix.end() :]
    device = None
    if nccl := _NCCL.match(text):
        host = host or nccl["host"]
        device = int(nccl["device"]) if int(nccl["device"]) >= 0 else None
    if srun := _SRUN.match(text):
        host = srun["host"]
        ranks |= {"rank": int(srun["rank"])} if srun["rank"] else {}
    host = host or _host_of_syslog(text)
    if "rank" not in ranks and (mention := _RANK_IN_TEXT.search(text[:300])):
        ranks["rank"] = int(next(group for group in mention.groups() if group))
    return LogLine(text, ranks.get("rank"), host, ranks.get("local"), device)


def beginnings(text: str) -> tuple[str, ...]:
    """Return the texts that a line may be, from all of it to what no launcher or logger put there."""
    texts = [text]
    for _ in range(3):
        own = split(text).text
        if own == text and (head := _head(text)):
            own = text[len(head) :]
        if own == text:
            break
        texts.append(text := own)
    return tuple(texts)


def _head(text: str) -> str:
    head = next(filter(None, (pattern.match(text) for pattern in _LOGGERS)), None)
    return head[0] if head else ""


def _host_of_syslog(text: str) -> str:
    syslog = _SYSLOG.match(text)
    return syslog["host"] if syslog else ""


def rank_of_file(name: str) -> int | None:
    """Return the rank in the name of a file (worker_3.log, workerlog.3, 3/stderr.log), or None."""
    match = _FILE_RANK.search(name)
    return int(next(group for group in match.groups() if group)) if match else None


def time_of(text: str) -> float | None:
    """Return when a line was printed, in seconds from the start of its year; None where it does not say.

    Half of the formats have no year, so it is left out of all.
    """
    match = _TIME.search(text[:200])
    if match is None:
        return None
    if match["year"]:
        month, day, parts = int(match["month"]), match["day"], ("h", "m", "s")
    elif match["gmonth"]:
        month, day, parts = int(match["gmonth"]), match["gday"], ("gh", "gm", "gs")
    elif match["dday"]:
        month, day, parts = _MONTHS[match["dname"]], match["dday"], ("dh", "dm", "ds")
    else:
        month, day, parts = _MONTHS[match["name"]], match["nday"], ("nh", "nm", "ns")
    hours, minutes, seconds = (float(match[part].replace(",", ".")) for part in parts)
    time = ((month * 31 + int(day)) * 24 + hours) * 3600 + minutes * 60 + seconds
    if not match["sign"]:
        return time
    ahead = int(match["zh"]) * 3600.0 + int(match["zm"]) * 60.0
    return time - ahead if match["sign"] == "+" else time + ahead


def first_time(raw: bytes) -> float | None:
    """Return the first time that several lines name, None where they name none."""
    times = (time_of(clean(row[:300])) for row in raw.split(b"\n"))
    return next((time for time in times if time is not None), None)


def last_time(raw: bytes) -> float | None:
    """Return the last time that several lines name, None where they name none."""
    times = (time_of(clean(row[:300])) for row in reversed(raw.split(b"\n")))
    return next((time for time in times if time is not None), None)


def clean_text(raw: bytes) -> str:
    """Return several lines as text; of what a progress bar overwrites, each state is a line.

    A line that is too long goes on in the next: no pattern ever sees a line longer than ``WIDEST``.
    """
    text = _ANSI.sub("", raw.decode("utf-8", "replace")).replace("\r", "\n")
    return _TOO_WIDE.sub(r"\g<0>\n", re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text))
