"""The exception that a Python traceback in a log ends with, behind any prefix of its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from remedy.diagnose import enclosed, lines
from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.plain import PUBLIC
from remedy.diagnose.refusals import is_plain, meaning_of

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
_FRAME = re.compile(r'^ +File "(?P<file>[^"]+)", line \d+')
_FRAME_TEXT = re.compile(rb'  File "[^"\n]{1,500}", line \d+, in ')
# Raised about the system, not by the program's logic: unexplained, they do not speak against the program.
_SYSTEM_ERROR = re.compile(
    r"(?!.*on the same device)"
    r"(?:(?:[\w.]+\.)?(?:OS|IO|Connection\w*|BrokenPipe|\w*Timeout|Permission|Interrupted|Dist\w+|Rendezvous\w*|\w*Network)Error"
    r"|torch\.distributed|RendezvousC"
    r"|.*(?:NCCL|[Gg]loo|HCCL|CUDA error|cudaError|\[Errno|errno|socket|c10d|enforce fail|signal"
    r"|shared object|undefined symbol|memory|/dev/|device|basic_ios|ios_base"
    r"|Input/output error|Read-only file|open files|already in use|assign requested|not known"
    r"|name resolution|unreachable"
    r"|[Rr]efused|reset by peer|file handle"
    r"|[Bb]roken pipe|[Tt]imed out|[Aa]ll_?[Rr]educe|/collective/|(?:DEADLINE_EXCEEDED|UNAVAILABLE|ABORTED): ))"
)
# Its message is that of the system, and nothing of the program's.
_SAYS_NO_MORE = re.compile(
    r"(?:RuntimeError|Exception|SystemError|[\w.]*DistStoreError): [A-Z][a-z /]{3,40}\.?$"
)
_SYSTEM = CauseWeight(label=APPLICATION, weight=0.45)
_CHECKED = CauseWeight(label=APPLICATION, weight=0.56)
_PROGRAM = CauseWeight(label=APPLICATION, weight=0.7)
_AROUND = CauseWeight(label=APPLICATION, weight=0.58)
# What a program checks itself, and refuses.
_LOGIC = re.compile(
    r"(?:[\w.]+\.)?(?:Key|Value|Type|Index|Attribute|Assertion|NotImplemented)Error: \S"
)
# Says nothing of why, or is about what the program runs with: its own fault is one of several.
_OF_THE_JOB = re.compile(
    r"(?i)\b(?:servers?|clusters?|schedulers?|workers|processes|nodes?|hosts?|daemons?|backends?"
    r"|plug-?ins?|librar(?:y|ies)|drivers?|launch\w*|spawn\w*|timeout|handshake|interface)\b"
)
# What the kind of an exception, or its errno, says wherever it is raised (errno(3)): where no entry knows more.
_KINDS = (
    (
        re.compile(
            r".*\[Errno (?:28|122)\]|.*No space left on device|OSError: Not enough free space to write"
        ),
        "disk-full",
    ),
    (re.compile(r".*\[Errno (?:23|24)\]"), "nofile-limit"),
    (re.compile(r"PermissionError\b(?!.*/dev/)|.*\[Errno (?:17|20|21|39)\]"), APPLICATION),
    (re.compile(r".*\[Errno 98\]"), "master-port-in-use"),
    (re.compile(r".*\[Errno 101\]"), "network-unreachable"),
    (re.compile(r".*\[Errno 113\]"), "firewall-ports"),
    (re.compile(r".*\[Errno (?:5|30|107(?=.*/)|108|116|121)\]"), "storage-fault"),
    (re.compile(r"(?:[\w.]+\.)?_?(?:Array)?MemoryError\b|.*\[Errno 12\]"), "host-oom"),
    (re.compile(r"(?:socket\.)?gaierror\b|.*Name or service not known"), "hostname-unresolvable"),
    (re.compile(r"ImportError: \S{1,80}\.so[\w.]{0,20}: cannot open shared"), "missing-library"),
    (re.compile(r"(?:ConnectionResetError|BrokenPipeError|EOFError)\b"), "peer-died-timeout"),
    (
        re.compile(
            r"(?:[\w.]+\.)?\w*(?:StreamClosed|CommClosed|ConnectionClosed|ConnectionLost|ChannelClosed"
            r"|Disconnected|ActorDied|WorkerCrashed|WorkerDied|BrokenProcessPool|BrokenWorker)\w*"
        ),
        "peer-died-timeout",
    ),
    # The status of a call to another process, as gRPC names it.
    (
        re.compile(r"(?:[\w.]+\.)?(?:Unavailable|DeadlineExceeded|Aborted)Error\b"),
        "peer-died-timeout",
    ),
    (re.compile(r"(?:ConnectionRefusedError|[\w.]*ConnectTimeout\w*)\b"), "firewall-ports"),
)
# The status of a call to another process that ended there, or on the way: a line of gRPC's message.
_STATUS = re.compile(
    r"\s*status = StatusCode\.(?:ABORTED|CANCELLED|DEADLINE_EXCEEDED|UNAVAILABLE)\s*$"
)
_OF_A_KIND = 0.6
# Bytes between the first line of a traceback and its first frame, where both are one line.
JOINED = 12
_WARNED = re.compile(r"(?:^|[\[ |:])W\d{3,4} \d\d:\d\d|\bWARN(?:ING)?\b")
# The time ran out in a call that connects.
_CONNECTS = re.compile(r"\b(?:sock_)?(?:connect|connect_ex|create_connection)\(")
# A device is taken from a list by the number of the rank.
_OF_A_DEVICE = re.compile(r"\b\w*(?:gpus?|devices?|device_ids)\[[^\]\n]{0,40}(?:\b|_)rank\b")
_RAN_OUT = re.compile(
    r"(?:socket\.timeout|TimeoutError)(?:: (?:\[Errno 110\] )?[Cc\w ]{0,12}timed out)?$"
)
# Connections to a service of the web are no connections of the job's hosts with each other.
_OF_THE_WEB = re.compile(rf"{PUBLIC}|HTTPS?Connection|huggingface|wandb|\burl\b")
# A loss or a gradient that is no number is the program's, whatever device it was found on.
_OF_NUMBERS = re.compile(
    r"\b(?i:nan|inf|infinite|non-finite)\b.*\b(?i:loss|grad)|\b(?i:loss|grad)\w*\b.*\b(?i:nan|inf|infinite|non-finite)\b"
)
_ANYWHERE = re.compile(
    r"(?:^|[\]):>|] +)((?:[a-z_]\w{0,60}\.){0,8}(?:[A-Z]\w{0,80}(?:Error|Exception)|Exception)(?:: .*)?)$"
)
# An exception that gathers those of other processes names each on a line of its own, with its place.
_OF_OTHERS = re.compile(
    r"\[[^\]\n]{1,60}\] ?(?P<text>(?:[a-z_]\w*\.){0,8}[A-Z]\w{0,80}(?:Error|Exception): .+)"
)
_NAMED = re.compile(r"(?:[a-z_]\w*\.){0,8}[A-Z]\w{0,80}(?:Error|Exception)\b: .+")
MOST_BETWEEN = 40  # lines of others between the last frame of a traceback and its exception
LAST_LINES = 400  # at the end of a log that are read for an exception without a traceback


@dataclass(frozen=True)
class Raised:
    """An exception.

    Args:
        text: its line, without the prefix.
        after: how many lines after the first of its traceback.
        file: of the innermost frame, "" where no frame was seen.
        more: the lines of its message after the first.
        passes_on: whether its message is the traceback of another exception, which says more.
        code: what the innermost frame ran, "" where it is not known.
    """

    text: str
    after: int
    file: str
    more: tuple[str, ...] = ()
    passes_on: bool = False
    code: str = ""

    @property
    def extent(self) -> int:
        """How many lines after its first belong to its message."""
        return max((n for n, line in enumerate(self.more, 1) if line), default=0)

    @property
    def causes(self) -> tuple[CauseWeight, ...]:
        """What it speaks for while nothing explains it; one that gathers others for what these speak for."""
        if inner := self._inner:
            return Raised(inner, self.after, self.file).causes
        if _OF_THE_WEB.search(self.text) or _OF_NUMBERS.search(self.text):
            return (_PROGRAM,)
        if kind := self._kind:
            label, because = kind
            return CauseWeight(label=label, weight=_OF_A_KIND, because=because), _SYSTEM
        is_of_system = bool(_SYSTEM_ERROR.match(self.text))
        says = is_of_system or _SAYS_NO_MORE.match(self.text) or is_plain(self.text)
        words = meaning_of(self.text) if says else None
        # A library that reports from below writes the reason under its first line.
        if words is None and self.text.endswith(":"):
            words = next(filter(None, map(meaning_of, self.more)), None)
        if words is not None:
            is_weighed = any(cause.label == APPLICATION for cause in words.causes)
            return words.causes if is_weighed else (*words.causes, _SYSTEM)
        if words is None and any(map(_STATUS.match, self.more)):
            because = "the status of a call to another process"
            return CauseWeight(
                label="peer-died-timeout", weight=_OF_A_KIND, because=because
            ), _SYSTEM
        if is_of_system:
            return (_CHECKED if _LOGIC.match(self.text) else _SYSTEM,)
        is_open = ":" not in self.text or _OF_THE_JOB.search(self.text)
        return (_AROUND if is_open else _PROGRAM,)

    @property
    def _kind(self) -> tuple[str, str] | None:
        """The cause that its kind or its errno speaks for, and why; None where these say nothing."""
        if _OF_A_DEVICE.search(self.code) and self.text.startswith("IndexError"):
            return "device-visibility", "a rank takes a device by its number, and sees fewer"
        if _CONNECTS.search(self.code) and _RAN_OUT.match(self.text):
            return "firewall-ports", "the time ran out while it connected"
        label = next((label for pattern, label in _KINDS if pattern.match(self.text)), None)
        return (label, "the kind of the exception, or its errno") if label is not None else None

    @property
    def _inner(self) -> str:
        """The exception of another process that this one passes on, "" where it passes on none."""
        if inner := next(filter(None, map(_OF_OTHERS.match, self.more)), None):
            return inner["text"]
        if not any(map(_FRAME.match, self.more)):
            return ""
        named = (line for line in reversed(self.more) if _NAMED.match(line))
        return next(named, "")


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

    One that a logger warned of was caught.

    Args:
        ending: the last lines of a log; ``after`` counts from its last line backwards.
    """
    for number, line in enumerate(reversed(ending.rstrip().splitlines()[-LAST_LINES:])):
        match = _ANYWHERE.search(line[: lines.WIDEST])
        if match and not _WARNED.search(line[: match.start(1)]):
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
    return _end_of(lines.prefix_of(opening, TRACEBACK.decode(), texts), texts)


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
            prefix = lines.prefix_of(text, '  File "', texts[number + 1 :])
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
        if frame := _FRAME.match(message):
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
