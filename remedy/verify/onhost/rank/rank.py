"""One rank of any engine: what it knows, and what it leaves behind for the agent.

It travels to the hosts: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any


class Rank:
    """What one rank leaves in the run's private folder.

    Args:
        config: as ``allreduce.script.config`` makes it.
        local_rank: its number on this host.
    """

    def __init__(self, config: dict[str, Any], local_rank: int) -> None:
        self.config = config
        self.directory = Path(config["directory"])
        self.local_rank = local_rank
        self.rank = -1
        self.phase = ""
        self.times: dict[str, float] = {}

    def reach(self, phase: str) -> None:
        """Record that a phase is reached, with the seconds since the run began on this host."""
        self.phase = phase
        self.times[phase] = round(time.monotonic() - self.config["began"], 3)
        value = {"rank": self.rank, "local_rank": self.local_rank, "pid": os.getpid()}
        self.leave("phase", {**value, "phase": phase, "times": self.times})

    def leave(self, kind: str, value: dict[str, Any]) -> None:
        """Write a small JSON file in one step, so that a reader never sees half of it."""
        path = self.directory / f"{kind}.{self.local_rank}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value), encoding="ascii")
        part.replace(path)

    def fail(self, error: BaseException) -> None:
        """Leave an error and end at once: destructors of a broken group can block for ever."""
        traceback.print_exc()
        self.leave_error(first_line(error), str(error))
        end(1)

    def leave_error(self, text: str, long: str) -> None:
        """Leave an error, with the phase in which it happened."""
        self.leave("error", {"phase": self.phase, "text": text, "long": long[:2000]})


def first_line(error: BaseException) -> str:
    """Cut an error to its first line, shortened: torch appends whole C++ stacks."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:600]


def end(code: int) -> None:
    """End this process without destructors."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def read_config(directory: str) -> dict[str, Any]:
    """Read what the agent wrote for this host's ranks."""
    config: dict[str, Any] = json.loads(Path(directory, "config.json").read_text(encoding="ascii"))
    return config


def redirect(config: dict[str, Any], local_rank: int) -> None:
    """Send what this rank prints into a file of its own, which the agent reads (``LOGS`` of the engine)."""
    logs = Path(config["directory"], "logs")
    logs.mkdir(exist_ok=True)
    out = os.open(logs / f"{local_rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)


def die_with_parent() -> None:
    """Have the kernel kill this process when its launcher dies: prctl(2), PR_SET_PDEATHSIG (1)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
