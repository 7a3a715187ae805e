"""From what a host printed to the raw sections of the probe.

The frame is described at the top of ``host/frame.sh``. Nothing a host can print makes these functions raise
anything but ``NoAnswerError``, and ``ProbeError`` where there is no section at all.
"""

from __future__ import annotations

import binascii
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from remedy.answers import EXCERPT, read_block
from remedy.errors import ProbeError
from remedy.values import Unknown

T = TypeVar("T")

MOST = 256 * 1024 * 1024
"""Bytes that a probe's answer can have, unpacked; it reads files up to 4 MiB each."""

CHUNK = 1024
"""Bytes that are unpacked at a time: what one that is damaged costs."""

_MARK = re.compile(
    rb"(begin|end) ([a-z0-9-]+) ([0-9]+(?:\.[0-9]+)?)(?: ([a-z]+(?::[0-9]+)?) (.*))?", re.DOTALL
)
_LINE = re.compile(rb"(?:(/sys/bus/pci/devices/[^/\n]+/[^:\n]+)|([^:\n]+)):(.*)")


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
        found: the sections by name.
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
        if section.status in ("ok", "none"):
            return section.body
        raise NoAnswerError(_reason(section))

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

    def json_lines(self, text: str) -> Iterator[Any]:
        """Yield the JSON value of every line that is one."""
        for line in text.splitlines():
            if line[:1] in ("[", "{"):
                yield json.loads(line)


def as_text(body: bytes) -> str:
    """Return bytes of a host as text that can be printed and stored."""
    return body.decode("utf-8", "backslashreplace")


def by_path(body: bytes) -> dict[str, list[str]]:
    """Return lines of ``grep -H`` by their path (PCI addresses are the one kind of path with colons)."""
    lines: dict[str, list[str]] = {}
    for pci, path, line in _LINE.findall(body):
        lines.setdefault(as_text(pci or path), []).append(as_text(line))
    return lines


def first_line(lines: Mapping[str, list[str]], path: str) -> str:
    """Return the first line of a file among ``lines`` by path, "" where there is none."""
    text = lines.get(path)
    return text[0].strip() if text else ""


def fact(read: Callable[[], T]) -> T | Unknown:
    """Return what ``read`` returns, or ``Unknown`` with the reason when the section cannot answer."""
    try:
        return read()
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
    for piece in (b"\n" + body).split(b"\n@" + nonce.encode() + b" ")[1:]:
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
            " start-up file (~/.bashrc, ~/.zshenv, ~/.ssh/rc) reads standard input or becomes a program.",
        )
    return Sections(by_name, complete=complete)


def _decode(stdout: str, nonce: str) -> tuple[bytes, bool]:
    """Return the bytes between the outer marks, as far as they came, and whether the last mark is there."""
    block = read_block(stdout, nonce, "remedy-probe", ("gzip", "base64", "hex"))
    if block is None:
        return b"", False
    packed = "".join(block.text.split())
    if block.kind == "hex":
        digits = re.match(r"(?:[0-9a-f]{2})*", packed)
        return binascii.unhexlify(digits[0] if digits else ""), block.complete
    letters = re.match(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", packed)
    data = binascii.a2b_base64(letters[0] if letters else "")
    return _unpacked(data) if block.kind == "gzip" else data, block.complete


def _unpacked(data: bytes) -> bytes:
    """Return what gzip packed, as far as it came whole, and never more than a probe can say."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # the header of gzip (RFC 1952)
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
