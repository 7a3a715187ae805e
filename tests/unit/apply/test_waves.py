"""Waves: every host is in exactly one, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.apply.waves import waves
from remedy.errors import UsageError

HOSTS = [f"gpu{n:03d}" for n in range(1, 65)]


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ("100%", [64]),
        ("1,10%,100%", [1, 6, 57]),
        ("1", [1] * 64),
        ("50", [50, 14]),
        ("1, 200", [1, 63]),
    ],
)
def test_sizes_are_numbers_or_shares(sizes: str, lengths: list[int]) -> None:
    assert [len(wave) for wave in waves(HOSTS, sizes)] == lengths


@given(st.integers(0, 40), st.lists(st.sampled_from(["1", "3", "1%", "10%", "100%"]), min_size=1))
def test_every_host_is_in_one_wave_in_order(count: int, sizes: list[str]) -> None:
    cut = waves(HOSTS[:count], ",".join(sizes))
    assert [host for wave in cut for host in wave] == HOSTS[:count]
    assert all(cut)


@pytest.mark.parametrize("sizes", ["", "0", "0%", "-1", "many", "1,,2", "1.5"])
def test_what_is_no_size_is_refused(sizes: str) -> None:
    with pytest.raises(UsageError, match="no size of a wave"):
        waves(HOSTS, sizes)
