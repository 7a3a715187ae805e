"""The group of the stub: every rank has a connection to every other one, and sends all it has to all."""

from __future__ import annotations

import functools
import json
import operator
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .store import (
    DistStoreError,
    FileStore,
    PrefixStore,
    Store,
    TCPStore,
    connect,
    own_address,
)

PACE = 40e6  # bytes that two ranks swap in a second
__all__ = ["DistStoreError", "FileStore", "PrefixStore", "Store", "TCPStore"]


class ReduceOp:
    """How numbers are put together."""

    SUM = "sum"
    MAX = "max"


class ProcessGroup:
    """The connections of one rank; rank by rank, none to itself.

    Args:
        store: where the ranks find each other's ports.
        rank, world: this one, and how many there are.
        timeout: how long to wait for what others send.
    """

    def __init__(self, store: Store, rank: int, world: int, timeout: timedelta) -> None:
        self.rank, self.world, self.seconds = rank, world, timeout.total_seconds()
        self.links: dict[int, socket.socket] = {}
        with socket.create_server(("", 0)) as listener:
            listener.settimeout(self.seconds)
            place = [own_address(store), listener.getsockname()[1]]
            store.set(f"place/{rank}", json.dumps(place))
            for peer in range(rank):
                store.wait([f"place/{peer}"], timeout)
                host, port = json.loads(store.get(f"place/{peer}"))
                link = connect(host, port, timeout)
                link.sendall(struct.pack("!I", rank))
                self.links[peer] = link
            while len(self.links) < world - 1:
                link, _ = listener.accept()
                (peer,) = struct.unpack("!I", receive(link, 4, self.seconds))
                self.links[peer] = link

    def swap(self, outgoing: dict[int, bytes]) -> dict[int, bytes]:
        """Send to some ranks, and receive as much from each of them."""

        def send(peer: int, data: bytes) -> None:
            try:
                self.links[peer].sendall(data)
            except OSError:
                return  # what reads from it says so

        threads = [
            threading.Thread(target=send, args=item, daemon=True) for item in outgoing.items()
        ]
        for thread in threads:
            thread.start()
        answers = {
            peer: receive(self.links[peer], len(data), self.seconds)
            for peer, data in outgoing.items()
        }
        for thread in threads:
            thread.join()
        return answers

    def share(self, data: bytes) -> list[bytes]:
        """Gather what every rank has, in rank order; all of them give as much."""
        answers = self.swap({peer: data for peer in range(self.world) if peer != self.rank})
        return [data if peer == self.rank else answers[peer] for peer in range(self.world)]


def receive(link: socket.socket, count: int, seconds: float) -> bytes:
    """Receive so many bytes."""
    data = bytearray()
    while len(data) < count:
        if not select.select([link], [], [], seconds)[0]:
            raise RuntimeError(f"Timed out waiting {seconds:.0f}s for recv operation to complete")
        piece = link.recv(min(1 << 20, count - len(data)))
        if not piece:
            raise RuntimeError(f"Connection closed by peer [{link.getpeername()[0]}]")
        data += piece
    return bytes(data)


_groups: list[ProcessGroup] = []


def init_process_group(
    backend: str,  # noqa: ARG001  (there is one)
    store: Store,
    rank: int,
    world_size: int,
    timeout: timedelta,
) -> None:
    """Make the group."""
    _groups.append(ProcessGroup(store, rank, world_size, timeout))


def destroy_process_group() -> None:
    """Close all connections of the group."""
    for link in _groups.pop().links.values():
        link.close()


def get_world_size() -> int:
    """Count ranks."""
    return _groups[-1].world


def is_nccl_available() -> bool:
    """Say that there is no NCCL."""
    return False


def all_reduce(tensor: Any, op: str = ReduceOp.SUM) -> None:
    """Sum the numbers of all ranks, or take the largest."""
    join: Callable[[Any, Any], Any] = max if op == ReduceOp.MAX else operator.add
    numbers = tensor.numbers
    parts = []
    for data in _groups[-1].share(numbers.tobytes()):
        parts.append(numbers[:0])
        parts[-1].frombytes(data)
    # Number by number, and never a function of Python's own for each: that was most of a proof's processor.
    joined: Any = functools.reduce(lambda sofar, part: map(join, sofar, part), parts)
    numbers[:] = type(numbers)(numbers.typecode, joined)


def all_gather(parts: list[Any], tensor: Any) -> None:
    """Fill one tensor a rank with what that rank has."""
    for part, data in zip(parts, _groups[-1].share(tensor.numbers.tobytes())):  # noqa: B905  (Python 3.8)
        part.numbers[:] = part.numbers[:0]
        part.numbers.frombytes(data)


def monitored_barrier(timeout: timedelta, wait_all_ranks: bool) -> None:  # noqa: ARG001
    """Wait for all ranks."""
    _groups[-1].share(b"here")


class P2POp:
    """A sending or a receiving that is wanted."""

    def __init__(self, kind: Callable[..., None], tensor: Any, peer: int) -> None:
        self.kind, self.tensor, self.peer = kind, tensor, peer


def isend() -> None:
    """Stand for sending, in a ``P2POp``."""


def irecv() -> None:
    """Stand for receiving, in a ``P2POp``."""


class Request:
    """Something that was begun, and is done."""

    def wait(self) -> None:
        """Return."""


def batch_isend_irecv(operations: list[P2POp]) -> list[Request]:
    """Swap with one rank: what is received is thrown away, because nobody looks at it.

    It takes as long as over a link of its own pace: a quick one is tried many times, and that is all processor.
    """
    for operation in operations:
        if operation.kind is isend:
            until = time.monotonic() + operation.tensor.size() / PACE
            _groups[-1].swap({operation.peer: operation.tensor.numbers.tobytes()})
            time.sleep(max(0.0, until - time.monotonic()))
    return [Request()]
