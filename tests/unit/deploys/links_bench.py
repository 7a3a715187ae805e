"""Facts of networks, as reports compare them."""

from __future__ import annotations

from typing import Any

from remedy.probe import Address, Interface, Network
from tests.unit.build import record


def interface(
    name: str,
    address: str,
    *,
    mtu: int = 1500,
    speed: int | None = None,
    prefix: int = 24,
    **further: Any,
) -> Interface:
    own = Address(address=address, prefix=prefix, scope="global")
    facts = {"name": name, "mtu": mtu, "speed": speed, "addresses": (own,), **further}
    found: Interface = record(Interface, **facts)
    return found


def network(*interfaces: Interface) -> dict[str, Any]:
    return {"network": record(Network, interfaces=interfaces)}
