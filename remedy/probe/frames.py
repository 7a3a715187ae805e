"""From what a host printed to the raw sections of the probe.

The frame is described at the top of ``host/frame.sh``. Nothing a host can print makes these functions raise
anything but ``NoAnswerError``, and ``ProbeError`` where there is no section at all.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from remedy.answers import EXCERPT, read_block
from remedy.bounds import read_json
from remedy.errors import ProbeError
from remedy.text import TRACE_START_UP
from remedy.values import Unknown

T = TypeVar("T")

_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))

MOST = 12 << 20
"""Bytes of a probe's answer that are unpacked, about eighty times what a busy host says."""

LARGEST = 4 << 20
"""Bytes of a section; the files are one section, and each may have as many."""

MOST_LINES = 100_000
"""Lines of a section, a hundred times those of a busy host."""

MOST_SECTIONS = 200
"""Sections of an answer; there are about sixty."""

CHUNK = 1024
"""Bytes that are unpacked at a time: what one that is damaged costs."""

WHOLE_FILES = frozenset({"file-contents"})
"""Sections that hold files as they are; ``files`` bounds each of them."""

_GZIP = zlib.MAX_WBITS | 16
"""With the header of gzip (RFC 1952)."""

_MARK = re.compile(
    rb"(begin|end) ([a-z0-9-]+) ([0-9]+(?:\.[0-9]+)?)(?: ([a-z]+(?::[0-9]+)?) (.*))?", re.DOTALL
)
_HEX = re.compile(r"[0-9a-f]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_OF_PCI = "/sys/bus/pci/"
_PCI = re.compile(r"(/sys/bus/pci/devices/[^/]+/[^:]+):(.*)", re.DOTALL)


class NoAnswerError(Exception):
    """A section cannot answer; the text says why. Becomes an ``Unknown``."""


class Section(NamedTuple):
    """One section as it was printed; ``began`` and ``ended`` are the host's uptime in seconds."""

    body: bytes
    status: str
    detail: str
    began: float
    ended: float


class Sections:
    """The complete sections of one probe.

    Args:
        by_name: the sections by name.
        complete: whether the probe came to its end.
    """

    def __init__(self, by_name: Mapping[str, Section], *, complete: bool) -> None:
        self.by_name = by_name
        self.complete = complete
        self._lines: dict[str, dict[str, list[str]]] = {}

    def absent(self, name: str) -> bool:
        """Return whether the section ran and found that there is nothing of its kind on the host."""
        section = self.by_name.get(name)
        return section is not None and section.status == "none"

    def detail(self, name: str) -> str:
        """Return what the section says of itself, "" where there is none."""
        section = self.by_name.get(name)
        return section.detail if section else ""

    def body(self, name: str) -> bytes:
        """Return the section's bytes; raise ``NoAnswerError`` when it has no answer."""
        section = self.by_name.get(name)
        if section is None:
            raise NoAnswerError("the probe was cut off before it came to this")
        if section.status not in ("ok", "none"):
            raise NoAnswerError(_reason(section))
        if name not in WHOLE_FILES and len(section.body) > LARGEST:
            raise NoAnswerError(f"it is longer than {LARGEST >> 20} MiB")
        if name not in WHOLE_FILES and section.body.count(b"\n") > MOST_LINES:
            raise NoAnswerError(f"it has more than {MOST_LINES:,} lines")
        return section.body

    def text(self, name: str) -> str:
        """Return the section as text; bytes that are not UTF-8 are shown as escapes."""
        return as_text(self.body(name))

    def tool(self, name: str) -> str:
        """Return what a guarded tool printed; raise ``NoAnswerError`` with its words when it failed."""
        output, _, status = self.text(name).rpartition("\n")
        if status != "0":
            if status in ("124", "137", "143"):
                raise NoAnswerError("it did not answer in time")
            words = output.strip().partition("\n")[0][:EXCERPT]
            raise NoAnswerError(words or f"it ended with exit status {status[:3]}")
        return output

    def lines(self, name: str) -> Mapping[str, list[str]]:
        """Return the section's lines by the path that each has in front."""
        if name not in self._lines:
            self._lines[name] = by_path(self.body(name))
        return self._lines[name]

    def ending(self, name: str, end: str) -> Mapping[str, list[str]]:
        """Return the section's lines by path, of those paths that end so."""
        return {path: lines for path, lines in self.lines(name).items() if path.endswith(end)}

    def json_lines(self, text: str) -> Iterator[Any]:
        """Yield the JSON value of every line that is one."""
        for line in text.splitlines():
            if line[:1] in ("[", "{"):
                yield read_json(line)


def as_text(body: bytes) -> str:
    """Return bytes of a host as text that can be printed and stored."""
    return body.decode("utf-8", "backslashreplace")


def by_path(body: bytes) -> dict[str, list[str]]:
    """Return lines of ``grep -H`` by their path (PCI addresses are the one kind of path with colons)."""
    lines: dict[str, list[str]] = {}
    before: str | None = None
    file: list[str] = []
    for whole in as_text(body).split("\n"):
        path, colon, line = whole.partition(":")
        if not colon:
            continue
        if path != before:  # line after line of one file, mostly
            before = path
            if path.startswith(_OF_PCI):
                before = None
                pci = _PCI.fullmatch(whole)
                path, line = pci.groups() if pci else (path, line)
            file = lines.setdefault(path, [])
        file.append(line)
    lines.pop("", None)
    return lines


def first_line(lines: Mapping[str, list[str]], path: str) -> str:
    """Return the first line of a file among ``lines`` by path, "" where there is none."""
    text = lines.get(path)
    return text[0].strip() if text else ""


def fact(reader: Callable[[], T]) -> T | Unknown:
    """Return what ``reader`` returns, or ``Unknown`` with the reason when the section cannot answer."""
    try:
        return reader()
    except NoAnswerError as error:
        return Unknown(reason=str(error))
    except Exception as error:  # whatever a host prints must cost no more than the fact itself
        return Unknown(reason=f"what the host printed cannot be read: {str(error)[:EXCERPT]}")


def read_sections(host: str, stdout: str, nonce: str) -> Sections:
    """Take a probe's output apart.

    Args:
        host: the host's name, for the message.
        stdout: what the host printed, greetings and warnings around it included.
        nonce: the mark of this run.

    Returns:
        The complete sections; one that was cut off is not among them.

    Raises:
        ProbeError: there is not one complete section of this run.
    """
    body, complete = _decode(stdout, nonce)
    by_name: dict[str, Section] = {}
    name, content, began = b"", b"", 0.0
    # Only a line of its own is a mark; the first mark has nothing before it.
    for piece in _pieces(body, b"\n@" + nonce.encode() + b" "):
        head, _, rest = piece.partition(b"\n")
        match = _MARK.fullmatch(head)
        if match is None:
            continue
        kind, section, uptime, status, detail = match.groups()
        if kind == b"begin":
            name, content, began = section, rest, float(uptime)
        elif section == name and status is not None:
            by_name.setdefault(
                name.decode(),
                Section(content, status.decode(), as_text(detail)[:EXCERPT], began, float(uptime)),
            )
            name = b""
    if not by_name:
        excerpt = stdout.strip()[:EXCERPT]
        raise ProbeError(
            f"{host}: the probe gave no answer that can be read"
            + (f"; the host printed: {excerpt!r}" if excerpt else ", the host printed nothing"),
            next_step=f"Log in to {host} by hand and see that `sh` and `grep` work for this user, and that no"
            " start-up file (~/.bashrc, ~/.zshenv, ~/.ssh/rc) reads standard input or becomes a program. Which"
            f" line of ~/.bashrc, on its console as that user: {TRACE_START_UP}",
        )
    return Sections(by_name, complete=complete)


def _pieces(body: bytes, mark: bytes) -> Iterator[bytes]:
    """Yield what follows each mark, up to the next; a mark is at the start of a line."""
    at = len(mark) - 1 if body.startswith(mark[1:]) else body.find(mark) + len(mark)
    for _ in range(2 * MOST_SECTIONS):
        if at < len(mark) - 1:
            return
        end = body.find(mark, at)
        yield body[at:] if end < 0 else body[at:end]
        at = -1 if end < 0 else end + len(mark)


def _decode(stdout: str, nonce: str) -> tuple[bytes, bool]:
    """Return the bytes between the outer marks, as far as they came, and whether the last mark is there."""
    block = read_block(stdout, nonce, "remedy-probe", ("gzip", "base64", "hex"))
    if block is None:
        return b"", False
    if block.kind == "hex":
        packed = block.text.translate(_BLANKS)
        digits = _HEX.match(packed)
        return binascii.unhexlify(packed[: digits.end() & ~1] if digits else ""), block.complete
    data = _whole(block.text.replace("\n", ""))
    if data is None:
        data = _as_far_as_whole(block.text.translate(_BLANKS))
    return _unpacked(data) if block.kind == "gzip" else data, block.complete


def _whole(packed: str) -> bytes | None:
    """Return what base64 stands for that nothing else is in; None where something is."""
    pads = len(packed) - len(packed.rstrip("="))
    if len(packed) % 4 or packed.count("=") != pads or pads > 2:
        return None
    try:
        data = binascii.a2b_base64(packed)
    except ValueError:
        return None
    # What is no letter of base64 is passed over: then fewer bytes come out.
    return data if len(data) == len(packed) // 4 * 3 - pads else None


def _as_far_as_whole(packed: str) -> bytes:
    """Return what base64 stands for, up to the first letter that is none of it."""
    letters = _BASE64.match(packed)
    length = letters.end() if letters else 0
    padded = packed[length : length + 2].startswith("=" * (-length % 4)) and length % 4 > 1
    return binascii.a2b_base64(packed[: length + -length % 4] if padded else packed[: length & ~3])


def _unpacked(data: bytes) -> bytes:
    """Return what gzip packed, as far as it came whole, and never more than a probe can say."""
    try:
        return zlib.decompressobj(wbits=_GZIP).decompress(data, MOST)
    except zlib.error:
        return _as_far_as_unpacked(data)


def _as_far_as_unpacked(data: bytes) -> bytes:
    """Return what comes before the damage."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    out, room = [], MOST
    for start in range(0, len(data), CHUNK):
        try:
            out.append(unpacker.decompress(data[start : start + CHUNK], room))
        except zlib.error:
            break
        room -= len(out[-1])
        if room <= 0 or unpacker.unconsumed_tail:
            break
    return b"".join(out)


def _reason(section: Section) -> str:
    if section.status == "late":
        return "the probe's time was up before it came to this"
    if section.status == "timeout":
        return section.detail or "it did not answer in time"
    return section.detail or f"it ended with exit status {section.status.rpartition(':')[2]}"
