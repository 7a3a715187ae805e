"""Work for the time in which this process would only wait for hosts: a piece at a time, between their words."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import gevent


class SpareTime:
    """Pieces of work that somebody will need soon; those that no time was left for are dropped.

    They are done in the thread of the connections, so that nothing is imported in two threads at once.
    """

    def __init__(self) -> None:
        self._pieces: deque[Callable[[], object]] = deque()

    def add(self, pieces: Iterable[Callable[[], object]]) -> None:
        """Have these done in the order in which they come.

        Args:
            pieces: each as short as can be, since hosts wait for its end; what one raises is dropped: whoever
                needs its work does it then, and learns of it.
        """
        self._pieces.extend(pieces)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have the pieces done while the block waits."""
        worker = gevent.spawn(self._work) if self._pieces else None
        try:
            yield
        finally:
            if worker is not None:
                worker.kill(block=False)
                self._pieces.clear()

    def _work(self) -> None:
        while self._pieces:
            gevent.idle()  # whoever has something to read or to write comes first
            with suppress(Exception):
                self._pieces.popleft()()
