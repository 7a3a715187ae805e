"""The tree of gateways, from a mapping or a topology file of ClusterShell; what is none is said."""

from __future__ import annotations

import shlex
import socket
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet
from ClusterShell.Propagation import PropagationTreeRouter
from ClusterShell.Topology import TopologyParser
from hypothesis import given, settings
from hypothesis import strategies as st

from remedy.errors import InventoryError, RemedyError, SpecError
from remedy.inventory import Inventory, Node
from remedy.transport.gateways.failures import GatewayFault, explain_lost
from remedy.transport.gateways.routes import ROOT, read_routes


def fleet(count: int, folder: Path = Path("/nowhere")) -> Inventory:
    nodes = [
        Node(f"gpu{n:03}", f"10.0.{n // 250}.{n % 250 + 1}", groups=("rack1",) if n < 4 else ())
        for n in range(count)
    ]
    return Inventory(folder / "inventory.py", tuple(nodes))


def ways(text: str) -> dict[str, set[str]]:
    """Return the next hops of each address by ClusterShell's own router."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        router = PropagationTreeRouter(ROOT, TopologyParser(file.name).tree(ROOT))
    return {node: set(gateways) for network, gateways in router.table for node in network}


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 300), st.integers(1, 8), st.data())
def test_each_host_is_reached_through_its_gateways(
    count: int, racks: int, data: st.DataObject
) -> None:
    inventory = fleet(count)
    cuts = sorted({0, count, *data.draw(st.lists(st.integers(1, count), max_size=racks))})
    given_: dict[str, str] = {}
    for rack, (first, last) in enumerate(pairwise(cuts)):
        hosts = ",".join(inventory.names[first:last])
        given_[f"head[{2 * rack}-{2 * rack + 1}]"] = hosts
    routes = read_routes(given_, inventory)
    assert routes.behind == set(inventory.names)
    table = ways(routes.topology(routes.behind))
    for name in inventory.names:
        assert table[routes.address(name)] == set(routes.through(name))


def test_the_notation_of_hosts_is_that_of_limit() -> None:
    routes = read_routes({"head1": "@rack1!gpu001", "head2": "gpu00[5-6]"}, fleet(9))
    assert routes.behind == {"gpu000", "gpu002", "gpu003", "gpu005", "gpu006"}
    assert routes.through("gpu006") == ("head2",)


def test_only_the_ways_to_the_hosts_that_are_asked_for_are_told() -> None:
    routes = read_routes({"head1": "gpu00[0-3]", "head2": "gpu00[5-6]"}, fleet(9))
    assert routes.topology({"gpu006"}) == f"[routes]\n{ROOT}: head2\nhead2: 10.0.0.7\n"


def test_a_gateway_of_the_inventory_is_reached_as_that_says() -> None:
    data = {
        "ssh_user": "ops",
        "ssh_port": 2222,
        "ssh_key": "/k",
        "ssh_known_hosts_file": "/h",
        "ssh_config_file": "/c",
    }
    nodes = (Node("head", "10.9.9.9", 2222, data=data), Node("gpu1", "10.0.0.1"))
    routes = read_routes({"head,login": "gpu1"}, Inventory(Path("/i.py"), nodes))
    assert routes.door("login") == ("login",)
    words = ("-F", "/c", "-l", "ops", "-p", "2222", "-i", "/k")
    assert routes.door("head") == (*words, "-oUserKnownHostsFile=/h", "10.9.9.9")
    assert routes.topology({"gpu1"}).splitlines()[1] == f"{ROOT}: 10.9.9.9,login"


def test_a_gateway_stands_behind_another() -> None:
    routes = read_routes({"login": "gpu000", "gpu000": "gpu00[1-3]"}, fleet(4))
    table = ways(routes.topology({"gpu002"}))
    assert table["10.0.0.3"] == {"login"}
    assert routes.through("gpu002") == ("gpu000",)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"head1": "gpu00*", "head2": "gpu001"}, "gpu001 stands behind several sets of gateways"),
        ({"gpu001": "gpu00*"}, "gpu001: a gateway to itself"),
        ({"gpu001": "gpu002", "gpu002": "gpu001"}, "a loop: gpu[001-002]"),
        ({"head1": "nobody"}, "no host or group"),
        ({"head[1-": "gpu001"}, "head[1-"),
        ({"head@x": "gpu001"}, "head@x"),
        ({"-oProxyCommand=evil": "gpu001"}, "ClusterShell cannot name"),
        ({"head[1-99999999]": "gpu001"}, "more than"),
        ({}, "no host of the inventory stands behind a gateway"),
        ("nothing.conf", "there is no such topology file"),
    ],
)
def test_what_is_no_tree_is_said(given_: dict[str, str] | str, said: str) -> None:
    with pytest.raises((SpecError, InventoryError)) as caught:
        read_routes(given_, fleet(9))
    assert said in caught.value.message
    assert caught.value.next_step


def test_a_topology_file_of_clustershell_is_read(tmp_path: Path) -> None:
    here = socket.gethostname().split(".")[0]
    file = tmp_path / "topology.conf"
    file.write_text(
        f"[routes]\n{here}: login[1-2],gpu008\nlogin[1-2]: head[1-2]\nhead1: gpu00[0-3]\n"
        "head2: gpu00[4-7],storage[1-4]\n"
    )
    routes = read_routes("topology.conf", fleet(9, tmp_path))
    assert routes.behind == set(NodeSet("gpu00[0-7]"))
    table = ways(routes.topology(routes.behind))
    assert table["10.0.0.6"] == {"login1", "login2"}
    assert "10.0.0.9" not in table


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[routes]\n",
        "[routes]\nelsewhere: head\nhead: gpu001\n",
        "[routes]\nx",
        "[routes]\n[:a\n",
    ],
)
def test_a_file_that_is_no_topology_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "topology.conf").write_text(text)
    with pytest.raises(RemedyError) as caught:
        read_routes("topology.conf", fleet(9, tmp_path))
    assert "[routes]" in caught.value.next_step


def test_a_user_comes_to_a_gateway_as_remedy_does(tmp_path: Path) -> None:
    head = {"ssh_hostname": "10.0.0.9", "ssh_user": "root", "ssh_key": "/a key"}
    nodes = (Node("head", "10.0.0.9", data=head), Node("rack", "10.0.0.8"), Node("a", "10.0.0.1"))
    inventory = Inventory(tmp_path / "inventory.py", nodes)
    routes = read_routes({"head": "rack", "rack": "a"}, inventory)
    assert routes.typed("head") == "ssh -l root -i '/a key' 10.0.0.9"
    assert routes.typed("rack") == "ssh -l root -i '/a key' 10.0.0.9 ssh 10.0.0.8"
    assert routes.way("a") == (("head",), ("rack",))
    lacking = GatewayFault("no ClusterShell", needs_install=True)
    lost = explain_lost(
        inventory.node("a"),
        ("head", "head2"),
        dict.fromkeys(("head", "head2"), lacking),
        routes,
        "python3",
    )
    step = "Install the same release there, and on head2: ssh -l root -i '/a key' 10.0.0.9 'python3"
    assert step in str(lost)


def test_a_command_for_a_gateway_behind_another_is_quoted_for_each_shell_on_the_way(
    tmp_path: Path,
) -> None:
    nodes = (Node("head", "head"), Node("rack", "rack"), Node("a", "10.0.0.1"))
    routes = read_routes({"head": "rack", "rack": "a"}, Inventory(tmp_path / "inventory.py", nodes))
    words = shlex.split(routes.typed("rack", "echo 'a b' && true"))
    assert words[:2] == ["ssh", "head"]
    assert shlex.split(words[2]) == ["ssh", "rack", "echo 'a b' && true"]
