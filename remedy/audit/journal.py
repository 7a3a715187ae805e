"""The journal: append-only JSON Lines, each record chained to the one before by SHA-256.

A record is one line of canonical JSON (sorted keys, ASCII) with the digest of the line before it (``prev``) and
of itself without that field (``hash``). An edited, removed or reordered line breaks the chain.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from remedy.errors import RemedyError

GENESIS = "0" * 64
FILE_NAME = "journal.jsonl"


@dataclass(frozen=True)
class JournalRecord:
    """One record: its number from 0, and what it says."""

    number: int
    body: Mapping[str, Any]


class Journal:
    """The journal of one inventory, open for one run.

    Args:
        home: the folder ``.remedy``; made when missing.
        run: the id of the run, in every record.
        mode: what the run does: apply, verify, rollback.
    """

    def __init__(self, home: Path, *, run: str, mode: str) -> None:
        self.path = home / FILE_NAME
        self._common = {"run": run, "mode": mode}
        with _explained(self.path):
            home.mkdir(mode=0o700, exist_ok=True)

    def write(self, event: str, **data: Any) -> None:
        """Append one record and have it on disk before returning.

        Raises:
            RemedyError: it cannot be written; what was about to be done must then not be done.
        """
        with _explained(self.path), self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # controllers that share a folder take turns
            number, prev = _head(file)
            body = {
                "seq": number,
                "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                **self._common,
                "event": event,
                "data": data,
                "prev": prev,
            }
            body["hash"] = _digest(body)
            file.write(_canonical(body).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def verify_chain(path: Path) -> tuple[int, str]:
    """Check a journal from its first record to its last.

    Returns:
        the number of good records and "", or the number of good records before the first bad one and what is
        wrong with that.
    """
    prev = GENESIS
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            try:
                body = json.loads(line)
                claimed = body.pop("hash")
            except (ValueError, KeyError, TypeError, AttributeError):
                return number, f"record {number} is torn or not a record"
            if not line.endswith(b"\n"):
                return number, f"record {number} is torn: the line has no end"
            if body.get("seq") != number or body.get("prev") != prev:
                return number, f"record {number} does not follow the one before it"
            if _digest(body) != claimed:
                return number, f"record {number} was changed"
            prev = claimed
            number += 1
    return number, ""


def read_records(path: Path) -> Iterator[JournalRecord]:
    """Yield the records of a journal; a torn last line is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file):
            try:
                yield JournalRecord(number, json.loads(line))
            except ValueError:
                return


def hosts_of_plan(path: Path, digest: str) -> set[str]:
    """Return the hosts on which the plan with this digest was carried out, or begun."""
    return {
        host
        for record in read_records(path)
        if record.body["event"] == "planned" and record.body["mode"] == "apply"
        if record.body["data"].get("digest") == digest
        for host in record.body["data"].get("changes", {})
    }


def _head(file: Any) -> tuple[int, str]:
    """Return the number and the ``prev`` of the next record, from the end of the file.

    A crash can leave a torn last line. It was never followed by an action, since a record is on disk
    before what it announces; it is cut off.
    """
    file.seek(0, os.SEEK_END)
    end = file.tell()
    tail = b""
    while end > 0:
        step = min(65536, end)
        end -= step
        file.seek(end)
        tail = file.read(step) + tail
        lines = tail.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            if len(lines) == 1 and end > 0:
                continue
            file.truncate(end + len(tail) - len(lines[-1]))
            tail = b"".join(lines[:-1])
            lines = lines[:-1]
        if len(lines) > 1 or (lines and end == 0):
            body = json.loads(lines[-1])
            return int(body["seq"]) + 1, str(body["hash"])
    return 0, GENESIS


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(body).encode()).hexdigest()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RemedyError(
            f"the journal {path} cannot be written: {error.strerror}",
            next_step="Nothing is changed without a record of it: make room or give write access, and "
            "run the command again.",
        ) from error
    except (ValueError, KeyError) as error:
        raise RemedyError(
            f"the last record of the journal {path} cannot be read",
            next_step="Look at its end, and move the file away if it cannot be saved.",
        ) from error
