"""Fleets of equal hosts, as their answers to the probe, for counting what grows with a fleet."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.swarm import RECORDED, Swarm
from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, section_models
from remedy.probe import HostState, ProbeRequest, parse_probe
from remedy.spec import load_spec

NONCE = "5" * 32
# The sizes that are compared. The endpoints of the swarm send of any number of names only those that differ.
FEW, MANY = 24, 96


@lru_cache(maxsize=8)
def states(count: int, broken: float = 0.0) -> dict[str, HostState]:
    """Return the states of so many hosts; a share of them has no peers in the hosts file."""
    swarm = swarm_of(count, broken)
    names = tuple(swarm.name(number) for number in range(count))
    request = ProbeRequest(names=names, nonce=NONCE)
    asked = f"\nnonce={NONCE}\n"
    return {
        name: parse_probe(name, swarm.answer(number, asked), request)
        for number, name in enumerate(names)
    }


def fleet(count: int, broken: float = 0.0) -> Fleet:
    """Return the fleet that these hosts are."""
    swarm = swarm_of(count, broken)
    nodes = tuple(
        Node(
            name=swarm.name(number),
            ssh_address=swarm.door(number),
            data={"cluster_address": swarm.address(number)},
        )
        for number in range(count)
    )
    inventory = Inventory(path=Path("inventory.py"), nodes=nodes)
    return Fleet(inventory, states(count, broken), load_spec(None, section_models()))


def swarm_of(count: int, broken: float) -> Swarm:
    """Return new endpoints, of which none was repaired."""
    text = RECORDED.read_text(encoding="utf-8", errors="surrogateescape")
    return Swarm(count, text, broken=broken)


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, and how often a generator goes on.

    No garbage is collected meanwhile: libraries have it reported to them (hypothesis times it), by calls.
    """
    number = 0

    def count(_frame: Any, event: str, _value: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return number
