"""Ports that gloo prints with their bytes swapped, put right."""

from __future__ import annotations

import re

_GLOO_PORT = re.compile(r"(?:remote|local|peer|connect)[= ]\[[^\]]+\]:(?P<port>\d{1,5})")


def unswapped(text: str, details: dict[str, str]) -> dict[str, str]:
    """Return what a line of gloo names with the port that is meant: gloo prints it without ntohs.

    The line itself stays as it is, so that it can be found (gloo/transport/tcp/address.cc).

    Args:
        text: the line.
        details: what was taken out of it.
    """
    port = details.get("port", "")
    if not port or "gloo" not in text.lower():
        return details
    if port not in {match["port"] for match in _GLOO_PORT.finditer(text)}:
        return details
    return {**details, "port": str(swapped(int(port)))}


def swapped(port: int) -> int:
    """Return a port with its two bytes swapped."""
    return (port & 0xFF) << 8 | port >> 8 if port < 65536 else port
