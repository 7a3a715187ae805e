"""Asking NCCL itself who is missing: its RAS service, while the processes of a hang are still there.

Each process of a job on NCCL >= 2.24 has a thread that knows of all others, and answers on localhost. The
protocol is lines of text; the answer ends with the connection. It is JSON from 2.28.7 on, and else meant for
people. Source: NVIDIA/nccl at 2.30.7, src/ras/client.cc and client_support.cc, and its user guide on RAS.

It travels to the host with the agent: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from typing import Any

# ras_internal.h: NCCL_RAS_CLIENT_PORT, NCCL_RAS_CLIENT_PROTOCOL; NCCL_RAS_ADDR moves it.
PORT = 28028
PROTOCOL = 2
LARGEST = 4_000_000  # bytes of an answer that are read
TIMEOUT = 3  # seconds that RAS is to wait for processes that do not answer it

_COMMUNICATOR = re.compile(r"^#\d+-\d+ \([0-9a-f]+\) (\w+)")
_SECTION = re.compile(r"^(INCOMPLETE|DEAD|TIMEOUT)$")
_RANK = re.compile(r"^  Rank (\d+) -- ")
# Up to 2.26 all in one line.
_RANKS = re.compile(r"^  The missing ranks?: ([\d,]+)$")


def address(environment: Any = os.environ) -> tuple[str, int]:
    """Return where RAS listens for clients: localhost, or what NCCL_RAS_ADDR says."""
    host, _, port = environment.get("NCCL_RAS_ADDR", "").rpartition(":")
    return (host.strip("[]") or "localhost", int(port)) if port.isdigit() else ("localhost", PORT)


def ask(where: tuple[str, int], seconds: float) -> str:
    """Ask for the status of the job, as JSON where this NCCL has it; empty where nobody answers in time."""
    end = time.monotonic() + seconds
    try:
        with socket.create_connection(where, timeout=min(1.0, seconds)) as line:
            greeting = _command(line, f"CLIENT PROTOCOL {PROTOCOL}", end)
            if not greeting.upper().startswith("SERVER PROTOCOL "):
                return ""
            _command(line, f"TIMEOUT {TIMEOUT}", end)
            as_json = _command(line, "SET FORMAT json", end).strip().upper() == "OK"
            line.sendall(b"STATUS\n" if as_json else b"VERBOSE STATUS\n")
            return _read(line, end, whole=True)
    except OSError:
        return ""


def _command(line: socket.socket, text: str, end: float) -> str:
    line.sendall(f"{text}\n".encode("ascii"))
    return _read(line, end, whole=False)


def _read(line: socket.socket, end: float, whole: bool) -> str:
    """What comes up to the end of a line, or of the connection."""
    data = b""
    while len(data) < LARGEST and (whole or not data.endswith(b"\n")):
        remaining = end - time.monotonic()
        if remaining <= 0:
            break
        line.settimeout(remaining)
        received = line.recv(65536)
        if not received:
            break
        data += received
    return data.decode("utf-8", "replace")


def missing(text: str) -> dict[int, str]:
    """Find the ranks of the largest communicator that RAS misses, each with its state; never raises.

    Args:
        text: an answer, as JSON or for people.

    Returns:
        "dead", "unresponsive", "missing", or "behind": it launched fewer operations than the others.
    """
    try:
        return _of_json(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return _of_text(text)


def _of_json(answer: Any) -> dict[int, str]:
    statuses: dict[int, str] = {}
    communicators = sorted(
        answer["communicators"], key=lambda communicator: -int(communicator["size"])
    )
    for communicator in communicators[:1]:
        for rank in communicator.get("missing_ranks", ()):
            status = rank.get("status", {})
            dead, mute = status.get("considered_dead"), status.get("unresponsive")
            statuses[int(rank["rank"])] = "dead" if dead else "unresponsive" if mute else "missing"
        launched = {
            int(rank["rank"]): sum(map(int, rank.get("collective_counts", {}).values()))
            for rank in communicator.get("ranks", ())
        }
        for rank, count in launched.items():
            if count < max(launched.values()):
                statuses[rank] = "behind"
    return statuses


def _of_text(text: str) -> dict[int, str]:
    """Read the blocks ``#0-0 (hash) INCOMPLETE``, of which the first is the largest communicator's."""
    statuses: dict[int, str] = {}
    inside = ""
    for line in text.splitlines():
        head = _COMMUNICATOR.match(line)
        if head:
            inside = head[1] if line.startswith("#0-0 ") else ""
        elif not line.strip() or _SECTION.match(line):
            inside = ""
        elif inside == "INCOMPLETE":
            single, listing = _RANK.match(line), _RANKS.match(line)
            if single:
                statuses[int(single[1])] = "missing"
            for number in re.findall(r"\d+", listing[1]) if listing else ():
                statuses[int(number)] = "missing"
    return statuses
