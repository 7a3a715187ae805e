"""The systemd services that matter here: loaded, active, started at boot, and their limits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from remedy.probe.frames import Sections
from remedy.probe.session import UNLIMITED
from remedy.text import is_number
from remedy.values import Record, shared

_LIMIT = re.compile(r"(/proc/\d+/limits):Max (locked memory|open files) +\w+ +(\w+)")


class Unit(Record):
    """A systemd service (systemctl(1)).

    ``load`` is "loaded", "masked" or "not-found"; ``active`` "active" or "inactive", a one-shot service such as
    ufw's being active after it has run; ``enabled`` is what happens at the next boot: "enabled", "static"
    (always), "disabled" or "masked". ``memlock`` (bytes) and ``nofile`` are the hard limits that its process
    runs with and hands on, ``None`` where they were not read.
    """

    name: str
    load: str
    active: str
    enabled: str
    memlock: int | None = None
    nofile: int | None = None

    @property
    def running(self) -> bool:
        """Return whether it is active now."""
        return self.active == "active"


_unit = shared(Unit)


def parse_units(sections: Sections) -> Mapping[str, Unit]:
    """Read section ``units``: a line a service, a line a link that starts one at boot, limits.

    A service that is only another name for one of the others is left out.
    """
    rows: list[list[str]] = []
    enabled: dict[str, str] = {}
    limits: dict[str, dict[str, str]] = {}
    mains: dict[str, dict[str, str]] = {}
    for line in sections.text("units").splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == "unit":
            rows.append(words[1:])
        elif len(words) == 2 and words[0] == "wanted":
            name = words[1].rpartition("/")[2]
            if enabled.get(name) != "enabled":
                enabled[name] = "static" if words[1].startswith("/usr/lib/") else "enabled"
        elif len(words) == 3 and words[0] == "main":
            mains[f"/proc/{words[2]}/limits"] = limits.setdefault(words[1], {})
        elif match := _LIMIT.match(line):
            mains.get(match[1], {})[match[2]] = match[3]
    return {
        name: _unit(
            name=name,
            load=load,
            active=active,
            enabled="masked" if load == "masked" else enabled.get(name, "disabled"),
            memlock=_unit_limit(limits.get(name, {}).get("locked memory")),
            nofile=_unit_limit(limits.get(name, {}).get("open files")),
        )
        for name, load, active in rows
        if load != "alias"
    }


def _unit_limit(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if is_number(text) else UNLIMITED
