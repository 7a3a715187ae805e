"""Which interface a library takes, and why a setting of it cannot work."""

from __future__ import annotations

import pytest

from remedy.deploys import _interfaces as nic
from remedy.probe import Interface, Network, RdmaPort, Route
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.environment_bench import host, interface, whole

ETH, IB, DOCKER, LO, VIRBR = (
    interface(name, f"10.{n}.0.1", kind)
    for n, (name, kind) in enumerate(
        [("eth0", "physical"), ("ib0", "physical"), ("docker0", "bridge"), ("lo", "loopback"),
         ("virbr0", "bridge")]
    )
)  # fmt: skip


def names(interfaces: tuple[Interface, ...]) -> list[str]:
    return [one.name for one in interfaces]


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ((LO, DOCKER, ETH, IB), ["ib0"]),
        ((LO, DOCKER, ETH, VIRBR), ["eth0"]),
        ((VIRBR, LO, DOCKER), ["docker0"]),
        ((VIRBR, LO), ["lo"]),
        ((VIRBR,), ["virbr0"]),
        ((), []),
    ],
)
def test_nccl_takes_the_first_class_of_names_that_is_there(
    there: tuple[Interface, ...], taken: list[str]
) -> None:
    assert names(nic.nccl_by_itself(there)) == taken


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("eth", ["eth0", "eth01"]), ("=eth0", ["eth0"]), ("^eth", ["ib0"]), ("^=eth0", ["eth01", "ib0"]),
        ("ib0:1,eth01", ["eth01", "ib0"]), ("=ib0:1", ["ib0"]), ("", []), ("^", ["eth0", "eth01", "ib0"]),
        ("eth0,", ["eth0", "eth01"]),
    ],
)  # fmt: skip
def test_a_value_of_nccl_selects_by_prefix_by_name_or_by_exception(
    value: str, taken: list[str]
) -> None:
    there = (ETH, interface("eth01", "10.8.0.1"), IB)
    assert names(nic.nccl_selects(value, there)) == taken


def test_an_interface_is_usable_when_it_is_up_runs_and_has_an_address() -> None:
    down = interface("d", "10.0.0.1", up=False)
    idle = ETH.model_copy(update={"name": "i", "running": False})
    bare = interface("b", None)
    network = record(Network, interfaces=(down, ETH, idle, bare, LO))
    assert names(nic.usable(network)) == ["eth0", "lo"]


@pytest.mark.parametrize("kind", sorted(nic.INTERNAL_KINDS))
def test_links_of_these_kinds_lead_nowhere_unless_a_card_or_a_route_says_otherwise(
    kind: str,
) -> None:
    link = interface("x", "10.0.0.1", kind)
    member = interface("m", None).model_copy(update={"master": "x"})
    inside = member.model_copy(update={"kind": "veth"})
    route = record(Route, destination="default", interface="x")
    other = record(Route, destination="10.0.0.0/24", interface="x")

    def leads_nowhere(*interfaces: Interface, routes: tuple[Route, ...] = ()) -> bool:
        return nic.internal(link, record(Network, interfaces=(link, *interfaces), routes=routes))

    assert leads_nowhere()
    assert leads_nowhere(inside, routes=(other,))
    assert not leads_nowhere(member)
    assert not leads_nowhere(routes=(route,))
    assert not nic.internal(ETH, record(Network, interfaces=(ETH,)))


NETWORK = record(
    Network,
    interfaces=(
        ETH,
        IB,
        DOCKER,
        interface("down0", "10.9.0.1", up=False),
        interface("bare0", None),
    ),
)


@pytest.mark.parametrize(
    ("value", "exact", "strict", "words"),
    [
        ("eth0", True, True, None),
        ("eth0,ib0", True, True, None),
        (" eth0 ", True, True, None),
        ("=eth0", True, False, "'='"),
        ("^docker0", True, False, "'^'"),
        ("eth9", True, False, "'eth9'"),
        ("eth0,eth9", True, False, "'eth9'"),
        ("down0", True, False, "down0 is down"),
        ("eth0,bare0", True, False, "bare0 is down"),
        ("docker0", True, False, "docker0 does not leave"),
        ("ib0", True, False, None),
        ("ib0", True, True, "eth0"),
        ("eth", False, True, None),
        ("^docker", False, True, None),
        ("eth9", False, False, "no interface"),
        ("down0", False, False, "no interface"),
        ("docker", False, False, "docker0 does not leave"),
        ("ib", False, False, None),
        ("ib", False, True, "eth0"),
        ("ib,docker", False, False, None),
    ],
)
def test_why_a_setting_of_an_interface_cannot_work(
    value: str, exact: bool, strict: bool, words: str | None
) -> None:
    reason = nic.wrong_interfaces(value, NETWORK, ETH, exact=exact, strict=strict)
    assert (reason is None) is (words is None)
    assert words is None or words in str(reason)


def test_the_cluster_interface_is_the_one_with_the_cluster_address() -> None:
    found = whole(host(1), host(2))
    carrier = nic.cluster_interface(found, found.states["gpu01"])
    assert isinstance(carrier, Interface)
    assert carrier.name == "eno2"
    assert nic.cluster_subnet(found, found.states["gpu01"]) == "10.0.0.0/24"
    blind = found.states["gpu01"].model_copy(update={"network": Unknown(reason="no ip")})
    assert nic.cluster_subnet(found, blind) is None


def test_rdma_ports_count_when_they_are_active_and_of_one_layer() -> None:
    def port(device: str, state: str = "ACTIVE", layer: str = "InfiniBand") -> RdmaPort:
        return RdmaPort(device, 1, state, "LinkUp", 400.0, layer, "", (), {})

    ib, roce, down = port("a"), port("b", layer="Ethernet"), port("c", "DOWN")
    assert nic.active_ports(host(rdma=(ib, down, roce))) == (ib, roce)
    assert nic.active_ports(host().model_copy(update={"rdma": Unknown(reason="x")})) == ()
    assert nic.one_layer((roce, ib)) == (ib,)
    assert nic.one_layer((roce,)) == (roce,)
    assert nic.has_gpu(host(gpu=True))
    assert not nic.has_gpu(host())
    assert not nic.has_gpu(host().model_copy(update={"gpus": Unknown(reason="x")}))


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("eth1", ["eth1", "eth10"]),
        ("=eth1", ["eth1"]),
        ("^eth1", ["eno2"]),
        ("^=eth1", ["eth10", "eno2"]),
        ("eno,ib", ["eno2"]),
        ("ib", []),
    ],
)
def test_how_nccl_reads_names(value: str, selected: list[str]) -> None:
    there = [interface(name, "10.0.0.1") for name in ("eth1", "eth10", "eno2")]
    assert [i.name for i in nic.nccl_selects(value, there)] == selected


def test_a_bridge_over_a_real_card_is_not_internal() -> None:
    member = interface("eno1", None).model_copy(update={"master": "br0"})
    network = record(Network, interfaces=(interface("br0", "10.0.0.1", "bridge"), member))
    assert not nic.internal(network.interfaces[0], network)
    bare = record(Network, interfaces=network.interfaces[:1])
    assert nic.internal(bare.interfaces[0], bare)
