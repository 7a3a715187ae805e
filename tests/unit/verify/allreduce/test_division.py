"""Which hosts sum in groups, and which across them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import SpecError
from remedy.spec import VerifySpec
from remedy.verify.allreduce.division import Division, divide

HOSTS = tuple(f"gpu{number:02}" for number in range(1, 9))
RACKS = {
    "rack1": HOSTS[:4],
    "rack2": HOSTS[4:],
    "odd": HOSTS[::2],
    "last": HOSTS[7:],
    "inventory": HOSTS,
}


def divided(by: int | str, hosts: tuple[str, ...] = HOSTS, **settings: Any) -> Division:
    division = divide(VerifySpec(divide=by, **settings), hosts, RACKS)
    assert division is not None
    return division


def hosts_of(division: Division) -> tuple[list[str], list[str]]:
    """The hosts of groups and crossings, each as a text."""
    groups, crossings = division.groups, division.crossings
    return [" ".join(p.hosts) for p in groups], [" ".join(p.hosts) for p in crossings]


@pytest.mark.parametrize("by", ["rack*", "rack[1-2]", "rack1,rack2", "@rack1 @rack2", "@rack[1-2]"])
def test_groups_of_the_inventory_sum_and_then_the_hosts_at_the_same_place(by: str) -> None:
    division = divided(by)
    assert [part.name for part in division.groups] == ["rack1", "rack2"]
    assert hosts_of(division) == (
        ["gpu01 gpu02 gpu03 gpu04", "gpu05 gpu06 gpu07 gpu08"],
        ["gpu01 gpu05", "gpu02 gpu06", "gpu03 gpu07", "gpu04 gpu08"],
    )
    assert (division.together, division.pairs) == (16, 28)
    assert division.meeting == ("gpu01", "gpu05", "gpu02", "gpu03", "gpu04")
    assert division.unproved == (
        "not proved: all 8 hosts in one all-reduce, and 12 of 28 pairs of hosts, which were in none together"
    )


def test_one_host_of_each_group_sums_across_them_where_that_is_asked_for() -> None:
    division = divided("rack*", across="one")
    assert hosts_of(division)[1] == ["gpu01 gpu05"]
    assert division.together == 6 + 6 + 1
    assert division.unproved.endswith("; 6 of them summed in their own group alone")


def test_neighbours_are_divided_as_evenly_as_can_be() -> None:
    division = divided(3)
    assert hosts_of(division)[0] == ["gpu01 gpu02", "gpu03 gpu04 gpu05", "gpu06 gpu07 gpu08"]
    assert [part.name for part in division.groups] == ["gpu[01-02]", "gpu[03-05]", "gpu[06-08]"]


def test_a_host_without_others_at_its_place_joins_another_all_reduce() -> None:
    division = divided("rack*", HOSTS[:5])
    assert hosts_of(division)[1] == ["gpu01 gpu05 gpu02 gpu03 gpu04"]
    assert division.together == division.pairs == 10


@pytest.mark.parametrize(
    ("by", "hosts"),
    [(8, HOSTS), (100, HOSTS), ("rack*", HOSTS[:4]), ("rack*", (HOSTS[0], HOSTS[7]))],
)
def test_where_nothing_is_to_be_divided_it_is_one_all_reduce(
    by: int | str, hosts: tuple[str, ...]
) -> None:
    assert divide(VerifySpec(divide=by), hosts, RACKS) is None
    assert divide(VerifySpec(), hosts, RACKS) is None


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("rack1", "verify.divide is rack1: gpu[05-08] would be in no group"),
        ("rack*,odd", "gpu[01,03] are in 2 groups, rack1, odd; 2 other hosts in several groups"),
        ("rack1,rack2,last", ": gpu08 is in 2 groups, rack2, last"),
        ("rack[1-3]", "the inventory has no group rack3"),
        ("rack[1", "rack[1 is no list of names"),
    ],
)
def test_what_is_no_division_is_refused_with_the_reason(by: str, reason: str) -> None:
    with pytest.raises(SpecError, match=r"verify\.divide is ") as refused:
        divided(by)
    assert reason in refused.value.message
    assert "rack*" in refused.value.next_step


@pytest.mark.parametrize("value", [1, 0, "1", "", "-4", True, 2.5, [2], "-"])
def test_a_setting_that_means_nothing_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="divide"):
        VerifySpec.model_validate({"divide": value})


def test_a_number_of_the_command_line_is_a_number() -> None:
    assert VerifySpec.model_validate({"divide": " 32 "}).divide == 32


@given(st.lists(st.integers(1, 9), min_size=2, max_size=9).filter(lambda sizes: max(sizes) > 1))
def test_every_host_is_in_one_group_and_in_one_all_reduce_across(sizes: list[int]) -> None:
    hosts = tuple(f"h{number}" for number in range(sum(sizes)))
    begins = [sum(sizes[:at]) for at in range(len(sizes))]
    racks = {f"rack{at}": hosts[begin : begin + sizes[at]] for at, begin in enumerate(begins)}
    division = divide(VerifySpec(divide="rack*"), hosts, racks)
    assert division is not None
    owner = {host: part.name for part in division.groups for host in part.hosts}
    assert list(owner) == list(hosts)
    crossing = [host for part in division.crossings for host in part.hosts]
    assert sorted(crossing) == sorted(hosts)
    assert all(len({owner[h] for h in part.hosts}) > 1 for part in division.crossings)
    pairs = {
        frozenset(pair)
        for part in (*division.groups, *division.crossings)
        for pair in combinations(part.hosts, 2)
    }
    assert len(pairs) == division.together
