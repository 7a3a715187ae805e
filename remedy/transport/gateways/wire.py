"""What remedy and its relay tell each other: requests as lines of JSON, events as a line and bytes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

LONGEST_HEADER = 4 << 20
"""Bytes of the line of an event; it may name ten thousand hosts."""


@dataclass(frozen=True)
class TreeSettings:
    """What a relay has to know before its first request.

    Args:
        topology: the text of a topology file.
        root: what the controller is called in it.
        doors: by gateway, the words of ssh that lead there.
        user: of the hosts, None for whoever the gateways' ssh takes.
        port: of the hosts.
        python: the interpreter on gateways.
        connect: seconds for a connection.
        setup: seconds for a gateway to be ready.
        silence: seconds after which a connection without a sign of life is given up.
        memory: bytes that the relay may take.
        inner: the addresses of gateways that stand behind others.
    """

    topology: str
    root: str
    doors: Mapping[str, Sequence[str]]
    user: str | None = None
    port: int = 22
    python: str = "python3"
    connect: float = 10
    setup: float = 60
    silence: float = 30
    memory: int = 4 << 30
    inner: Sequence[str] = ()


@dataclass(frozen=True)
class TreeRequest:
    """One command with one input on some hosts.

    Args:
        id: of the request.
        hosts: by their addresses in the tree.
        line: the command line.
        text: what it reads.
        seconds: after which a gateway ends it on a host.
        fanout: hosts that a gateway runs it on at once.
        grooming: seconds for which a gateway gathers output.
    """

    id: int
    hosts: tuple[str, ...]
    line: str
    text: str = field(repr=False)
    seconds: float
    fanout: int
    grooming: float


@dataclass(frozen=True)
class TreeEvent:
    """Something that a relay says.

    Args:
        kind: ``route``, ``out``, ``err``, ``end``, ``late``, ``lost``, ``gateway`` or ``over``.
        request: its id; 0 for what concerns all.
        hosts: that it is about.
        gateway: that it came through, or that it is about.
        code: how a script ended.
        text: why something was given up.
        content: what was printed.
    """

    kind: str
    request: int = 0
    hosts: tuple[str, ...] = ()
    gateway: str = ""
    code: int = 0
    text: str = ""
    content: bytes = b""


def pack_settings(settings: TreeSettings) -> bytes:
    """Return the first line for a relay."""
    return json.dumps(asdict(settings)).encode() + b"\n"


def unpack_settings(line: bytes) -> TreeSettings:
    """Return what the first line says."""
    return TreeSettings(**json.loads(line))


def pack_request(request: TreeRequest) -> bytes:
    """Return the line of a request."""
    return json.dumps(asdict(request)).encode() + b"\n"


def pack_stop(request: int) -> bytes:
    """Return the line that ends a request."""
    return json.dumps({"stop": request}).encode() + b"\n"


def unpack_line(line: bytes) -> TreeRequest | int:
    """Return a request, or the id of the one that is to end."""
    value: dict[str, Any] = json.loads(line)
    if "stop" in value:
        return int(value["stop"])
    return TreeRequest(**{**value, "hosts": tuple(value["hosts"])})


def pack_event(event: TreeEvent) -> bytes:
    """Return an event as it travels."""
    head = [
        *(event.kind, event.request, list(event.hosts), event.gateway, event.code, event.text),
        len(event.content),
    ]
    return json.dumps(head).encode() + b"\n" + event.content


class EventReader:
    """Puts the events of a relay together from what comes."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._head: list[Any] | None = None

    def feed(self, chunk: bytes) -> Iterator[TreeEvent]:
        """Take what came, and yield the events that are complete.

        Raises:
            ValueError: it is none of a relay.
        """
        self._bytes += chunk
        at = 0
        while True:
            if self._head is None:
                end = self._bytes.find(b"\n", at)
                if end < 0:
                    break
                self._head = json.loads(self._bytes[at:end])
                at = end + 1
            size = self._head[6]
            if len(self._bytes) - at < size:
                break
            kind, request, hosts, gateway, code, text, _ = self._head
            content = bytes(self._bytes[at : at + size])
            at += size
            self._head = None
            yield TreeEvent(kind, request, tuple(hosts), gateway, code, text, content)
        del self._bytes[:at]
        if self._head is None and len(self._bytes) > LONGEST_HEADER:
            raise ValueError("no event of a relay")
