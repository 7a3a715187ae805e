"""Reading containers.conf(5): a text setting of the ``[containers]`` table, without a TOML parser.

Python has one from 3.11 on only; what is read here is one line of one table.
"""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?")
_SETTING = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(?:\"([^\"\\]*)\"|'([^']*)'|(\d+))\s*(#.*)?")


def container_setting(content: bytes, name: str) -> str:
    """Return the value of ``name`` in the table ``containers``, "" where it is not set."""
    table, value = "", ""
    for line in content.decode("utf-8", "replace").splitlines():
        if match := _TABLE.fullmatch(line):
            table = match[1].strip()
        elif table == "containers" and (match := _SETTING.fullmatch(line)) and match[1] == name:
            value = match[2] or match[3] or match[4] or ""
    return value
