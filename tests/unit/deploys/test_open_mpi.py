"""Open MPI is kept off what leads nowhere, and within the ports that are open."""

from __future__ import annotations

import pytest

from remedy.deploys import _openmpi
from remedy.deploys.environment import EnvironmentSpec
from remedy.plan import FindingKind
from remedy.probe import (
    HostState,
    LoginSession,
    Mention,
    Network,
    NftChain,
    NftRuleset,
    Sysctls,
)
from tests.unit.build import NO_FIREWALL, record
from tests.unit.deploys.environment_bench import (
    ENV,
    MCA,
    content,
    findings,
    host,
    interface,
    planned,
)

INCLUDE = "btl_tcp_if_include = 10.0.0.0/24"
MIN, COUNT = "btl_tcp_port_min_v4 = 32768", "btl_tcp_port_range_v4 = 28232"


def with_mpi(state: HostState, *, wall: bool = False) -> HostState:
    chain = NftChain("inet", "filter", "input", "input", 0, "accept", ())
    walls = NO_FIREWALL
    if wall:
        ruleset = NftRuleset(tables=(("inet", "filter"),), chains=(chain,), sets=())
        walls = NO_FIREWALL.model_copy(update={"nft": ruleset})
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "session": record(
                LoginSession, homes=("/root",), programs={"mpirun": "/usr/bin/mpirun"}
            ),
            "firewalls": walls,
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


def pair(first: HostState) -> tuple[HostState, HostState]:
    return first, host(2)


def lines(state: HostState, path: str = MCA) -> list[str]:
    written = content(planned(*pair(state)), path)
    return [] if written is None else written.decode().splitlines()


def test_bridges_of_containers_are_left_out() -> None:
    assert INCLUDE in lines(with_mpi(host(1, {MCA: b"# site\n"})))
    assert content(planned(*pair(host(1, {MCA: b"# site\n"}))), MCA) is None, "no Open MPI here"


def test_where_all_interfaces_lead_to_peers_nothing_is_set() -> None:
    state = with_mpi(host(1, {MCA: b""}))
    assert isinstance(state.network, Network)
    kept = tuple(i for i in state.network.interfaces if i.name != "docker0")
    network = state.network.model_copy(update={"interfaces": kept})
    assert lines(state.model_copy(update={"network": network})) == []


@pytest.mark.parametrize("line", ["{}_tcp_if_include = eno2\n", "{}_tcp_if_exclude = docker0\n"])
def test_a_choice_of_the_operator_that_works_stays(line: str) -> None:
    both = line.format("btl") + line.format("oob")
    assert lines(with_mpi(host(1, {MCA: both.encode()}))) == []
    assert "oob_tcp_if_include = 10.0.0.0/24" in lines(
        with_mpi(host(1, {MCA: line.format("btl").encode()}))
    )


def test_a_wrong_interface_is_corrected_where_it_is_set() -> None:
    text = b"OMPI_MCA_btl_tcp_if_include=eth9\n"
    state = with_mpi(host(1, {ENV: text, MCA: b""}))
    assert INCLUDE in lines(state)
    assert "#remedy disabled# OMPI_MCA_btl_tcp_if_include=eth9" in lines(state, ENV)
    found = [f for f in planned(*pair(state)).findings if f.host == "gpu01"]
    assert {f.label for f in found} == {"mpi-nic-mismatch"}
    assert any("no interface here is eth9" in f.title for f in found)


def test_a_wrong_interface_that_is_not_remedys_to_change_is_named_with_its_line() -> None:
    mention = Mention(
        path="/root/.bashrc", line=3, text="export OMPI_MCA_btl_tcp_if_include=docker0"
    )
    (found,) = findings(host(1, mentions=(mention,)), FindingKind.BLOCKED)
    assert "/root/.bashrc sets OMPI_MCA_btl_tcp_if_include=docker0" in found.title
    assert found.evidence[0] == "/root/.bashrc:3: OMPI_MCA_btl_tcp_if_include=docker0"


def test_behind_a_firewall_it_stays_within_the_ports_that_are_open() -> None:
    assert {MIN, COUNT} <= set(lines(with_mpi(host(1, {MCA: b""}), wall=True)))
    assert not {MIN, COUNT} & set(lines(with_mpi(host(1, {MCA: b""}))))


def test_behind_a_firewall_it_stays_in_the_network_that_is_let_in() -> None:
    state = with_mpi(host(1, {MCA: b""}, extra=(interface("eno1", "192.168.9.1"),)), wall=True)
    assert isinstance(state.network, Network)
    kept = tuple(i for i in state.network.interfaces if i.name != "docker0")
    state = state.model_copy(
        update={"network": state.network.model_copy(update={"interfaces": kept})}
    )
    assert {INCLUDE, "oob_tcp_if_include = 10.0.0.0/24"} <= set(lines(state))
    found = [line for f in planned(*pair(state)).findings for line in f.evidence]
    assert any(
        "takes eno1 too, and peers are let in by their cluster addresses" in t for t in found
    )


def test_ports_that_the_operator_chose_stay() -> None:
    own = b"btl_tcp_port_min_v4 = 20000\nbtl_tcp_port_range_v4 = 50\nbtl_tcp_if_include = eno2\n"
    own += b"oob_tcp_if_include = eno2\n"
    state = with_mpi(host(1, {MCA: own}), wall=True)
    assert lines(state) == []
    assert _openmpi.chosen_ports(state) == (20000, 20049)


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("btl_tcp_port_min_v4 = 20000\n", (20000, 65535)),
        ("btl_tcp_port_min_v4 = x\n", None),
        ("btl_tcp_port_min_v4 = 0\n", None),
        ("btl_tcp_port_min_v4 = 99999\n", None),
        ("btl_tcp_port_min_v4 = 65000\nbtl_tcp_port_range_v4 = 5000\n", (65000, 65535)),
        ("btl_tcp_port_range_v4 = 5000\n", None),
    ],
)
def test_ports_are_read_as_open_mpi_does(text: str, ports: tuple[int, int] | None) -> None:
    assert _openmpi.chosen_ports(host(1, {MCA: text.encode()})) == ports


def test_a_second_run_changes_nothing() -> None:
    state = with_mpi(host(1, {MCA: b""}), wall=True)
    written = content(planned(*pair(state)), MCA)
    assert written is not None
    again = with_mpi(host(1, {MCA: written}), wall=True)
    assert not planned(*pair(again)).for_host("gpu01")


CARRIER = interface("eno2", "10.0.0.1")
NETWORK: Network = record(
    Network, interfaces=(CARRIER, interface("docker0", "172.17.0.1", "bridge"))
)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("eno2", None),
        ("10.0.0.0/8", None),
        ("eth9, eno2", None),
        ("eth9", "no interface here is eth9"),
        ("192.168.0.0/16,eth9", "no interface here is 192.168.0.0/16 or in eth9"),
        ("172.17.0.0/16", "docker0 does not leave this host"),
        ("10.0.0.0/99", "no interface here is 10.0.0.0/99"),
        ("", "no interface here is named"),
    ],
)
def test_what_an_include_list_selects(value: str, fault: str | None) -> None:
    assert _openmpi.wrong_include(value, NETWORK, CARRIER, strict=False) == fault


def test_the_setting_of_the_spec_counts_before_the_repair() -> None:
    state = with_mpi(host(1, {MCA: b""}))
    written = content(planned(*pair(state), spec=EnvironmentSpec(interface="auto")), MCA)
    assert written is not None
    assert written.count(b"btl_tcp_if_include") == 1
