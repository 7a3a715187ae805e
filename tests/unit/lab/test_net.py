"""Which addresses a lab takes, and how its hosts are plugged in."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

import pytest

from remedy.errors import LabError, UsageError
from remedy.lab import net
from remedy.lab.options import UpOptions


def test_labs_take_the_first_free_pair() -> None:
    assert net.choose([]) == ("10.213.0.0/24", "10.214.0.0/24")
    assert net.choose(["10.213.0.1/24"]) == ("10.213.1.0/24", "10.214.1.0/24")
    # The cluster's subnet counts as much as the management one, and so does a single address.
    assert net.choose(["10.213.0.0/24", "10.214.1.7"]) == ("10.213.2.0/24", "10.214.2.0/24")


def test_what_claims_nothing_in_the_range_is_no_obstacle() -> None:
    assert net.choose(["0.0.0.0/0", "192.168.0.0/16", "fd00::/8"])[0] == "10.213.0.0/24"


def test_a_taken_range_leads_to_the_other_and_then_to_an_error() -> None:
    assert net.choose(["10.0.0.0/8"]) == ("198.18.0.0/24", "198.19.0.0/24")
    with pytest.raises(LabError, match="in use"):
        net.choose(["10.0.0.0/8", "198.18.0.0/15"])


def test_a_lab_of_more_hosts_takes_a_wider_pair_that_is_free() -> None:
    assert net.choose([], net.MOST_IN_24) == ("10.213.0.0/24", "10.214.0.0/24")
    assert net.choose([], net.MOST_IN_24 + 1) == ("10.213.0.0/23", "10.214.0.0/23")
    assert net.choose(["10.214.1.7"], net.MAX_HOSTS) == ("10.213.2.0/23", "10.214.2.0/23")
    assert net.choose(["10.213.2.0/23"]) == ("10.213.0.0/24", "10.214.0.0/24")
    with pytest.raises(LabError, match="in use") as caught:
        net.choose(["10.0.0.0/8", "198.18.0.0/15"], net.MAX_HOSTS)
    assert "Free one /23" in caught.value.next_step


@pytest.mark.parametrize("length", [24, 23])
def test_the_hosts_of_a_network_have_addresses_of_their_own_there(length: int) -> None:
    subnets = tuple(f"10.{part}.2.0/{length}" for part in (213, 214))
    count = net.capacity(subnets[0])
    hosts = [net.make_host("gpu", number, *subnets) for number in range(1, count + 1)]
    assert count == (net.MOST_IN_24 if length == 24 else net.MAX_HOSTS) > 0
    for subnet, addresses in zip(
        subnets,
        ([h.management_address for h in hosts], [h.cluster_address for h in hosts]),
        strict=True,
    ):
        assert len(set(addresses)) == count
        assert all(ip_address(text) in ip_network(subnet).hosts() for text in addresses)
    lines = [line for host in hosts for line in net.switch_batch(host, "n").splitlines()]
    cards = re.findall(r" address (\S+) ", "\n".join(lines))
    assert len(cards) == len(set(cards)) == 2 * count
    assert all(re.fullmatch(r"02(:[0-9a-f]{2}){5}", card) for card in cards)


@pytest.mark.parametrize("number", [1, 2, net.MOST_IN_24, net.MOST_IN_24 + 1, net.MAX_HOSTS])
def test_addresses_are_in_their_subnets_and_clear_of_the_gateways(number: int) -> None:
    length = 24 if number <= net.MOST_IN_24 else 23
    subnets = (f"10.213.2.0/{length}", f"10.214.2.0/{length}")
    host = net.make_host("gpu", number, *subnets)
    for text, subnet in zip((host.management_address, host.cluster_address), subnets, strict=True):
        assert ip_address(text) in ip_network(subnet)
        assert f"address add {text}/{length} dev" in net.host_batch(host, subnets[0])
        place = int(ip_address(text)) - int(ip_network(subnet).network_address)
        assert place not in {0, 1, *range(211, 232), 250, 254, 255, 256}


def test_neighbours_name_their_cluster_interface_differently() -> None:
    first, second = (net.make_host("gpu", n, "10.213.0.0/24", "10.214.0.0/24") for n in (1, 2))
    assert first.cluster_interface == "enp194s0f1"
    assert second.cluster_interface == "eno2"
    lines = net.switch_batch(second, "some-netns").splitlines()
    assert any("peer name eno2" in line and line.endswith("netns some-netns") for line in lines)
    assert f"address add {second.cluster_address}/24 dev eno2" in net.host_batch(
        second, "10.213.0.0/24"
    )


def test_a_link_is_made_and_plugged_in_by_one_line() -> None:
    # ip remembers the number of a link by its name: a second line would mean the link of the boot before
    # where that vanished while ip was about to remove it.
    host = net.make_host("gpu", 2, "10.213.0.0/24", "10.214.0.0/24")
    lines = [line.split() for line in net.switch_batch(host, "n").splitlines()]
    made = [line for line in lines if line[1] == "add"]
    assert [line[2:6] for line in made] == [
        ["m2", "up", "master", "management"],
        ["c2", "up", "master", "cluster"],
    ]
    assert [line for line in lines if line not in made] == [
        ["link", "del", "m2"],
        ["link", "del", "c2"],
    ]


def test_interface_names_fit_the_kernel() -> None:
    host = net.make_host("gpu", net.MAX_HOSTS, "10.213.0.0/23", "10.214.0.0/23")
    words = net.switch_batch(host, "n").split() + net.host_batch(host, "10.213.0.0/23").split()
    names = [words[i + 1] for i, word in enumerate(words) if word in {"add", "name", "dev"}]
    assert all(len(name) <= 15 for name in names if name[0].isalpha())


def test_names_sort_and_odd_wishes_are_refused() -> None:
    assert UpOptions(count=2).names() == ["gpu01", "gpu02"]
    names = UpOptions(count=120, prefix="node-").names()
    assert names == sorted(names)
    for options in (UpOptions(count=0), UpOptions(count=net.MAX_HOSTS + 1), UpOptions(prefix="Ü")):
        with pytest.raises(UsageError):
            options.check()
    with pytest.raises(UsageError):
        UpOptions(prefix="-x").check()
    with pytest.raises(UsageError, match="not a release's code name"):
        UpOptions(release="../trixie").check()
    UpOptions(release="trixie").check()
