"""What is said of systemd's settings that keep jobs from peers."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from remedy.deploys._units import UnitLine
from remedy.deploys.unit_network import _addresses
from remedy.firewall import spans
from remedy.plan import Plan
from remedy.probe import (
    Address,
    HostState,
    Mention,
    Names,
    Network,
    Unit,
)
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys import units_bench
from tests.unit.deploys.units_bench import ETC, USR
from tests.unit.deploys.words_bench import Said, planned, said

DENY = "IPAddressDeny=any"
SLICE, SLURM = f"{ETC}/system.slice.d/x.conf", f"{ETC}/slurmd.service.d/x.conf"
USERS = f"{ETC}/user.slice.d/x.conf"


def plan(state: HostState, **settings: Any) -> Plan:
    others = (host_state("b", "10.0.0.2"), host_state("c", "10.0.0.3"))
    return planned("unit_network", state, *others, **settings)


def blocked(title: str, unit: str, *lines: str) -> Said:
    path, _, text = lines[0].partition(": ")
    path = path.rpartition(":")[0]
    return Said(
        "blocked", title, lines,
        f"Let the cluster through: systemctl edit {unit}; then systemctl daemon-reload. If it is right, "
        f'add to unit_network.accept in remedy.yaml: "{path}: {text}"',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([(SLURM, DENY)], blocked("systemd keeps slurmd.service from b,c", "slurmd.service",
         f"{SLURM}:1: {DENY}")),
        ([(SLICE, "IPAddressDeny=10.0.0.2 10.9.0.0/16"), (SLICE, "IPAddressDeny=10.0.0.3")], blocked(
            "systemd keeps containers and services from b,c", "system.slice",
            f"{SLICE}:1: IPAddressDeny=10.0.0.2 10.9.0.0/16", f"{SLICE}:2: IPAddressDeny=10.0.0.3",
        )),
        ([(SLICE, "IPAddressDeny=192.0.2.1"), (SLICE, "IPAddressDeny=10.0.0.3")], blocked(
            "systemd keeps containers and services from c", "system.slice",
            f"{SLICE}:2: IPAddressDeny=10.0.0.3",
        )),
        ([(USERS, DENY)], blocked("systemd keeps sessions of users from b,c", "user.slice",
         f"{USERS}:1: {DENY}")),
        ([(f"{USR}/user@.service.d/x.conf", DENY)], blocked(
            "systemd keeps services of users from b,c", "user@1000.service",
            f"{USR}/user@.service.d/x.conf:1: {DENY}",
        )),
        ([(SLURM, "RestrictNetworkInterfaces=lo ib0")], blocked(
            "systemd keeps slurmd.service from eth0", "slurmd.service",
            f"{SLURM}:1: RestrictNetworkInterfaces=lo ib0",
        )),
        ([(SLURM, "PrivateNetwork=no"), (SLURM, "PrivateNetwork=yes")], blocked(
            "systemd gives slurmd.service a network of its own, without the cluster's", "slurmd.service",
            f"{SLURM}:2: PrivateNetwork=yes",
        )),
        ([(SLURM, "RestrictAddressFamilies=AF_UNIX AF_INET6")], blocked(
            "systemd lets slurmd.service use no IPv4", "slurmd.service",
            f"{SLURM}:1: RestrictAddressFamilies=AF_UNIX AF_INET6",
        )),
        ([(SLURM, "RestrictAddressFamilies=~AF_INET")], blocked(
            "systemd lets slurmd.service use no IPv4", "slurmd.service",
            f"{SLURM}:1: RestrictAddressFamilies=~AF_INET",
        )),
    ],
)  # fmt: skip
def test_what_an_operator_reads(lines: list[tuple[str, str]], expected: Said) -> None:
    state = units_bench.host(*lines)
    assert said(plan(state)) == [expected]
    accepted = [f"{path}: {text}" for path, text in lines]
    assert said(plan(state, accept=accepted)) == []


@pytest.mark.parametrize(
    "key",
    ["IPIngressFilterPath", "IPEgressFilterPath", "SocketBindDeny", "NetworkNamespacePath"],
)
def test_what_cannot_be_known_is_told_once(key: str) -> None:
    state = units_bench.host((SLICE, f"{key}=x"))
    assert said(plan(state)) == [
        Said(
            "unknown", f"what {key} of system.slice lets through is not known", (f"{SLICE}:1: {key}=x",),
            "If it lets the cluster's hosts through, add to unit_network.accept in remedy.yaml: "
            f'"{SLICE}: {key}=x"',
        )
    ]  # fmt: skip
    assert said(plan(state, accept=[f"{SLICE}: {key}=x"])) == []


@pytest.mark.parametrize(
    ("value", "titles"),
    [
        ("any", True), ("0.0.0.0/0", True), ("10.0.0.2/24", True), ("::/0", False), ("localhost", False),
        ("link-local", False), ("multicast", False), ("nonsense 10.0.0.2", True), ("nonsense", False),
    ],
)  # fmt: skip
def test_words_and_networks_of_a_list(value: str, titles: bool) -> None:
    assert bool(said(plan(units_bench.host((SLURM, f"IPAddressDeny={value}"))))) is titles


@pytest.mark.parametrize(
    ("word", "address", "six"),
    [
        ("localhost", "127.0.0.9", "::1"), ("link-local", "169.254.7.7", "fe80::7"),
        ("multicast", "224.0.0.9", "ff02::1"), ("any", "203.0.113.9", "2001:db8::1"),
    ],
)  # fmt: skip
def test_words_stand_for_these_addresses(word: str, address: str, six: str) -> None:
    line = UnitLine(unit="x", key="IPAddressDeny", value=word, path="/x", number=1)
    for version, text in ((4, address), (6, six)):
        known = _addresses(line, version)
        assert spans.holds(known, int(ip_address(text)))
        assert spans.holds(known, int(ip_address("8.8.8.8" if version == 4 else "2600::1"))) is (
            word == "any"
        )


@pytest.mark.parametrize("value", ["0", "no", "off", "false", "No", "FALSE"])
def test_words_that_say_no(value: str) -> None:
    assert said(plan(units_bench.host((SLURM, f"PrivateNetwork={value}")))) == []


@pytest.mark.parametrize("name", ["slurmd", "kubelet", "containerd", "docker", "ssh", "sshd"])
def test_each_service_that_jobs_run_in(name: str) -> None:
    path = f"{ETC}/{name}.service.d/x.conf"
    state = units_bench.host((path, DENY))
    for load, number in (("loaded", 1), ("not-found", 0)):
        unit = Unit(name=f"{name}.service", load=load, active="active", enabled="enabled")
        found = said(plan(state.model_copy(update={"units": {unit.name: unit}})))
        assert [f.title for f in found] == [f"systemd keeps {name}.service from b,c"] * number
    unread = state.model_copy(update={"units": Unknown(reason="no systemctl")})
    assert said(plan(unread)) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{ETC}/user-1000.slice.d/x.conf", "sessions of users"),
        (f"{ETC}/user-2007.slice.d/x.conf", "sessions of users"),
        (f"{ETC}/user-2007.slice", "sessions of users"),
        (f"{ETC}/user@1000.service.d/x.conf", "services of users"),
        (f"{ETC}/session-1.scope.d/x.conf", "sessions of users"),
        (f"{ETC}/-.slice", "sessions of users"),
    ],
)
def test_a_user_stands_for_each(path: str, words: str) -> None:
    found = said(plan(units_bench.host((path, DENY))))
    assert [f.title for f in found] == [f"systemd keeps {words} from b,c"]


def test_an_accepted_line_is_no_reason_to_name_another() -> None:
    lines = ((SLURM, DENY), (SLICE, "IPAddressDeny=10.0.0.3"))
    found = said(plan(units_bench.host(*lines), accept=[f"{SLURM}: {DENY}"]))
    assert [f.evidence for f in found] == [(f"{SLICE}:2: IPAddressDeny=10.0.0.3",)]
    both = said(plan(units_bench.host(*lines)))
    assert [f.title for f in both] == [
        "systemd keeps containers and services from c",
        "systemd keeps slurmd.service from b,c",
    ]


def test_hosts_that_talk_over_ipv6_need_that_as_well() -> None:
    state = units_bench.host((SLURM, "IPAddressDeny=::/0"))
    other = host_state("b", "10.0.0.2")
    assert isinstance(other.network, Network)
    (link,) = other.network.interfaces
    six = Address(address="fd00::2", prefix=64, scope="global")
    links = (link.model_copy(update={"addresses": (*link.addresses, six)}),)
    other = other.model_copy(
        update={"network": other.network.model_copy(update={"interfaces": links})}
    )
    told = state.model_copy(update={"environment": {"NCCL_SOCKET_FAMILY": "AF_INET6"}})
    assert [f.title for f in said(planned("unit_network", told, other))] == [
        "systemd keeps slurmd.service from the cluster's hosts over IPv6"
    ]
    assert said(planned("unit_network", state, other)) == []
    named = state.model_copy(update={"names": record(Names, peers={"b": ("fd00::2", "10.0.0.2")})})
    assert (
        said(planned("unit_network", named, other)) == []
    )  # `hosts_file` has the name lead elsewhere


def test_nothing_is_said_where_nothing_is_known() -> None:
    state = units_bench.host((SLURM, DENY))
    assert said(plan(state.model_copy(update={"mentions": Unknown(reason="x")}))) == []
    assert said(planned("unit_network", state)) == []
    elsewhere = Mention(path="/root/slurmd.service.d/x.conf", line=1, text=DENY)
    assert said(plan(state.model_copy(update={"mentions": (elsewhere,)}))) == []
