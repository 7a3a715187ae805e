"""Spans of numbers: sets of addresses and of ports."""

from __future__ import annotations

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
