"""The watch over all hosts that are on their way: it ends a stage at its deadline, whatever the host does.

The seconds of its clock are those in which this process could have seen an answer. The clock stands still while
the process is stopped or busy: answers that have arrived meanwhile are read before a host is late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import gevent
from gevent.lock import BoundedSemaphore

from remedy.spec import SshSpec
from remedy.transport.refused import KeyRefusedError
from remedy.transport.stages import Stage, Stuck, limit

TICK = 0.25
# A longer tick was no waiting: this process was stopped, or at work.
LONGEST_TICK = 1.0
# A host that has been in a stage for so long waits, and does no work here: others may connect meanwhile, and
# whoever looks sees where it is.
SLOW = 3.0
# After so many seconds without a byte from a running script its sshd is asked for a sign of life.
QUIET = 10.0


class Overdue(BaseException):
    """A stage is not over at its deadline. No ``Exception``, so that nothing below the transport keeps it."""

    def __init__(self, stuck: Stuck) -> None:
        super().__init__(stuck.reason)
        self.stuck = stuck


class AwakeClock:
    """Counts the seconds in which this process could have seen an answer."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._now = now
        self._last = now()

    def tick(self) -> None:
        """Count the time since the last tick, and no more than a tick can take."""
        now = self._now()
        self.seconds += min(now - self._last, LONGEST_TICK)
        self._last = now


class Watch:
    """Where one host is on its way, kept by the greenlet that goes it.

    Args:
        host: its name.
        spec: the deadlines.
        clock: what they are measured by.
    """

    def __init__(self, host: str, spec: SshSpec, clock: AwakeClock) -> None:
        self.host = host
        self.spec = spec
        self.stage: Stage | None = None
        self.via = ""  # the jump host that it is at
        self.proxy = ""  # the last words of a ProxyCommand that ended
        self.refused: KeyRefusedError | None = None  # the key that was not accepted
        self.sudo = False
        self.limit = float("inf")
        self.alive: Callable[[], None] | None = None
        self._clock = clock
        self._since = self._heard = clock.seconds
        self._asked: float | None = None
        self._slots: BoundedSemaphore | None = None
        self._greenlet = gevent.getcurrent()
        self._question: gevent.Greenlet | None = None
        self._is_slow = False

    def enter(self, stage: Stage, seconds: float | None = None) -> None:
        """Begin a stage.

        Args:
            seconds: its deadline, where the settings have none.
        """
        self.stage = stage
        self.limit = limit(self.spec, stage) if seconds is None else seconds
        self._since = self._heard = self._clock.seconds
        self._is_slow = False

    def heard(self) -> None:
        """Take note that something came from the host."""
        self._heard = self._clock.seconds
        self._asked = None

    def take_slot(self, slots: BoundedSemaphore) -> None:
        """Wait for a place among those that connect."""
        slots.acquire()
        self._slots = slots

    def give_slot(self) -> None:
        """Give the place back, where there is one."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.release()

    def fail(self, reason: BaseException) -> None:
        """Raise an exception where the host's greenlet waits."""
        if self.stage is not None:
            self.stage = None
            self._greenlet.kill(reason, block=False)

    def end(self) -> None:
        """Stop watching: the host is no longer on its way."""
        self.stage = None
        self.give_slot()
        if self._question is not None:
            self._question.kill(block=False)

    def look(self, on_slow: Callable[[Watch], None]) -> None:
        """End the stage where it is overdue, and ask a silent host for a sign of life."""
        if self.stage is None:
            return
        age = self._clock.seconds - self._since
        if age > SLOW and not self._is_slow and self.stage is not Stage.OUTPUT:
            self._is_slow = True
            self.give_slot()
            on_slow(self)
        if age > self.limit:
            self.fail(Overdue(Stuck(self.stage, self.limit, self.via, self.sudo)))
        elif self.stage is Stage.OUTPUT and self.alive is not None:
            self._ask_for_life()

    def _ask_for_life(self) -> None:
        now = self._clock.seconds
        if self._asked is None:
            if now - self._heard > QUIET:
                self._asked = now
                self._question = gevent.spawn(self._hear_life)
        elif now - self._asked > self.spec.silence:
            self.fail(Overdue(Stuck(Stage.OUTPUT, now - self._heard, silent=True)))

    def _hear_life(self) -> None:
        assert self.alive is not None
        try:
            self.alive()
        except Exception:
            return  # the connection is broken, which its reader notices
        self.heard()


# The watch of the host that the running greenlet is for: pyinfra makes clients of its own for jump hosts.
CURRENT: ContextVar[Watch] = ContextVar("watch")


class Watchman:
    """Looks at all hosts on their way, a few times a second, while there are any.

    Args:
        spec: the deadlines.
        on_slow: is called once for a host that has been in a stage for some seconds.
    """

    def __init__(self, spec: SshSpec, on_slow: Callable[[Watch], None]) -> None:
        self._spec = spec
        self._on_slow = on_slow
        self._clock = AwakeClock()
        self._watches: set[Watch] = set()
        self._round: gevent.Greenlet | None = None

    @contextmanager
    def over(self, host: str) -> Iterator[Watch]:
        """Watch over a host while the block runs, in the greenlet that runs it."""
        if self._round is None:
            self._clock.tick()
            self._round = gevent.spawn(self._rounds)
        watch = Watch(host, self._spec, self._clock)
        self._watches.add(watch)
        token = CURRENT.set(watch)
        try:
            yield watch
        finally:
            CURRENT.reset(token)
            self._watches.discard(watch)
            watch.end()

    def _rounds(self) -> None:
        while self._watches:
            gevent.sleep(TICK)
            self._clock.tick()
            for watch in tuple(self._watches):
                watch.look(self._on_slow)
        self._round = None
