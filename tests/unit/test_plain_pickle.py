"""The decoder of plain pickles: what Python's own would read of them, and nothing is called."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.plain_pickle import PlainPickleError, loads

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@given(PLAIN, st.integers(3, pickle.HIGHEST_PROTOCOL))
def test_plain_values_are_read_as_python_reads_them(value: Any, protocol: int) -> None:
    assert loads(pickle.dumps(value, protocol)) == value


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("called",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [_Evil(), {"entries": [_Evil()]}, os.getpid, {1, 2}, 1j])
def test_nothing_is_called(
    value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dump = pickle.dumps(value, protocol)
    with pytest.raises(PlainPickleError, match="more than plain values"):
        loads(dump)
    assert not list(tmp_path.iterdir())


@given(st.binary(max_size=400))
def test_any_bytes_are_a_value_or_an_error_that_is_shown(data: bytes) -> None:
    try:
        loads(b"\x80\x02" + data)
    except PlainPickleError:
        return


@pytest.mark.parametrize(
    "dump", [b"\x80\x02", b"\x80\x02}", b"\x80\x02a.", b"\x80\x02]]e.", b"\x80\x02h\x07."]
)
def test_a_pickle_that_breaks_off_is_an_error(dump: bytes) -> None:
    with pytest.raises(PlainPickleError):
        loads(dump)


@given(st.binary(max_size=400), st.integers(0, 400))
def test_a_value_that_is_cut_off_anywhere_is_an_error(value: bytes, at: int) -> None:
    dump = pickle.dumps(value, 4)
    with pytest.raises(PlainPickleError):
        loads(dump[: min(at, len(dump) - 1)])


def test_more_opcodes_than_were_allowed_are_an_error() -> None:
    assert loads(pickle.dumps(b"x", 4), most=8) == b"x"
    with pytest.raises(PlainPickleError, match="too many values"):
        loads(pickle.dumps([1, 2, 3, 4, 5, 6, 7, 8], 4), most=8)
