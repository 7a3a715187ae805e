"""Spans of numbers: sets of addresses and of ports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import spans

numbers = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6).map(
    lambda pairs: spans.merge((min(pair), max(pair)) for pair in pairs)
)


@given(numbers, numbers)
def test_spans_are_sets(one: spans.Spans, other: spans.Spans) -> None:
    def members(found: spans.Spans) -> set[int]:
        return {n for low, high in found for n in range(low, high + 1)}

    assert members(spans.meet(one, other)) == members(one) & members(other)
    assert members(spans.minus(one, other)) == members(one) - members(other)
    addresses = [int(a) for network in spans.networks(one) for a in network]
    assert sorted(addresses) == sorted(members(one))


MANY = tuple((n, n + 4) for n in range(0, 80, 10))
"""More than are taken away one by one."""


@pytest.mark.parametrize(
    ("ranges", "merged"),
    [
        ([], ()),
        ([(5, 6), (1, 2)], ((1, 2), (5, 6))),
        ([(1, 2), (3, 4)], ((1, 4),)),
        ([(1, 2), (4, 5)], ((1, 2), (4, 5))),
        ([(1, 9), (2, 3)], ((1, 9),)),
        ([(0, 0), (0, 0)], ((0, 0),)),
    ],
)
def test_neighbours_become_one_range(ranges: list[tuple[int, int]], merged: spans.Spans) -> None:
    assert spans.merge(ranges) == merged


@pytest.mark.parametrize(
    ("first", "second", "both", "rest"),
    [
        ((), ((1, 9),), (), ()),
        (((1, 9),), (), (), ((1, 9),)),
        (((1, 9),), ((1, 9),), ((1, 9),), ()),
        (((1, 9),), ((0, 1), (9, 10)), ((1, 1), (9, 9)), ((2, 8),)),
        (((1, 9),), ((4, 5),), ((4, 5),), ((1, 3), (6, 9))),
        (((1, 2), (4, 5)), ((2, 4),), ((2, 2), (4, 4)), ((1, 1), (5, 5))),
        (((1, 2), (8, 9)), ((3, 7),), (), ((1, 2), (8, 9))),
        (((0, 100),), MANY, MANY, (*((n + 5, n + 9) for n in range(0, 70, 10)), (75, 100))),
        (((3, 12), (74, 76)), MANY, ((3, 4), (10, 12), (74, 74)), ((5, 9), (75, 76))),
        ((), MANY, (), ()),
        (MANY, ((4, 70),), (*((n, n + 4) for n in range(10, 70, 10)),), ((0, 3), (71, 74))),
    ],
)
def test_what_is_in_both_and_in_the_first_alone(
    first: spans.Spans, second: spans.Spans, both: spans.Spans, rest: spans.Spans
) -> None:
    if first != MANY:
        assert spans.meet(first, second) == both
        assert spans.meet(second, first) == both
    assert spans.minus(first, second) == rest


@pytest.mark.parametrize(
    ("number", "inside"), [(0, False), (1, True), (2, True), (3, False), (7, True), (8, False)]
)
def test_whether_a_number_is_among_them(number: int, inside: bool) -> None:
    assert spans.holds(((1, 2), (7, 7)), number) is inside
    assert not spans.holds((), number)


def test_spans_as_text() -> None:
    low = 10 << 24
    ranges = ((low, low + 255), (low + 512, low + 512), (low + 1024, low + 1026))
    assert spans.of_networks(["10.0.0.0/24", "10.0.2.0", "10.0.4.0/31", "10.0.4.2/32"]) == ranges
    assert spans.of_networks(["10.0.0.7/24"]) == ranges[:1]
    assert spans.of_networks(["fd00::/127"]) == ((0xFD << 120, (0xFD << 120) + 1),)
    texts = [spans.address_text(network) for network in spans.networks(ranges)]
    assert texts == ["10.0.0.0/24", "10.0.2.0", "10.0.4.0/31", "10.0.4.2"]
    assert spans.address_ranges(ranges) == (
        "10.0.0.0-10.0.0.255",
        "10.0.2.0",
        "10.0.4.0-10.0.4.2",
    )
    assert spans.port_texts(((1, 1), (5, 9)), ":") == ("1", "5:9")
    bounds = (spans.ALL_ADDRESSES, spans.ALL_IPV6_ADDRESSES, spans.ALL_PORTS)
    last = [high for ((low, high),) in bounds if low == 0]
    assert last == [0xFFFFFFFF, int("f" * 32, 16), 65535]


@given(st.lists(numbers, max_size=5))
def test_what_one_set_alone_has_is_in_no_other(sets: list[spans.Spans]) -> None:
    for at, alone in enumerate(spans.only_in(sets)):
        others = spans.merge(s for n, one in enumerate(sets) if n != at for s in one)
        assert alone == spans.minus(sets[at], others)
