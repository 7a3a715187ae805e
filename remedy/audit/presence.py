"""Whether the controller of a run is still at work: it holds a lock beside the run's plan until it ends.

The kernel releases the lock with the process, however that ends.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from remedy.files import open_kept

NAME = "controller"


def hold(home: Path, run: str) -> IO[bytes] | None:
    """Take the lock of a run; it is held until the file is closed. None where its folder cannot be written."""
    try:
        file = open_kept(home / "runs" / run / NAME)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return file


def is_at_work(home: Path, run: str) -> bool:
    """Say whether a controller that shares this folder is carrying the run out."""
    try:
        with (home / "runs" / run / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
