"""One rank of torch: how it shares the end of the run with the others over torch's store."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from datetime import timedelta
from typing import Any

from remedy.verify.onhost.rank.rank import Rank, end, first_line

# How often a rank asks whether another has failed, and how long it then still goes on; in seconds.
HEED_EVERY = 1.0
HEED_AFTER = 3.0
# How long a rank that gives up stays, so that all others can say that they are still there; in seconds.
ROLL_CALL = 2.5


def raise_flag(store: Any, name: str) -> None:
    """Raise a flag in the store, which others can ask for at any time, as often as they like.

    By a counter: a store could not be asked from Python whether it has a key before torch 2.3
    (pytorch/pytorch#116144), but add up, without waiting, from the first.
    """
    store.add(name, 1)


def is_raised(store: Any, name: str) -> bool:
    """Ask whether anybody has raised a flag; does not wait."""
    return bool(store.add(name, 0))


class TorchRank(Rank):
    """A rank that torchrun started; ``store`` is None until it has met the others."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config, int(os.environ["LOCAL_RANK"]))
        self.rank = int(os.environ["RANK"])
        self.local_world = int(os.environ["LOCAL_WORLD_SIZE"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.store: Any = None
        # A connection to the store that no wait of the main thread holds up.
        self.line: Any = None
        self.last_word = threading.Lock()

    def within(self, seconds: float) -> timedelta:
        """Bound a time-out so that it ends before the host's own deadline, and torch can still report."""
        remaining = self.config["began"] + self.config["deadline"] - 3.0 - time.monotonic()
        return timedelta(seconds=max(1.0, min(seconds, remaining)))

    def alarm(self) -> None:
        """Alarm the other hosts, as far as the store can still be reached."""
        with contextlib.suppress(Exception):
            raise_flag(self.line or self.store, "failed")

    def answer(self) -> None:
        """Show that this rank is still there: what has stopped, or is stuck in a driver, cannot."""
        with contextlib.suppress(Exception):
            raise_flag(self.line or self.store, f"still/{self.rank}")

    def roll_call(self) -> None:
        """Wait for the answers of all; the first and the last host note who gave none.

        Two of them, because one may itself be what is missing. Nothing has been killed by then.
        """
        limit = time.monotonic() + ROLL_CALL
        store, silent = self.line or self.store, list(range(self.world))
        if store is None or self.rank not in (0, self.world - self.local_world):
            time.sleep(ROLL_CALL)
            return
        with contextlib.suppress(Exception):
            while silent and time.monotonic() < limit:
                time.sleep(0.1)
                silent = [rank for rank in silent if not is_raised(store, f"still/{rank}")]
            self.leave("missing", {"ranks": silent})
        time.sleep(max(0.0, limit - time.monotonic()))

    def heed(self, torch: Any) -> None:
        """Watch for the alarm on a connection of its own, and leave a while after it was raised.

        Without this a rank that waits for a peer that failed would wait until its deadline. The while lets
        ranks that fail for a reason of their own say so first.
        """
        text = "stopped, because another rank had failed"
        try:
            store = torch.distributed.TCPStore(
                os.environ["MASTER_ADDR"],
                int(os.environ["MASTER_PORT"]),
                is_master=False,
                timeout=self.within(10.0),
                wait_for_workers=False,
            )
            store = torch.distributed.PrefixStore(f"remedy/{self.config['nonce']}", store)
            self.line = store
            while not is_raised(store, "failed"):
                time.sleep(HEED_EVERY)
            self.answer()
        except Exception as error:
            text = f"the rendezvous was lost: {first_line(error)}"
        time.sleep(HEED_AFTER)
        self.give_up(text, text)

    def fail(self, error: BaseException) -> None:
        """Leave an error and end at once."""
        traceback.print_exc()
        self.give_up(first_line(error), str(error))

    def give_up(self, text: str, long: str) -> None:
        """Leave an error behind, alarm the others and end; of two threads the first one's error stays."""
        with self.last_word:
            self.leave_error(text, long)
            self.alarm()
            self.answer()
            self.roll_call()
            end(1)
