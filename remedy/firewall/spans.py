"""Sets of numbers (ports, addresses of one family) as sorted ranges that do not touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network, summarize_address_range
from typing import TypeAlias

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""First and last number of each range."""

ALL_ADDRESSES: Spans = ((0, 2**32 - 1),)
ALL_IPV6_ADDRESSES: Spans = ((0, 2**128 - 1),)
ALL_PORTS: Spans = ((0, 65535),)
_LARGEST = 2**129


def merge(ranges: Iterable[tuple[int, int]]) -> Spans:
    """Return the numbers of all ``ranges``; neighbours become first range."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def meet(first: Spans, second: Spans) -> Spans:
    """Return the numbers that are in both; quick where one of them has few ranges."""
    few, many = (first, second) if len(first) <= len(second) else (second, first)
    if len(few) == 1 and few[0][0] <= many[0][0] and many[-1][1] <= few[0][1]:
        return many  # the peers of a host, mostly, and the network that all of them are in
    common: list[tuple[int, int]] = []
    for low, high in few:
        start = max(0, bisect_left(many, (low, 0)) - 1)
        inside = list(many[start : bisect_right(many, (high, _LARGEST))])
        if inside and inside[0][1] < low:
            del inside[0]
        if inside:
            inside[0] = (max(low, inside[0][0]), inside[0][1])
            inside[-1] = (inside[-1][0], min(high, inside[-1][1]))
            common += inside
    return tuple(common)


def holds(spans: Spans, number: int) -> bool:
    """Return whether a number is among them."""
    at = bisect_right(spans, (number, _LARGEST)) - 1
    return at >= 0 and spans[at][0] <= number <= spans[at][1]


def minus(first: Spans, second: Spans) -> Spans:
    """Return the numbers of ``first`` that are not in ``second``; quick where ``second`` has few ranges."""
    if first == second:
        return ()
    if len(second) > _FEW:
        return _without_many(first, second)
    for low, high in second:
        start = max(0, bisect_left(first, (low, 0)) - 1)
        end = bisect_right(first, (high, _LARGEST))
        pieces = []
        for before, after in first[start:end]:
            if before < low:
                pieces.append((before, min(after, low - 1)))
            if after > high:
                pieces.append((max(before, high + 1), after))
        first = (*first[:start], *pieces, *first[end:])
    return first


_FEW = 4


def _without_many(first: Spans, second: Spans) -> Spans:
    if not first:
        return ()
    holes = []
    start = first[0][0]
    for low, high in second:
        holes.append((start, low - 1))
        start = high + 1
    holes.append((start, first[-1][1]))
    return meet(first, tuple(hole for hole in holes if hole[0] <= hole[1]))


def only_in(sets: Sequence[Spans]) -> list[Spans]:
    """Return of each set the numbers that are in no other, in the time of sorting them all."""
    ends = sorted(
        (end, at)
        for at, ranges in enumerate(sets)
        for low, high in ranges
        for end in (low, high + 1)
    )
    parts: list[list[tuple[int, int]]] = [[] for _ in sets]
    inside: set[int] = set()
    begin = 0
    for number, at in ends:
        if len(inside) == 1 and begin < number:
            parts[min(inside)].append((begin, number - 1))
        inside ^= {at}
        begin = number
    return list(map(merge, parts))


def of_networks(networks: Iterable[str]) -> Spans:
    """Return the addresses of networks and single addresses in text, all of one family."""
    ranges = tuple(map(_span, networks))
    return merge(ranges) if len(ranges) > 1 else ranges


# The rules and routes of a fleet name the same networks, and each host's own is asked for many times.
@lru_cache(maxsize=1 << 13)
def _span(text: str) -> tuple[int, int]:
    if "/" not in text:
        number = int(ip_address(text))
        return number, number
    network = ip_network(text, strict=False)
    return int(network.network_address), int(network.broadcast_address)


@lru_cache(maxsize=64)
def networks(addresses: Spans) -> tuple[IPv4Network, ...]:
    """Return the fewest networks that hold exactly these addresses."""
    return tuple(
        network
        for low, high in addresses
        for network in summarize_address_range(IPv4Address(low), IPv4Address(high))
    )


def address_text(network: IPv4Network) -> str:
    """Return a network as firewalls write it: a single address without a prefix."""
    return str(network.network_address) if network.prefixlen == 32 else str(network)


def port_texts(ports: Spans, dash: str) -> tuple[str, ...]:
    """Return each range of ports as text, with ``dash`` between first and last."""
    return tuple(str(low) if low == high else f"{low}{dash}{high}" for low, high in ports)


@lru_cache(maxsize=64)
def address_ranges(addresses: Spans) -> tuple[str, ...]:
    """Return each range of addresses as text."""
    return tuple(
        str(IPv4Address(low)) if low == high else f"{IPv4Address(low)}-{IPv4Address(high)}"
        for low, high in addresses
    )
