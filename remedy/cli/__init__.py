"""The command line: it parses options, asks, prints and exits. Everything else is done below."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

# Until the command takes signals itself (``interrupt``), Ctrl-C ends it as any other program: no traceback.
if (
    Path(sys.argv[0]).name == "remedy"
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
