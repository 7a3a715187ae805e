"""The journal: append-only JSON Lines, each record chained to the one before by SHA-256.

A record is one line of canonical JSON (sorted keys, ASCII) with the digest of the line before it (``prev``)
and of itself without that field (``hash``). An edited, removed or reordered line breaks the chain. The file
``head`` beside it names the last record, and so do the hosts that a run changed: a journal that was cut off, or
written anew as a whole, does not agree with them.

A journal that has grown long continues in a new file; the files before it are called ``journal-NUMBER.jsonl``,
by the number of their last record, and the chain leads through all of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from pydantic import Field

from remedy.errors import RefusedError, RemedyError
from remedy.files import flush_folder, kept_mode, make_folder, open_kept, write_whole
from remedy.text import counted, quoted
from remedy.values import Document

GENESIS = "0" * 64
_LONGEST = 64 << 20  # bytes of a line
FILE_NAME = "journal.jsonl"
HEAD_NAME = "head"
TORN_NAME = "journal.torn"
# A file that every editor still opens; a run of 2,000 hosts writes about 1 MiB.
ROTATE_BYTES = 16 << 20
# Of one text in a record: a host's words, or a signature, which is the longest that belongs there.
LONGEST_TEXT = 16 << 10


class RecordDocument(Document):
    """One record of the journal, as it is written.

    Args:
        seq: its number from 0, across all files of the journal.
        time: RFC 3339 in UTC.
        run: the run that it belongs to.
        mode: what that run does: plan, check, rehearsal, apply, rollback, verify, unlock, accept.
        event: what happened: planned, began, changed, stopped, verified, ended, saved, checked, rehearsed,
            unlocking, unlocked, settling, settled, wave, red, accepted.
        data: what happened, by event.
        prev: the ``hash`` of the record before.
        hash: SHA-256 (hex) of this record in canonical JSON without this field.
    """

    seq: int
    time: str
    run: str
    mode: str
    event: str
    data: Mapping[str, Any] = Field(default_factory=dict)
    prev: str
    hash: str


@dataclass(frozen=True)
class JournalRecord:
    """One record: its number from 0, and what it says."""

    number: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Head:
    """The last record at some moment.

    Args:
        journal: the hash of the journal's first record, which no other journal has.
        seq: the number of the record.
        hash: its hash.
    """

    journal: str
    seq: int
    hash: str


class Journal:
    """The journal of one inventory, open for one run.

    Args:
        home: the folder ``.remedy``; made when missing.
        run: the id of the run, in every record.
        mode: what the run does, as in ``RecordDocument``.
    """

    def __init__(self, home: Path, *, run: str, mode: str) -> None:
        self.path = home / FILE_NAME
        self._common = {"run": run, "mode": mode}
        with _explained(self.path):
            make_folder(home)
            if home.stat().st_mode & stat.S_IWOTH:
                raise RefusedError(
                    f"{home} can be written by everybody, so that nothing in it is a record",
                    next_step=f"Keep the others out: chmod o-w {quoted(home)}",
                )

    def write(self, event: str, **data: Any) -> Head:
        """Append one record and have it on disk before returning.

        Returns:
            the journal's new head, for the hosts of the run to keep.

        Raises:
            RemedyError: it cannot be written; what was about to be done must then not be done.
            RefusedError: records that were written are gone.
        """
        with _explained(self.path), _turn(self.path), _end_of(self.path) as (file, last):
            seq = last.seq + 1 if last else 0
            body = {
                "seq": seq,
                "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                **self._common,
                "event": event,
                "data": _bounded(data),
                "prev": last.hash if last else GENESIS,
            }
            digest = _digest(body)
            _append(file, _line({**body, "hash": digest}))
            if last is None:
                flush_folder(self.path.parent)
            head = Head(last.journal if last else digest, seq, digest)
            text = canonical(vars(head)) + "\n"
            write_whole(self.path.with_name(HEAD_NAME), text, mode=kept_mode(self.path.parent))
            return head


def verify_chain(path: Path) -> tuple[int, str]:
    """Check a journal from its first record to its last, and that it reaches to its head.

    Args:
        path: the file that is written now; the older ones are beside it.

    Returns:
        the number of good records and "", or the number of good records before the first bad one and what is
        wrong with that.
    """
    prev = GENESIS
    number = 0
    head = read_head(path)
    for line in _lines(path):
        try:
            body = json.loads(line)
            claimed = body.pop("hash")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return number, f"record {number} is torn or not a record"
        if not line.endswith(b"\n"):
            return number, f"record {number} is torn: the line has no end"
        if body.get("seq") != number or body.get("prev") != prev:
            return number, f"record {number} does not follow the one before it"
        if _digest(body) != claimed or _line({**body, "hash": claimed}) != line:
            return number, f"record {number} was changed"
        if head is not None and head.seq == number and head.hash != claimed:
            return number, f"record {number} is not the one that the file {HEAD_NAME} names"
        prev = claimed
        number += 1
    if head is None and number > 1:  # a crash can have come before the head of the first one
        return (
            number,
            f"the file {HEAD_NAME}, which names the last record, is gone or cannot be read",
        )
    if head is not None and head.seq >= number:
        lost = (
            f"record {number} is" if head.seq == number else f"records {number} to {head.seq} are"
        )
        return number, f"{lost} missing at the end"
    return number, ""


def read_records(path: Path) -> Iterator[JournalRecord]:
    """Yield the records of a journal, through all its files; a torn last line is left out."""
    for number, line in enumerate(_lines(path)):
        try:
            body = json.loads(line)
        except ValueError:
            return
        if not isinstance(body, dict) or not {"run", "mode", "event", "data", "time"} <= set(body):
            return
        yield JournalRecord(number, body)


def pick_hashes(path: Path, numbers: Collection[int]) -> dict[int, str]:
    """Return the hashes of some records by number, and those of the first and of the last in any case.

    Records that are not asked for are not parsed: a journal of years is read for each run.
    """
    lines: dict[int, bytes] = {}
    last = -1
    for last, line in enumerate(_lines(path)):
        if last == 0 or last in numbers:
            lines[last] = line
        latest = line
    if last >= 0:
        lines[last] = latest
    hashes: dict[int, str] = {}
    for number, line in lines.items():
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            hashes[number] = str(json.loads(line)["hash"])
    return hashes


def read_head(path: Path) -> Head | None:
    """Return the head that is kept beside a journal; None where there is none that can be read."""
    try:
        body = json.loads(path.with_name(HEAD_NAME).read_text(encoding="utf-8"))
        return Head(str(body["journal"]), int(body["seq"]), str(body["hash"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files of a journal, the oldest first; the one that is written now may be missing."""
    older = sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))
    return (*older, *([path] if path.exists() else []))


def canonical(body: Mapping[str, Any]) -> str:
    """Return the one text that stands for a record."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _bounded(value: Any) -> Any:
    """Return data with each text in it cut to its bound, and how much was left out in its place."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return (
            f"{value[:LONGEST_TEXT]} [{counted(len(value) - LONGEST_TEXT, 'character')} left out]"
        )
    if isinstance(value, Mapping):
        return {key: _bounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(part) for part in value]
    return value


def _line(body: Mapping[str, Any]) -> bytes:
    return canonical(body).encode() + b"\n"


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a journal; a line longer than any record comes in pieces, which are no records."""
    for part in files_of(path):
        # A device in a journal's place never ends: nothing is kept in it.
        if not part.is_file():
            continue
        with part.open("rb") as file:
            while line := file.readline(_LONGEST):
                yield line


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until no other controller that shares the folder writes."""
    with open_kept(path.with_name("journal.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _end_of(path: Path) -> Iterator[tuple[IO[bytes], Head | None]]:
    """Open the file to which the next record belongs, and find the record before that.

    Raises:
        RefusedError: the record that the head names is not there.
    """
    if path.exists() and path.stat().st_size > ROTATE_BYTES:
        with path.open("r+b") as file:
            body = _last_record(file)
        if body is not None:
            path.rename(path.with_name(f"{path.stem}-{body['seq']:09d}{path.suffix}"))
            flush_folder(path.parent)
    head = read_head(path)
    with open_kept(path) as file:
        body = _last_record(file)
        older = files_of(path)[:-1]
        if body is None and older:
            with older[-1].open("rb") as before:
                body = _last_record(before)
        seq = -1 if body is None else int(body["seq"])
        if head is not None and (head.seq > seq or (head.seq == seq and head.hash != body["hash"])):  # type: ignore[index]
            raise RefusedError(
                f"the journal {path} ends with record {seq}, and {path.with_name(HEAD_NAME)} names "
                f"record {head.seq}: records were removed or changed",
                next_step="Bring the journal back from where it is kept safe. To begin a new one, move the "
                "folder away as a whole.",
            )
        if body is None:
            yield file, None
        else:
            yield file, Head(head.journal if head else _first_hash(path), seq, str(body["hash"]))


def _first_hash(path: Path) -> str:
    return str(json.loads(next(_lines(path)))["hash"])


def _append(file: IO[bytes], line: bytes) -> None:
    """Write a whole line and have it on disk, or leave the file as it was."""
    end = file.seek(0, os.SEEK_END)
    try:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise


def _last_record(file: IO[bytes]) -> dict[str, Any] | None:
    """Return the last record of an open file; None when it has none.

    A crash can leave a torn last line. It was never followed by an action, since a record is on disk
    before what it announces; it is set aside in a file of its own.
    """
    end = file.seek(0, os.SEEK_END)
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
            torn = Path(file.name).with_name(TORN_NAME)
            write_whole(torn, lines[-1], mode=kept_mode(torn.parent))
            file.truncate(end + len(tail) - len(lines[-1]))
            tail = b"".join(lines[:-1])
            lines = lines[:-1]
        if len(lines) > 1 or (lines and end == 0):
            body: dict[str, Any] = json.loads(lines[-1])
            return body
    return None


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(body).encode()).hexdigest()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        folder = quoted(path.parent)
        raise RemedyError(
            f"the journal {path} cannot be written: {error.strerror}",
            next_step="Run the command as the user who owns the folder, or give it to a group of yours: "
            f"chgrp -R GROUP {folder}; chmod -R g+rwX,o= {folder}; "
            f"find {folder} -type d -exec chmod g+s {{}} +",
        ) from error
    except OSError as error:
        raise RemedyError(
            f"the journal {path} cannot be written: {error.strerror}",
            next_step="Nothing is changed without a record of it: make room or give write access, and "
            "run the command again.",
        ) from error
    except (ValueError, KeyError) as error:
        raise RemedyError(
            f"the last record of the journal {path} cannot be read",
            next_step="See what is wrong: remedy audit verify INVENTORY. If it cannot be saved, move the "
            "folder away as a whole.",
        ) from error
