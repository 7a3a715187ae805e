"""Ports that gloo prints with their bytes swapped, put right."""

from __future__ import annotations

import re

_GLOO_PORT = re.compile(r"(?P<before>(?:remote|local|peer)[= ]\[[^\]]+\]:)(?P<port>\d{1,5})")


def unswapped(text: str, details: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Correct the ports that gloo prints without ntohs (gloo/transport/tcp/address.cc)."""

    def corrected(match: re.Match[str]) -> str:
        return f"{match['before']}{swapped(int(match['port']))}"

    if "gloo" not in text.lower():
        return text, details
    new = _GLOO_PORT.sub(corrected, text)
    if new != text and details.get("port"):
        details = {**details, "port": str(swapped(int(details["port"])))}
    return new, details


def swapped(port: int) -> int:
    """Return a port with its two bytes swapped."""
    return (port & 0xFF) << 8 | port >> 8 if port < 65536 else port
