"""The command line: it parses options, asks, prints and exits. Everything else is done below."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def open_closed_streams() -> None:
    """Have /dev/null in the place of standard streams that were closed (``>&-``, some cron and init systems).

    Without it the next file or socket that is opened gets their number, and what is meant for a terminal goes
    there; and libraries fail on streams that are None.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            empty = os.open(os.devnull, os.O_RDWR)
            if empty != number:
                os.dup2(empty, number)
                os.close(empty)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


open_closed_streams()

# Until the command takes signals itself (``interrupt``), Ctrl-C ends it as any other program: no traceback.
if (
    Path(sys.argv[0]).name == "remedy" or Path(sys.argv[0]).parts[-2:] == ("remedy", "__main__.py")
) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
