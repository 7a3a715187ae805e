"""Who failed first by torchrun's own report, which stands at the end of its log.

Source: pytorch/pytorch, torch/distributed/elastic/multiprocessing/errors/__init__.py, _FAILURE_FORMAT.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from remedy.diagnose.scanner.log_scan import LogScan
from remedy.text import clipped

# Each launcher writes it of its own processes; what may stand before the words of a line, collectors add.
REPORT = re.compile(
    r"Root Cause \(first observed failure\):\n[^\n]{0,200}\[\d+\]:\n"
    r"[^\n]{0,200}\btime +: (?P<time>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)\n"
    r"[^\n]{0,200}\bhost +: (?P<host>\S{1,253})\n"
    r"[^\n]{0,200}\brank +: (?P<rank>\d{1,9}) \(local_rank: \d{1,9}\)\n"
    r"[^\n]{0,200}\bexitcode +: (?P<code>-?\d{1,5}) \(pid: (?P<pid>\d{1,9})\)"
)
LONGEST = 80  # characters of a host's name that are shown


def first_failed(scans: Sequence[LogScan]) -> str:
    """Return the sentence that names the process which failed first; "" where no launcher reports any.

    Args:
        scans: the logs of one run; of several reports the earliest counts, by their hosts' clocks.
    """
    reports = [report for scan in scans for report in REPORT.finditer(scan.tail)]
    if not reports:
        return ""
    first = min(reports, key=lambda report: report["time"])
    host = clipped(first["host"], LONGEST)
    clock = first["time"].partition("_")[2]
    return (
        f"torchrun saw rank {first['rank']} fail first: process {first['pid']} on {host}, "
        f"{_ending(int(first['code']))}, at {clock}"
    )


def _ending(code: int) -> str:
    """Return how a process ended, by what subprocess.Popen.returncode says of it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
