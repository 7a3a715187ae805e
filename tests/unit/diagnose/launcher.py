"""What torchrun writes at the end of its log."""

from __future__ import annotations


def report(host: str = "gpu02", rank: int = 3, code: int = -9, second: int = 39) -> list[str]:
    """Return the end of a launcher's log, with the lines of another failure before it."""
    return [
        f"failed (exitcode: {code}) local_rank: 1 (pid: 88) of binary: /opt/venv/bin/python",
        "============================================================",
        "train.py FAILED",
        "------------------------------------------------------------",
        "Failures:",
        "[1]:",
        f"  time      : 2026-03-02_11:00:{second + 1}",
        f"  host      : {host}",
        "  rank      : 2 (local_rank: 0)",
        "  exitcode  : 1 (pid: 87)",
        "  error_file: <N/A>",
        "------------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : 2026-03-02_11:00:{second}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: 1)",
        f"  exitcode  : {code} (pid: 88)" + (" (SIGKILL)" if code == -9 else " "),
        "  error_file: <N/A>",
        "============================================================",
    ]
