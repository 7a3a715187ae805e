"""The bandwidth that counts as good: how it is given, and what is said of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.errors import SpecError
from remedy.spec import VerifySpec, load_spec
from remedy.verify.allreduce import bandwidth as mark


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((40, 40.0), ("40", 40.0), ("0.5", 0.5), (2.5, 2.5)),
        *(("60%", "60%"), ("60 %", "60%"), ("100%", "100%"), (None, None)),
    ],
)
def test_a_mark_is_gbps_or_a_share(written: object, meant: object) -> None:
    assert VerifySpec(min_busbw=written).min_busbw == meant


@pytest.mark.parametrize("bad", [0, -1, "0%", "101%", "fast", "%", "1e3", True, [1], float("nan")])
def test_anything_else_is_refused_in_words(bad: object) -> None:
    with pytest.raises(ValidationError, match="min_busbw"):
        VerifySpec(min_busbw=bad)


def test_the_command_line_is_read_as_the_spec_is() -> None:
    spec = load_spec(None, {"verify": VerifySpec})
    spec.override("verify", min_busbw="60%", engine="mpi")
    section = spec.section("verify", VerifySpec)
    assert (section.min_busbw, section.engine) == ("60%", "mpi")
    with pytest.raises(SpecError, match=r'^--min-busbw is "quick", needs GB/s above 0,.*"60%"\n'):
        spec.override("verify", min_busbw="quick")


@given(
    st.floats(0.001, 1e4),
    st.none() | st.floats(0.001, 1e4),
    st.none() | st.floats(0.001, 1e4) | st.integers(1, 100).map(lambda n: f"{n}%"),
)
def test_what_passes_has_reached_its_mark(
    reached: float, limit: float | None, wanted: float | str | None
) -> None:
    needed = mark.in_gbps(wanted, limit)
    why_not = mark.unjudged(wanted, limit, ["gpu01"])
    fine = not mark.shortfall(reached, needed, why_not)
    if wanted is None:
        assert fine
    elif isinstance(wanted, str):
        share = float(wanted.rstrip("%")) / 100
        assert fine == (limit is not None and reached >= share * limit)
        assert ("gpu01" in why_not) == (limit is None)
    else:
        assert fine == (reached >= wanted)


def test_what_is_good_is_said_beside_the_limit_and_the_mark() -> None:
    assert mark.achieved(45.0, None, None) == "bus bandwidth 45 GB/s"
    assert mark.achieved(45.0, 40.0, 50.0) == (
        "bus bandwidth 45 GB/s, 90% of what the links can carry (at least 40 was asked for)"
    )
