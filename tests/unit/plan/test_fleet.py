"""The address under which the other hosts reach a host: which one it is, and why."""

from __future__ import annotations

import pytest

from remedy.plan import Fleet
from remedy.plan.claimed import interface_addresses
from remedy.plan.fleet import ClusterAddress, once_a_fleet
from remedy.values import MOST_ALIKE, Unknown, once_alike
from tests.unit.build import host_state
from tests.unit.plan.plan_bench import addressed as fleet
from tests.unit.plan.plan_bench import with_addresses as host


def address(found: Fleet, name: str = "a") -> str | None:
    return found.addresses[name].address


def reason(found: Fleet, name: str = "a") -> str:
    return found.addresses[name].reason


def test_what_the_inventory_says_comes_before_everything_else() -> None:
    found = fleet(
        host("a", "10.0.0.1/24"),
        ssh={"a": "10.0.0.1"},
        given={"a": "10.9.9.9"},
        subnet="10.0.0.0/24",
    )
    assert address(found) == "10.9.9.9"
    assert "inventory" in reason(found)


def test_the_subnet_of_the_settings_comes_before_the_address_of_ssh() -> None:
    a = host("a", "10.0.0.1/24", "10.1.0.1/24", "10.1.0.2/24")
    found = fleet(a, ssh={"a": "10.0.0.1"}, subnet="10.1.0.0/16")
    assert address(found) == "10.1.0.1"
    assert "10.1.0.0/16" in reason(found)


def test_a_host_without_an_address_in_that_subnet_has_none() -> None:
    found = fleet(host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1"}, subnet="10.1.0.0/16")
    assert address(found) is None
    assert "10.1.0.0/16" in reason(found)


def test_the_address_of_ssh_is_taken_where_an_interface_has_it() -> None:
    found = fleet(host("a", "10.9.0.1/24", "10.0.0.1/24"), ssh={"a": "10.0.0.1"})
    assert address(found) == "10.0.0.1"
    assert "ssh" in reason(found)


@pytest.mark.parametrize("ssh", ["198.51.100.7", "gateway.example.org", "127.0.0.1", "2001:db8::1"])
def test_an_address_of_ssh_that_no_interface_has_is_none_of_the_cluster(ssh: str) -> None:
    """Such as that of a jump host, of a forwarded port, or a public one behind NAT."""
    alone = fleet(
        host("a", "10.0.0.1/24"), host("b", "10.1.0.2/24"), ssh={"a": ssh, "b": "10.1.0.2"}
    )
    assert address(alone) is None
    assert reason(alone)
    shared = fleet(
        host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), ssh={"a": ssh, "b": "10.0.0.2"}
    )
    assert address(shared) == "10.0.0.1"
    assert "10.0.0.0/24" in reason(shared)


def test_of_a_host_that_was_not_read_the_address_of_ssh_is_the_best_that_is_known() -> None:
    found = fleet(
        host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1", "b": "10.0.0.2", "c": "localhost"}
    )
    assert address(found, "b") == "10.0.0.2"
    assert address(found, "c") is None
    assert address(fleet(ssh={"b": "127.0.0.1"}), "b") is None
    assert address(fleet(ssh={"b": "10.0.0.2"}), "b") == "10.0.0.2"


def test_an_address_that_two_hosts_have_makes_no_shared_subnet() -> None:
    """Every docker0 is 172.17.0.1: over it no host reaches another one."""
    docker = "172.17.0.1/16"
    hosts = [host(name, docker, f"10.0.0.{n}/24") for n, name in enumerate("abc", 1)]
    outside = dict.fromkeys("abc", "198.51.100.7")
    found = fleet(*hosts, ssh=outside)
    assert [address(found, name) for name in "abc"] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    alone = fleet(*(host(name, docker) for name in "abc"), ssh=outside)
    assert [address(alone, name) for name in "abc"] == [None, None, None]
    # One address of two is enough.
    twins = fleet(*hosts[:2], host("c", docker, "10.0.0.2/24"), ssh=outside)
    assert address(twins, "c") is None


def test_a_subnet_is_shared_only_when_every_host_is_in_it() -> None:
    outside = dict.fromkeys("abc", "198.51.100.7")
    hosts = (host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), host("c", "10.1.0.3/24"))
    assert address(fleet(*hosts, ssh=outside)) is None
    unread = host_state("c", "10.0.0.3").model_copy(update={"network": Unknown(reason="no")})
    assert address(fleet(*hosts[:2], unread, ssh=outside)) is None


def test_loopback_link_local_and_ipv6_addresses_lead_nowhere() -> None:
    state = host("a", "127.0.0.1/8", "169.254.1.1/16", "2001:db8::1/64", "10.0.0.1/24")
    assert [str(found) for found in interface_addresses(state)] == ["10.0.0.1/24"]
    assert interface_addresses(None) == ()
    assert interface_addresses(state.model_copy(update={"network": Unknown(reason="no")})) == ()


def test_known_addresses_are_in_the_order_of_the_inventory() -> None:
    found = fleet(
        host("a", "10.0.0.1/24"),
        host("b", "10.0.0.2/24"),
        ssh={"c": "localhost", "b": "10.0.0.2", "a": "10.0.0.1"},
    )
    assert found.known_addresses == ("10.0.0.2", "10.0.0.1")
    assert found.addresses["c"] == ClusterAddress(None, found.addresses["c"].reason)


def test_a_question_about_a_fleet_is_answered_once_for_each_fleet() -> None:
    asked: list[Fleet] = []

    @once_a_fleet
    def count(found: Fleet) -> int:
        asked.append(found)
        return len(found.states)

    first = fleet(host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1"})
    second = fleet(ssh={"a": "10.0.0.1"})
    assert [count(x) for x in (first, first, second, second, first)] == [1, 1, 0, 0, 1]
    assert asked == [first, second]


def test_what_many_hosts_share_is_decided_once() -> None:
    asked: list[int] = []

    @once_alike
    def total(numbers: list[int]) -> int:
        asked.append(len(numbers))
        return sum(numbers)

    shared, equal = [1, 2], [1, 2]
    assert [total(shared), total(shared), total(equal)] == [3, 3, 3]
    assert asked == [2, 2], "equal objects are not looked into"
    assert [total([n]) for n in range(MOST_ALIKE)] == list(range(MOST_ALIKE))
    assert total(shared) == 3
    assert len(asked) == MOST_ALIKE + 3, "the oldest answers make room"
