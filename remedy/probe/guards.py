"""What is about to change a host by itself: a run that is at work there, or a guard that waits."""

from __future__ import annotations

import re

from remedy.probe.frames import NoAnswerError, Sections
from remedy.text import is_number
from remedy.values import Record

LONGEST_TITLE = 200
TICKS_A_SECOND = 100
"""USER_HZ, in which the kernel counts when a process was started (proc_pid_stat(5))."""

_TIMER = "remedy-guard-"
_RUN = re.compile(r"[A-Za-z0-9-]{1,80}")
_HEAD = re.compile(r"[0-9a-f]{64} [0-9]{1,20} [0-9a-f]{64} [0-9a-f]{16} [A-Za-z0-9-]{1,80}")


class RunAtWork(Record):
    """A run whose script is at work on the host and holds the lock there.

    Args:
        run: its id.
        by: user@machine.
        since: RFC 3339, by the host's clock.
        seconds: for how long its process has been there.
    """

    run: str
    by: str
    since: str
    seconds: float


class PendingGuard(Record):
    """Changes that the host takes back unless a new connection confirms them.

    Args:
        run: that made them.
        seconds: until the timer fires; 0 where it has, None where that is not known.
        titles: of the changes that are taken back; empty where they are not known.
        attended: whether a timer or a process on the host is there to do it; else the next run does.
    """

    run: str
    seconds: float | None
    titles: tuple[str, ...] = ()
    attended: bool = True


class Guards(Record):
    """What is about to change the host, and what it remembers of the journal.

    Args:
        at_work: None where there is no such thing.
        pending: the same.
        head: the last record of this controller's journal that the host keeps; "" where it keeps none.
    """

    at_work: RunAtWork | None = None
    pending: PendingGuard | None = None
    head: str = ""

    @property
    def unsettled(self) -> bool:
        """Whether the host is about to change by itself."""
        return self.at_work is not None or self.pending is not None


def parse_guards(sections: Sections) -> Guards:
    """Read section ``guards``: a word a line, and what belongs to it.

    Raises:
        NoAnswerError: only root could read whether something waits.
    """
    lines = [line.split(" ", 1) for line in sections.text("guards").splitlines() if line]
    values: dict[str, list[str]] = {}
    for word, *rest in lines:
        values.setdefault(word, []).append(rest[0] if rest else "")
    uptime, _, boot = values["now"][0].partition(" ")
    now = float(uptime)
    timers = [name.removeprefix(_TIMER).removesuffix(".timer") for name in values.get("timer", ())]
    pending = _pending(values, timers, now, boot)
    if pending is None and "closed" in values:
        raise NoAnswerError("only root can read /var/lib/remedy, where a waiting change is noted")
    head = values.get("head", [""])[0]
    return Guards(
        at_work=_at_work(values, now, boot),
        pending=pending,
        head=head if _HEAD.fullmatch(head) else "",
    )


def _at_work(values: dict[str, list[str]], now: float, boot: str) -> RunAtWork | None:
    """Return the run that holds the lock; None where its process is gone, or of an earlier boot."""
    words = values.get("owner", [""])[0].split(" ")
    started = values.get("started", [""])[0]
    if len(words) < 6 or not is_number(started) or (words[2], words[4]) != (boot, started):
        return None
    seconds = max(0.0, now - int(started) / TICKS_A_SECOND)
    by = words[6] if len(words) > 6 else ""
    return RunAtWork(run=_run(words[1]), by=_plain(by), since=_plain(words[5]), seconds=seconds)


def _pending(
    values: dict[str, list[str]], timers: list[str], now: float, boot: str
) -> PendingGuard | None:
    """Return the guard that waits; also a timer alone, of a run that was cut off while it armed it."""
    if not values.get("pending", [""])[
        0
    ]:  # an empty file is of a disk that was full: nothing waits
        return PendingGuard(run=_run(timers[0]), seconds=None) if timers else None
    run = _run(values["pending"][0])
    fires, _, of_boot = values.get("fires", [""])[0].partition(" ")
    seconds = None
    if is_number(fires):
        # After a boot the unit for that takes it back at once.
        seconds = max(0.0, int(fires) - now) if of_boot == boot else 0.0
    titles = tuple(map(_plain, values.get("takes", ())))
    attended = run in timers or "process" in values
    return PendingGuard(run=run, seconds=seconds, titles=titles, attended=attended)


def _run(text: str) -> str:
    """Return the id of a run; it becomes part of a path on the host and of a command to type."""
    if not _RUN.fullmatch(text):
        raise NoAnswerError("what the host keeps of a run that waits there is not the id of a run")
    return text


def _plain(text: str) -> str:
    """Return a host's words so that a terminal can show them."""
    return "".join(c if c.isprintable() else "?" for c in text[:LONGEST_TITLE])
