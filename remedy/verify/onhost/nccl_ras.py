"""Asking NCCL itself who is missing: its RAS service, while the processes of a hang are still there.

Each process of a job on NCCL >= 2.24 has a thread that knows of all others, and answers on localhost. The
protocol is lines of text; the answer ends with the connection, and ``ras_answer`` reads it. Source:
NVIDIA/nccl at 2.30.7, src/ras/client.cc and client_support.cc, and its user guide on RAS.

It travels to the host with the agent: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

# ras_internal.h: NCCL_RAS_CLIENT_PORT, NCCL_RAS_CLIENT_PROTOCOL; NCCL_RAS_ADDR moves it.
PORT = 28028
PROTOCOL = 2
LARGEST = 4_000_000  # bytes of an answer that are read
TIMEOUT = 3  # seconds that RAS is to wait for processes that do not answer it


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
