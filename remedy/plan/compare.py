"""Comparing what hosts of a fleet have, for findings that belong to no single host."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.text import fold


def groups(values: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each value with the hosts that have it, the most common first; equally common ones by value.

    Args:
        values: what each host has.
    """
    by_value: dict[str, list[str]] = {}
    for host, value in values.items():
        by_value.setdefault(value, []).append(host)
    ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple((value, tuple(hosts)) for value, hosts in ordered)


def differences(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each value, such as ``mtu 9000: gpu[01-03]``; nothing when all hosts agree.

    Args:
        values: what each host has; hosts that are not to be compared are left out.
    """
    grouped = groups(values)
    if len(grouped) < 2:
        return ()
    return tuple(f"{value}: {fold(hosts)}" for value, hosts in grouped)
