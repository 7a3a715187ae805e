"""Packets that must not be cut: an echo request with DF set, as large as the way out of this host takes.

Travels in the text of a script with ``knock``: standard library only, Python >= 3.8. TCP agrees on the
smaller MTU of its two ends and hides one that differs, RDMA does not; and what is in between reports nothing.
This is what ``ping -M do -s $((MTU-28))`` shows (ping(8)), sent over sockets of its own, because ping is not
everywhere.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from typing import Any

# Not in Python's socket module before 3.14 (linux/in.h).
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_MTU = 10, 3, 14
SMALL = 84  # bytes of the whole packet: what ping sends by default, which every way takes
LARGEST = 65_535  # bytes that an IP packet can have; the loopback's MTU is larger
HEADERS = 28  # bytes of the IP and ICMP headers (RFC 791, RFC 792)
TRIES, PATIENCE = 3, 0.7  # how often, and seconds each; a lost packet is no small MTU
MOST_READ = 1_000  # packets that are read a try: others' echo replies come to a raw socket, too
# How many peers each host asks: a wrong MTU sits on a host or on the port of its switch, and shows to each.
PEERS = 8
ECHO = struct.Struct("!BBHHH")


def packet(number: int, size: int, identity: int) -> bytes:
    """Make an echo request whose IP packet is ``size`` bytes long (RFC 792).

    Args:
        number: its sequence number.
        size: bytes, headers and all.
        identity: the identifier; the kernel puts its own there unless the socket is a raw one.
    """
    sum_of_words = 0x0800 + identity + number  # of all others, which are zero
    check = ~(sum_of_words + (sum_of_words >> 16)) & 0xFFFF
    return ECHO.pack(8, 0, check, identity, number) + bytes(size - HEADERS)


def answered(data: bytes, raw: bool, identity: int) -> int | None:
    """Read the sequence number of an echo reply to us; None for everything else.

    Args:
        data: what came; from a raw socket with its IP header.
        raw: whether it came from a raw socket.
        identity: the identifier.
    """
    if raw:
        data = data[(data[0] & 15) * 4 :] if data else b""
    if len(data) < ECHO.size:
        return None
    kind, _, _, came, number = ECHO.unpack(data[: ECHO.size])
    return number if kind == 0 and (not raw or came == identity) else None


def way_out(address: str, local: str) -> int:
    """Return the MTU of the interface by which packets to an address leave, in bytes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((local, 0))
        sock.connect((address, 9))
        return min(sock.getsockopt(socket.IPPROTO_IP, IP_MTU), LARGEST)


def ask(local: str, peers: dict[int, str], end: float) -> dict[str, Any]:
    """Send each peer a small packet and the largest that leaves this host whole.

    Args:
        local: this host's IPv4 address.
        peers: IPv4 addresses, by number.
        end: when to stop, on the monotonic clock.

    Returns:
        ``narrow``: peers whom only small packets reach, each with the size in bytes; ``mute``: those who
        answered none; ``reason``: why nobody was asked, "" where they were.
    """
    if ":" in local:
        return {"narrow": [], "mute": [], "reason": "asked over IPv4 only"}
    raw = False
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except OSError:
        try:
            sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            raw = True
        except OSError as error:
            return {"narrow": [], "mute": [], "reason": f"no echo request may be sent: {error}"}
    with sock:
        try:
            return _asked(sock, raw, local, peers, end)
        except OSError as error:
            return {"narrow": [], "mute": [], "reason": f"no echo request could be sent: {error}"}


def _asked(sock: Any, raw: bool, local: str, peers: dict[int, str], end: float) -> dict[str, Any]:
    identity = os.getpid() & 0xFFFF
    sock.bind((local, 0))
    sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    sizes = {number: way_out(address, local) for number, address in peers.items()}
    # Sequence numbers: two for each peer, the small packet and the large one.
    numbers = {2 * at + large: (n, large) for at, n in enumerate(peers) for large in (0, 1)}
    missing = dict(numbers)
    for _ in range(TRIES):
        for sequence, (number, large) in missing.items():
            size = sizes[number] if large else SMALL
            # What this host itself refuses to send is as lost as what is dropped on the way.
            with contextlib.suppress(OSError):
                sock.sendto(packet(sequence, size, identity), (peers[number], 0))
        until = min(time.monotonic() + PATIENCE, end)
        # What came in time is read to its end, also by a program that got no processor meanwhile.
        for _ in range(MOST_READ):
            wait = max(0.0, until - time.monotonic())
            if not (missing and select.select([sock], [], [], wait)[0]):
                break
            reply = answered(sock.recv(65536), raw, identity)
            if reply is not None:
                missing.pop(reply, None)
        if not missing or time.monotonic() >= end:
            break
    unanswered: dict[int, set[int]] = {number: set() for number in peers}
    for number, large in missing.values():
        unanswered[number].add(large)
    return {
        "narrow": [[number, sizes[number]] for number in peers if unanswered[number] == {1}],
        "mute": [number for number in peers if 0 in unanswered[number]],
        "reason": "",
    }
