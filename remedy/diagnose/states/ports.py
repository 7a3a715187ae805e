"""Ports without a link, or with a poor one, in what ``ibstat`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from remedy.diagnose.states.signs import BlockSign, Row

SLOWEST = 20.0  # Gb/s of InfiniBand: four lanes of SDR or DDR, or one of a faster kind

_PORT = re.compile(r"^\s*Port (\d{1,3}):$")
_CA = re.compile(r"^CA '([\w.-]{1,40})'$")
_VALUE = re.compile(r"^(?P<name>[^:]{1,80}?) *: *(?P<value>.{0,200})$")
_RATE = re.compile(r"\d{1,6}(?:\.\d{1,3})?")

# Physical states of a link that was there, and has errors now.
_BROKEN = ("LinkErrorRecovery", "PhyTest", "PortConfigurationTraining")


@dataclass
class _Port:
    """A port of an adapter, as ibstat shows it."""

    name: str
    line: int
    values: dict[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """Gb/s, None where it is not up or does not say."""
        rate = _RATE.fullmatch(self.values.get("Rate", ""))
        return float(rate[0]) if rate and self.values.get("State") == "Active" else None


def ports(rows: Sequence[Row]) -> Iterator[BlockSign]:
    """Yield what the text shows of ports without a link, or without a subnet manager.

    Args:
        rows: lines that may hold such a text.
    """
    ports = list(_read_ports(rows))
    active = any(port.values.get("State") == "Active" for port in ports)
    layers = {
        port.values.get("Link layer") for port in ports if port.values.get("State") == "Active"
    }
    for port in ports:
        state, physical = port.values.get("State", ""), port.values.get("Physical state", "")
        text = f"{port.name}: State: {state}, Physical state: {physical}"
        if state == "Initializing" and physical == "LinkUp":
            # The link is up, and nobody gave the port an address: there is no subnet manager.
            yield BlockSign(port.line, text, "ib-misconfig", 0.8, {"device": port.name})
        elif state == "Armed" and physical == "LinkUp":
            # Set up, and never made active: the subnet manager went away in between.
            yield BlockSign(port.line, text, "ib-misconfig", 0.75, {"device": port.name})
        elif physical in _BROKEN:
            yield BlockSign(port.line, text, "ib-link-fault", 0.85, {"device": port.name})
        elif state == "Down" and physical in ("Polling", "Disabled", "Sleep"):
            # Beside ports that work it may be one that nobody uses.
            yield BlockSign(
                port.line, text, "ib-link-fault", 0.5 if active else 0.85, {"device": port.name}
            )
        elif _is_at_its_slowest(port):
            text = f"{port.name}: Rate: {port.values['Rate']} Gb/s over InfiniBand"
            yield BlockSign(port.line, text, "ib-link-fault", 0.75, {"device": port.name})
    for port, fastest in _slower(ports):
        text = f"{port.name}: Rate: {port.values['Rate']}, another port of this host: {fastest:g}"
        yield BlockSign(port.line, text, "ib-link-fault", 0.5, {"device": port.name})
    if {"InfiniBand", "Ethernet"} <= layers:
        text = "ports of InfiniBand and of Ethernet are active on one host"
        yield BlockSign(ports[0].line, text, "ib-roce-mixed", 0.6, {"device": ports[0].name})


def _is_at_its_slowest(port: _Port) -> bool:
    """Return whether a link runs at a rate that any cable carries: adapters in use take 40 Gb/s and more."""
    is_infiniband = port.values.get("Link layer") == "InfiniBand"
    return is_infiniband and port.rate is not None and port.rate <= SLOWEST


def _slower(ports: list[_Port]) -> Iterator[tuple[_Port, float]]:
    """Yield ports that run at a lower rate than others of their kind of adapter, with the highest of those."""
    rates: dict[str, list[tuple[float, _Port]]] = {}
    for port in ports:
        if port.rate is not None:
            rates.setdefault(port.values.get("CA type", ""), []).append((port.rate, port))
    for alike in rates.values():
        fastest = max(rate for rate, _ in alike)
        yield from ((port, fastest) for rate, port in alike if rate < fastest)


def _read_ports(rows: Sequence[Row]) -> Iterator[_Port]:
    adapter, kind, port = "", "", None
    for number, line in rows:
        if match := _CA.match(line.strip()):
            adapter, kind, port = match[1], "", None
        elif match := _PORT.match(line.rstrip()):
            port = _Port(f"{adapter} port {match[1]}", number, {"CA type": kind})
            yield port
        elif port is not None and (value := _VALUE.match(line.strip())):
            port.values[value["name"].strip()] = value["value"].strip()
        elif port is None and line.strip().startswith("CA type:"):
            kind = line.partition(":")[2].strip()
