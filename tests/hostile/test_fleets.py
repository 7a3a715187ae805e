"""Hosts that say much: what all hosts are judged by together costs what the answers' length costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from remedy.deploys._ipv6 import ipv6_peers
from remedy.plan import FindingKind, Fleet, identities
from remedy.plan.registry import remedies
from remedy.plan.splice import MOST_PAIRS, cuts
from remedy.probe import Address, HostState, Interface, Names, Network, Sysctls
from remedy.probe.accelerators import RdmaPort
from remedy.probe.network import MOST_ADDRESSES
from remedy.probe.session import MOST_VARIABLES
from remedy.probe.software import Package, Software
from remedy.values import Unknown
from remedy.verify.reach.plan import kernel_ports
from tests.unit import build
from tests.unit.build import host_state, record
from tests.unit.plans import plan_of
from tests.unit.probe_data import parse, recorded, replaced

# Four times as much takes four times as long, or sixteen where all pairs are tried.
MOST = 10
# Below it the clock says little, and nobody waits for it.
NOTICEABLE = 0.05
FEW = 1_000

EMPTY: Interface = record(Interface)


def _address(number: int) -> str:
    """Return an address in a network where the third host has none."""
    return f"10.{128 + (number >> 8)}.{number & 255}.1"


def _beside(update: dict[str, Any]) -> dict[str, Any]:
    """Return what another host says: of each network the next address."""
    network = update.get("network")
    if not isinstance(network, Network):
        return update
    interfaces = (
        interface.model_copy(
            update={
                "addresses": tuple(
                    a.model_copy(update={"address": a.address[:-1] + "2"})
                    for a in interface.addresses
                )
            }
        )
        for interface in network.interfaces
    )
    return {"network": network.model_copy(update={"interfaces": tuple(interfaces)})}


def _interface(name: str, numbers: range) -> Interface:
    addresses = (Address(address=_address(n), prefix=30, scope="global") for n in numbers)
    return EMPTY.model_copy(update={"name": name, "addresses": tuple(addresses)})


def _addresses(many: int) -> dict[str, Any]:
    return {"network": record(Network, interfaces=(_interface("eth0", range(many)),))}


def _interfaces(many: int) -> dict[str, Any]:
    interfaces = tuple(_interface(f"eth{n}", range(n, n + 1)) for n in range(many))
    return {"network": record(Network, interfaces=interfaces)}


def _variables(many: int) -> dict[str, Any]:
    return {"environment": {f"NCCL_{n}": "1" for n in range(many)}}


def _answers(many: int) -> dict[str, Any]:
    peers = {"gpu01": tuple(f"2001:db8::{n:x}" for n in range(1, many))}
    return {"names": record(Names, peers=peers)}


def _packages(many: int) -> dict[str, Any]:
    packages = tuple(Package("nvidia-nccl-cu12", "2.1", f"/p{n}") for n in range(many))
    return {"software": record(Software, packages=packages)}


def _ports(many: int) -> dict[str, Any]:
    ports = (_port(f"mlx5_{n}", "InfiniBand" if n % 2 else "Ethernet") for n in range(many))
    return {"rdma": tuple(ports)}


def _port(device: str, layer: str) -> RdmaPort:
    known: dict[str, Any] = {"device": device, "port": 1, "state": "ACTIVE", "link_layer": layer}
    rest: dict[str, Any] = {name: "" for name in RdmaPort._fields if name not in known}
    return RdmaPort(**{**rest, **known, "rate": 100.0})


HOSTILE: dict[str, Callable[[int], dict[str, Any]]] = {
    "addresses": _addresses,
    "interfaces": _interfaces,
    "variables": _variables,
    "answers to a name": _answers,
    "packages": _packages,
    "ports": _ports,
}


def _fleet(update: dict[str, Any]) -> Fleet:
    """Return a fleet in which two of three hosts say as much."""
    states = [host_state(f"gpu0{n}", f"10.0.0.{n}") for n in (1, 2, 3)]
    fleet = build.fleet(*states)
    updates = zip(states, (update, _beside(update)), strict=False)
    hostile = {state.host: state.model_copy(update=update) for state, update in updates}
    return Fleet(fleet.inventory, {**fleet.states, **hostile}, fleet.spec)


def _seconds(update: dict[str, Any]) -> float:
    """Return the work of everything that is decided about the hosts together."""
    least = float("inf")
    for _ in range(2):
        fleet = _fleet(update)
        before = time.thread_time()
        assert fleet.addresses
        identities.claims(fleet)
        ipv6_peers(fleet)
        for remedy in remedies():
            remedy.assess_fleet(fleet, fleet.spec.section(remedy.name, remedy.settings))
        least = min(least, time.thread_time() - before)
    return least


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_decided_about_all_hosts_costs_what_their_answers_length_costs(kind: str) -> None:
    few, many = HOSTILE[kind](FEW), HOSTILE[kind](4 * FEW)
    most = max(MOST * _seconds(few), NOTICEABLE)
    assert any(_seconds(many) < most for _ in range(3))


def test_a_comparison_that_takes_too_much_is_a_finding_and_the_others_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    hostname = next(remedy for remedy in remedies() if remedy.name == "hostname")
    monkeypatch.setattr(hostname, "_decide_fleet", endless)
    monkeypatch.setattr("remedy.plan.planner.SECONDS", 0.2)
    plan = plan_of(_fleet({}))
    (unknown,) = (f for f in plan.findings if f.remedy == "hostname" and f.host is None)
    assert unknown.kind is FindingKind.UNKNOWN
    assert "takes more than 0.2 s" in unknown.evidence[0]


@pytest.mark.parametrize("value", ["0-99999999999999999999", "1-x", "9" * 5000, "-", "5-1"])
def test_reserved_ports_that_are_none_are_passed_over(value: str) -> None:
    live = {
        "net.ipv4.ip_local_reserved_ports": f"{value},8080",
        "net.ipv4.ip_local_port_range": value.replace("-", " "),
    }
    state = host_state("gpu01", "10.0.0.1").model_copy(
        update={"sysctls": Sysctls(live=live, persisted=(), unread=())}
    )
    between, taken = kernel_ports(state)
    assert (between, taken) == ((32768, 60999), {8080})
    assert plan_of(_fleet({"sysctls": state.sysctls}))


def test_a_file_that_repeats_a_line_is_changed_as_one_splice() -> None:
    times = int(MOST_PAIRS**0.5) + 1
    before = b"first\n" + b"10.0.0.9 x\n" * times + b"last\n"
    after = b"FIRST\n" + b"10.0.0.9 x\n" * times + b"LAST\n"
    assert cuts(before, after) == [(0, before, after)]
    few = slice(0, 200)
    assert cuts(before[few], after[few]) == [(0, b"first\n", b"FIRST\n")]


def _parsed(name: str, body: str) -> HostState:
    return parse(replaced(recorded("lab-idle"), name, body))


def test_more_addresses_than_hosts_have_are_not_read() -> None:
    interface = {
        "ifname": "eth0",
        "ifindex": 1,
        "mtu": 1500,
        "addr_info": [{"local": "10.0.0.1", "prefixlen": 24}] * (MOST_ADDRESSES + 1),
    }
    network = _parsed("ip", f"{json.dumps([interface])}\n[]\n[]\n0").network
    assert isinstance(network, Unknown)
    assert network.reason == "it has more than 20,000 addresses"


def test_more_variables_than_sessions_have_are_not_read() -> None:
    state = _parsed("environment", "A=1\n" * (MOST_VARIABLES + 1))
    assert isinstance(state.environment, Unknown)
    assert state.environment.reason == "it has more than 4,000 lines"


def test_a_number_that_no_program_reads_costs_the_finding_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hostname = next(remedy for remedy in remedies() if remedy.name == "hostname")
    monkeypatch.setattr(hostname, "_decide", lambda _: int("9" * 5000))
    plan = plan_of(_fleet({}))
    findings = [f for f in plan.findings if f.remedy == "hostname" and f.host]
    assert {(f.host, f.kind) for f in findings} == {
        (f"gpu0{n}", FindingKind.UNKNOWN) for n in (1, 2, 3)
    }
    assert all("cannot be read" in f.title for f in findings)
    assert plan.changes, "the other remedies decide"
