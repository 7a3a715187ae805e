"""Where torch's store really connected to: the line for a single address may name one that nobody has.

c10d prints an address that it tried from memory that it has given back; its last line has host and port as the
launcher gave them (torch/csrc/distributed/c10d/socket.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from remedy.diagnose.scanner.log_scan import Event

_MARK = "[c10d]"
_TARGET = re.compile(r"any network address of \((?P<host>[\w.:-]{1,253}), (?P<port>\d{1,5})\)")


def with_targets(events: Iterable[Event]) -> list[Event]:
    """Return the events; those of c10d that name an address at another port than was meant name what was meant.

    Args:
        events: of all logs.
    """
    events = list(events)
    targets: dict[str, re.Match[str]] = {}
    ports: dict[str, set[str]] = {}
    for event in events:
        if _MARK in event.text and (target := _TARGET.search(event.text)):
            targets.setdefault(event.source, target)
            ports.setdefault(event.source, set()).add(target["port"])
    return [
        replace(event, details=_meant(event.details, target))
        if _MARK in event.text
        and (target := targets.get(event.source))
        and not any(port in event.text for port in ports[event.source])
        else event
        for event in events
    ]


def _meant(details: Mapping[str, str], target: re.Match[str]) -> dict[str, str]:
    others = {name: value for name, value in details.items() if name != "host"}
    return {**others, "address": target["host"], "port": target["port"]}
