"""Many names as ranges: short for fleets of any size, and on the host the same names in the same order."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.probe import ProbeRequest, render_probe
from remedy.probe.ranges import ranges
from remedy.probe.request import MOST_LITERAL, NAMES_A_CALL, mark

NAMES = (
    *(f"gpu{number:05}" for number in range(98, 1205)),
    *(f"rack{number}-node07.example" for number in range(8, 12)),
    *("login", "login", "a9", "a10", "a11", "a011", "b1", "b3", "b5"),
    *(f"c{number}" for number in range(999_999_998, 1_000_000_003)),
    *("d1-1", "d2-2", "d3-3", "e08", "e9", "f9999999999", "f10000000000", "g99", "g100"),
)


def written_out(line: str) -> list[str]:
    form, *numbers = line.split(" ")
    if not numbers:
        return [form]
    first, last = map(int, numbers)
    return [form % number for number in range(first, last + 1)]


@given(
    st.lists(
        st.builds(
            "{}{:0{}}{}".format,
            st.sampled_from(["a", "b-", "c1x"]),
            st.integers(0, 120),
            st.integers(1, 3),
            st.sampled_from(["", ".x", "-7"]),
        ),
        max_size=30,
    )
)
def test_ranges_stand_for_the_names_in_their_order(names: list[str]) -> None:
    assert [name for line in ranges(names) for name in written_out(line)] == names


def test_what_stands_for_equal_racks_does_not_grow_with_them() -> None:
    assert list(ranges([f"n{number:04}" for number in range(1, 9000)])) == ["n%04d 1 8999"]
    assert list(ranges([f"n{number}.x" for number in range(8, 9000)])) == ["n%d.x 8 8999"]


@pytest.mark.parametrize("awk", ["awk", "mawk", "gawk", "busybox awk"])
def test_the_host_writes_the_names_out_with_their_marks(awk: str) -> None:
    if shutil.which(awk.split()[0]) is None:
        pytest.skip(f"{awk} is not installed")
    names = tuple(dict.fromkeys(NAMES))
    text = render_probe(ProbeRequest(names=names))
    assignments = text[text.index("name_groups=") : text.index("\nblock_digests=")]
    size = f"names_a_call={NAMES_A_CALL}"
    functions = text[text.index("write_names_out() {") : text.index("\nchoose_user() {")]
    assert len(names) > 2 * NAMES_A_CALL > MOST_LITERAL
    assert f"\n{size}\n" in text
    script = f'{assignments}\n{size}\n{functions}\nwrite_names_out && printf %s "$name_groups"'
    done = subprocess.run(
        ["sh", "-s"],
        input=script.replace("$(awk ", f"$({awk} "),
        capture_output=True,
        text=True,
        check=True,
    )
    groups = [line.split(" ") for line in done.stdout.split("\n")]
    assert [len(group) for group in groups[:-1]] == [2 * NAMES_A_CALL] * (len(groups) - 1)
    words = [word for group in groups for word in group]
    expected = [word for at, name in enumerate(names, 1) for word in (name, mark(at))]
    assert words == expected


def test_few_names_are_written_out_and_many_equal_ones_are_as_short_for_any_number() -> None:
    few = tuple(f"n{number}" for number in range(MOST_LITERAL))
    assert f"{few[-1]} {mark(MOST_LITERAL)}" in render_probe(ProbeRequest(names=few))
    sizes = {
        len(
            render_probe(ProbeRequest(names=tuple(f"n{at:05}" for at in range(1000, 1000 + count))))
        )
        for count in (100, 1_000, 8_000)
    }
    assert max(sizes) - min(sizes) <= 2
