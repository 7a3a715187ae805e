"""One rank: what it knows, what it leaves behind for the agent, and when it gives up."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

# How often a rank asks whether another has failed, and how long it then still goes on; in seconds.
HEED_EVERY = 1.0
HEED_AFTER = 3.0
# How long a rank that gives up stays, so that all others can say that they are still there; in seconds.
ROLL_CALL = 2.5


def raise_flag(store: Any, name: str) -> None:
    """Say something over the store that others can ask for at any time, as often as they like.

    By a counter: a store could not be asked from Python whether it has a key before torch 2.3
    (pytorch/pytorch#116144), but add up, without waiting, from the first.
    """
    store.add(name, 1)


def is_raised(store: Any, name: str) -> bool:
    """Whether anybody has raised a flag; does not wait."""
    return bool(store.add(name, 0))


def first_line(error: BaseException) -> str:
    """The first line of an error, shortened: torch appends whole C++ stacks."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:600]


class Rank:
    """What one rank knows and leaves behind in the run's private directory."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.directory = Path(config["directory"])
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.local_world = int(os.environ["LOCAL_WORLD_SIZE"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.phase = ""
        self.store: Any = None
        # A connection to the store that no wait of the main thread holds up.
        self.line: Any = None
        self.last_word = threading.Lock()
        self.times: dict[str, float] = {}

    def reach(self, phase: str) -> None:
        """Record that a phase is reached, with the seconds since the run began on this host."""
        self.phase = phase
        self.times[phase] = round(time.monotonic() - self.config["began"], 3)
        self.leave(
            "phase",
            {
                "rank": self.rank,
                "local_rank": self.local_rank,
                "pid": os.getpid(),
                "phase": phase,
                "times": self.times,
            },
        )

    def leave(self, kind: str, value: dict[str, Any]) -> None:
        """Write a small JSON file in one step, so that a reader never sees half of it."""
        path = self.directory / f"{kind}.{self.local_rank}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value), encoding="ascii")
        part.replace(path)

    def within(self, seconds: float) -> timedelta:
        """A time-out that also ends before the host's own deadline does, so that torch can still speak."""
        left = self.config["began"] + self.config["deadline"] - 3.0 - time.monotonic()
        return timedelta(seconds=max(1.0, min(seconds, left)))

    def alarm(self) -> None:
        """Tell the other hosts, as far as the store can still be reached, that there is no more hope."""
        with contextlib.suppress(Exception):
            raise_flag(self.line or self.store, "failed")

    def answer(self) -> None:
        """Say that this rank is still there: what has stopped, or is stuck in a driver, can't."""
        with contextlib.suppress(Exception):
            raise_flag(self.line or self.store, f"still/{self.rank}")

    def roll_call(self) -> None:
        """Wait for the answers of all; the first and the last host note who gave none.

        Two of them, because one may itself be what is missing. Nothing has been killed by then.
        """
        end = time.monotonic() + ROLL_CALL
        store, silent = self.line or self.store, list(range(self.world))
        if store is None or self.rank not in (0, self.world - self.local_world):
            time.sleep(ROLL_CALL)
            return
        with contextlib.suppress(Exception):
            while silent and time.monotonic() < end:
                time.sleep(0.1)
                silent = [one for one in silent if not is_raised(store, f"still/{one}")]
            self.leave("missing", {"ranks": silent})
        time.sleep(max(0.0, end - time.monotonic()))

    def heed(self, torch: Any) -> None:
        """Watch for the alarm on a connection of its own, and leave a while after it was raised.

        Without this a rank that waits for a peer that failed would wait until its deadline. The while lets
        ranks that fail for a reason of their own say so first.
        """
        text = "told to stop: another rank had failed"
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

    def give_up(self, text: str, long: str) -> None:
        """Leave an error behind and end at once; of two threads the first one's error stays."""
        with self.last_word:
            self.leave("error", {"phase": self.phase, "text": text, "long": long[:2000]})
            self.alarm()
            self.answer()
            self.roll_call()
            sys.stderr.flush()
            os._exit(1)
