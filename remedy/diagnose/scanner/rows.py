"""The last lines of a log by their numbers."""

from __future__ import annotations

from remedy.diagnose.scanner.log_scan import LogScan


def numbered_rows(scan: LogScan) -> tuple[int, list[str]]:
    """Return the number of the first of a log's last lines, and the lines. A form feed ends none.

    Args:
        scan: the log.
    """
    rows = scan.tail.removesuffix("\n").split("\n")
    return scan.lines - len(rows) + 1, rows
