"""Which names hosts can have."""

from __future__ import annotations

import re

# RFC 1123, section 2.1: letters, digits and hyphens, no hyphen at an end of a label.
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
HOST_NAME_MAX = 64
"""The kernel keeps at most this many bytes of a host name: sethostname(2)."""


def is_legal_name(name: str) -> bool:
    """Say whether a machine can be called that."""
    return len(name) <= HOST_NAME_MAX and all(_LABEL.fullmatch(part) for part in name.split("."))
