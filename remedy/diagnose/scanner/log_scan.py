"""What was read from a log: where entries of the catalogue matched, and what its ends say of the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from remedy.diagnose import lines
from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.scanner.job_setting import JobSetting
from remedy.diagnose.scanner.steps import Step


@dataclass
class Event:
    """A place where an entry matched, or where a program raised an exception."""

    symptom: str
    role: Role
    source: str
    line: int
    text: str
    rank: int | None = None
    host: str = ""
    process: lines.Process = None
    time: float | None = None
    until: float | None = None
    nearest: float | None = None
    details: dict[str, str] = field(default_factory=dict)
    causes: tuple[CauseWeight, ...] = ()
    meaning: str = ""
    extent: int = 0  # lines after it that are the message of its exception

    @property
    def weight(self) -> float:
        """The weight of the cause that it speaks for most clearly, 0 where it speaks for none."""
        return max((cause.weight for cause in self.causes), default=0.0)


@dataclass
class LogScan:
    """What was read from one log.

    Args:
        name: of the log.
        events: what matched, in the order of its lines.
        tail: its last lines, as text.
        lines: how many it has.
        size: its bytes.
        trouble: why it could not be read to its end, "" where it could.
        unread: what of it patterns did not see, and why.
        is_whole: whether it was read from its beginning to its end.
        steps: those that its end reports.
        commands: the lines of its end at which somebody typed one; steps below it are of another run.
        time: when its last line was printed, None where that is not known.
        begin: when its first one was.
        setting: what its beginning and its end show of where the job ran.
        is_state: whether it is what a tool printed of a host or a job, and no log of a run.
    """

    name: str
    events: list[Event]
    tail: str
    lines: int
    size: int
    trouble: str
    unread: tuple[str, ...] = ()
    is_whole: bool = True
    steps: tuple[Step, ...] = ()
    commands: tuple[int, ...] = ()
    time: float | None = None
    begin: float | None = None
    setting: JobSetting = field(default_factory=JobSetting)
    is_state: bool = False
