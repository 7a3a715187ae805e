"""What an exception speaks for where no entry of the catalogue explains it: by its kind, words and place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.phrases.plain import PUBLIC
from remedy.diagnose.phrases.refusals import is_plain, meaning_of

FRAME = re.compile(r'^ +File "(?P<file>[^"]+)", line \d+')
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
            r"|OSError: \d+ requested and \d+ written"
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
    # What nearly every environment for training has: this is another one.
    (
        re.compile(
            r"ModuleNotFoundError: No module named '(?:numpy|torch|mpi4py|tensorflow|jax|ray|dask|scipy|yaml)'"
        ),
        "env-not-propagated",
    ),
    (re.compile(r"ValueError: unsupported pickle protocol: \d"), "multi-python"),
    # The compiled part of a package that is there: it was built for another Python.
    (re.compile(r"ModuleNotFoundError: No module named '\w+(?:\.\w+)*\._\w+'"), "multi-python"),
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
# What os.environ raises; the variables of launchers have entries of their own.
_VARIABLE = re.compile(
    r"KeyError: '(?!(?:RANK|WORLD_SIZE|LOCAL_|NODE_RANK|MASTER_|SLURM_|OMPI_|PMI|CUDA_)\w*')"
    r"[A-Z][A-Z0-9_]{1,60}'"
)
_PROGRAM_NAME = re.compile(r"FileNotFoundError: .*: '[\w.+-]{1,60}'$")
_PATH = re.compile(r"Error: .*['\"](?P<path>/[^'\"\n]{1,300})['\"]")
_SHARED = "multiprocessing/shared_memory.py"
_OF_A_KIND = 0.6
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
# An exception that gathers those of other processes names each on a line of its own, with its place.
_OF_OTHERS = re.compile(
    r"\[[^\]\n]{1,60}\] ?(?P<text>(?:[a-z_]\w*\.){0,8}[A-Z]\w{0,80}(?:Error|Exception): .+)"
)
_NAMED = re.compile(r"(?:[a-z_]\w*\.){0,8}[A-Z]\w{0,80}(?:Error|Exception)\b: .+")


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
    def path(self) -> str:
        """The path that its message names, else the file of the innermost frame."""
        named = _PATH.search(self.text)
        return named["path"] if named else self.file

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
        if self._wants_a_variable:
            return "env-not-propagated", "a variable is not set where this process runs"
        if self.file.endswith("/subprocess.py") and _PROGRAM_NAME.search(self.text):
            return "env-not-propagated", "a program is not on the PATH of this process"
        if self.text.startswith("FileExistsError") and self.file.endswith(_SHARED):
            return "stale-shm", "a run that ended left shared memory of this name"
        if _OF_A_DEVICE.search(self.code) and self.text.startswith("IndexError"):
            return "device-visibility", "a rank takes a device by its number, and sees fewer"
        if _CONNECTS.search(self.code) and _RAN_OUT.match(self.text):
            return "firewall-ports", "the time ran out while it connected"
        label = next((label for pattern, label in _KINDS if pattern.match(self.text)), None)
        return (label, "the kind of the exception, or its errno") if label is not None else None

    @property
    def _wants_a_variable(self) -> bool:
        """Whether a program reads a variable of its environment that nobody has set, and no launcher would."""
        of_environment = self.file == "<frozen os>" or self.file.endswith("/os.py")
        return of_environment and bool(_VARIABLE.fullmatch(self.text))

    @property
    def _inner(self) -> str:
        """The exception of another process that this one passes on, "" where it passes on none."""
        if inner := next(filter(None, map(_OF_OTHERS.match, self.more)), None):
            return inner["text"]
        if not any(map(FRAME.match, self.more)):
            return ""
        named = (line for line in reversed(self.more) if _NAMED.match(line))
        return next(named, "")
