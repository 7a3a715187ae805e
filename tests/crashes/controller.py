"""A controller that kills itself at one of its boundaries; the sweep runs it.

    python -m tests.crashes.controller AT COUNT_FILE WORDS...

AT is the number of a boundary, or a stage of a host such as "confirming". The boundaries are its writes to disk
(before and after each fsync and each rename), and each stage of a host.
``remedy WORDS...`` runs as it is; at boundary AT it gets the signal that no program can catch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    """Run remedy up to a boundary."""
    at, count, words = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    seen = 0

    def boundary() -> None:
        nonlocal seen
        seen += 1
        count.write_text(str(seen), encoding="utf-8")
        if str(seen) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            boundary()
            result = function(*args, **kwargs)
            boundary()
            return result

        return wrapped

    os.fsync = around(os.fsync)
    Path.replace = around(Path.replace)  # type: ignore[method-assign]
    from remedy.cli.main import main as command
    from remedy.cli.terminal import Terminal

    show = Terminal.host

    def host(terminal: Terminal, event: Any) -> None:
        boundary()
        if event.stage == at:
            os.kill(os.getpid(), signal.SIGKILL)
        show(terminal, event)

    Terminal.host = host  # type: ignore[method-assign,assignment]
    command(words)


if __name__ == "__main__":
    main()
