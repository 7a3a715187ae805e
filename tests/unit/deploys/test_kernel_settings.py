"""Settings of the kernel that leave jobs too little, now or after the next boot."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import HostState, Mention, Names, Sysctls, SysctlSetting
from tests.unit.build import host_state, record
from tests.unit.deploys.words_bench import Said, planned, said

RANGE, RESERVED = "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"
BASE, PROBING = "net.ipv4.tcp_base_mss", "net.ipv4.tcp_mtu_probing"
GROWS = "net.ipv4.tcp_moderate_rcvbuf"
PRIVILEGED = "net.ipv4.ip_unprivileged_port_start"
USUAL = {
    RANGE: "32768 60999",
    RESERVED: "",
    PRIVILEGED: "1024",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_base_mss": "1024",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_min_snd_mss": "48",
    "net.ipv4.tcp_notsent_lowat": "4294967295",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_retries2": "15",
    "net.ipv4.tcp_syn_retries": "6",
    "net.ipv4.ip_default_ttl": "64",
    "net.core.somaxconn": "4096",
    "net.core.netdev_max_backlog": "1000",
    "net.netfilter.nf_conntrack_max": "262144",
    "net.netfilter.nf_conntrack_count": "80",
    "fs.file-max": "9223372036854775807",
    "kernel.pid_max": "32768",
    "kernel.threads-max": "7641",
    "vm.max_map_count": "65530",
    "vm.overcommit_memory": "0",
}


def host(
    live: dict[str, str] | None = None,
    later: dict[str, str] | None = None,
    *,
    user: str = "",
    address: str = "10.0.0.1",
) -> HostState:
    lines = tuple(
        SysctlSetting(key=key, value=value, path="/etc/sysctl.d/9.conf", line=at)
        for at, (key, value) in enumerate((later or {}).items(), 1)
    )
    sysctls = Sysctls(live={**USUAL, **(live or {})}, persisted=lines, unread=())
    return host_state("a", address).model_copy(
        update={"sysctls": sysctls, "names": record(Names, user=user)}
    )


def of(state: HostState, **settings: Any) -> list[Said]:
    return said(planned("kernel_settings", state, host_state("b", "10.0.0.2"), **settings))


def test_the_usual_values_are_not_named() -> None:
    assert of(host()) == []
    assert of(host(later={RANGE: "1024 65535", RESERVED: "29500-29563"})) == []


@pytest.mark.parametrize(
    ("live", "kind", "title"),
    [
        ({RESERVED: "1024-29499,29501-65535"}, "blocked", "no port of this host can be given to new"),
        ({RESERVED: "32768-60990"}, "blocked", "9 ports of this host can be given to new connections"),
        ({RANGE: "40000 40000"}, "blocked", "1 port of this host can be given to new connections"),
        ({"net.netfilter.nf_conntrack_count": "262144"}, "blocked", "connections is full (262144 of 262144)"),
        ({"net.ipv4.tcp_rmem": "4096 4096 4096"}, "blocked", "TCP takes 4096 bytes at once"),
        ({"net.ipv4.tcp_wmem": "4096 4096 4608"}, "blocked", "TCP sends 4608 bytes at once"),
        ({BASE: "48", PROBING: "2"}, "blocked", "TCP begins with segments of 48 bytes"),
        ({BASE: "511", PROBING: "1"}, "report", "TCP falls back to segments of 511 bytes"),
        ({"net.ipv4.tcp_min_snd_mss": "1221"}, "blocked", "no segment shorter than 1221 bytes"),
        ({"net.ipv4.tcp_notsent_lowat": "0"}, "blocked", "wait until they may send wait for ever"),
        ({GROWS: "0", "net.ipv4.tcp_rmem": "4096 65535 6291456"}, "blocked", "65535 bytes at once and never"),
        ({"fs.file-max": "900"}, "blocked", "all processes together may have 900 files open"),
        ({"kernel.threads-max": "300"}, "blocked", "a host may have 300 threads"),
        ({"kernel.pid_max": "301"}, "blocked", "a host may have 301 processes, threads included"),
        ({"net.core.somaxconn": "4"}, "report", "4 connections may wait to be taken, no more"),
        ({"net.ipv4.tcp_retries2": "1"}, "report", "connections are given up after 1 loss in a row"),
        ({"vm.overcommit_memory": "2"}, "report", "memory is given only where all of it is there"),
        ({"vm.max_map_count": "1000"}, "report", "a process may have 1000 maps of memory"),
    ],
)  # fmt: skip
def test_too_little_is_named_with_its_setting(live: dict[str, str], kind: str, title: str) -> None:
    (found,) = of(host(live))
    assert (found.kind, title in found.title) == (kind, True), found
    (key, value), *_ = live.items()
    assert f"{key} = {value}" in found.evidence
    assert found.fix.count("sysctl -w ") == 1
    first = found.evidence[0]
    assert of(host(live), accept=(first,)) == []


@pytest.mark.parametrize(
    "live",
    [
        {BASE: "48"},
        {BASE: "512", PROBING: "2"},
        {"net.ipv4.tcp_min_snd_mss": "1220"},
        {"net.ipv4.tcp_notsent_lowat": "1"},
        {GROWS: "0"},
        {"net.ipv4.tcp_rmem": "4096 4096 6291456"},
    ],
)
def test_what_slows_nobody_is_not_named(live: dict[str, str]) -> None:
    assert of(host(live)) == []


def test_what_sets_it_again_at_boot_is_named_with_its_line() -> None:
    wrong = {"net.ipv4.tcp_notsent_lowat": "0", BASE: "48", PROBING: "2"}
    state = host(wrong, later={BASE: "48"})
    line = Mention(path="/etc/rc.local", line=4, text="sysctl -w net.ipv4.tcp_notsent_lowat=0")
    segments, waits = of(state.model_copy(update={"mentions": (line,)}))
    assert segments.evidence == (
        f"{BASE} = 48",
        f"{PROBING} = 2",
        f"/etc/sysctl.d/9.conf:1: {BASE} = 48",
    )
    assert waits.evidence[1:] == (f"{line.path}:4: {line.text}",)
    for shortage in (segments, waits):
        assert shortage.fix.startswith(
            "Remove the line that sets it at boot. Set the usual value: "
        )


@pytest.mark.parametrize(("user", "kind"), [("trainer", "blocked"), ("root", "report")])
def test_ports_of_launchers_that_root_alone_may_have(user: str, kind: str) -> None:
    (found,) = of(host({PRIVILEGED: "30000"}, user=user))
    assert (found.kind, found.evidence) == (kind, (f"{PRIVILEGED} = 30000",))
    assert "29500" in found.title


def test_a_file_that_takes_effect_at_the_next_boot_is_named_with_its_line() -> None:
    (found,) = of(host(later={RESERVED: "1024-65535"}))
    assert (
        found.title == "after the next boot, no port of this host can be given to new connections"
    )
    assert found.evidence == (f"/etc/sysctl.d/9.conf:1: {RESERVED} = 1024-65535",)
    # What is set by hand alone is gone by then, and what is said of now is said once.
    both = of(host({RESERVED: "1024-65535"}, later={RESERVED: "1024-65535"}))
    assert [f.title.startswith("after") for f in both] == [False]


def test_hops_count_where_peers_are_beyond_a_router() -> None:
    few = {"net.ipv4.ip_default_ttl": "1"}
    assert of(host(few)) == []
    (found,) = of(host(few, address="10.9.0.1"))
    assert found.title == "packets of this host live for 1 router, and peers are beyond one"
