"""Addresses as other programs write them: what is one, which are of no machine, and a name made of one."""

from __future__ import annotations

import ipaddress
import re

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The interface behind the % of a link-local address: linux/if.h has IFNAMSIZ 16.
_INTERFACE = re.compile(r"[A-Za-z0-9._-]{1,15}")
_DOTTED = re.compile(r"[0-9.]+")
# Numbers with dots between them, such as ``10.0.0.256`` and ``1.2.3``: no host has such a name (RFC 1123, 2.1).
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_HERE = re.compile(r"localhost([46]?|\.localdomain[46]?)|ip6-(localhost|loopback)")


def address_of(text: str) -> Address | None:
    """Return the address that a text is, also one in brackets; None where it is none."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if ":" not in text and _DOTTED.fullmatch(text) is None:
        return None  # as nearly all names, for which an error is dear
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    interface = getattr(address, "scope_id", None)
    return address if interface is None or _INTERFACE.fullmatch(interface) else None


def is_like_one(text: str) -> bool:
    """Say whether a text has nothing but numbers and dots, so that it can be no name, and is no address."""
    return _NUMBERS.fullmatch(text) is not None and address_of(text) is None


def is_here(text: str) -> bool:
    """Say whether a name or an address is that of whichever machine reads it."""
    address = address_of(text)
    return _HERE.fullmatch(text.lower()) is not None or (
        address is not None and address.is_loopback
    )


def is_of_no_machine(address: Address) -> bool:
    """Say whether an address is no machine's: 0.0.0.0, one of multicast or broadcast."""
    return address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255"


def lacks_interface(address: Address) -> bool:
    """Say whether no connection to an address can be made without the interface behind it (RFC 4007)."""
    return isinstance(address, ipaddress.IPv6Address) and (
        address.is_link_local and address.scope_id is None
    )


def named_after(address: Address) -> str:
    """Return a name for a machine of which only the address is known."""
    interface = getattr(address, "scope_id", None)
    # Python 3.11 cannot write the long form of an address with an interface.
    plain = ipaddress.ip_address(str(address).partition("%")[0])
    words = [plain.exploded, *([interface.lower()] if interface else [])]
    return "-".join(["node", *(re.sub(r"[^0-9a-z]+", "-", word).strip("-") for word in words)])
