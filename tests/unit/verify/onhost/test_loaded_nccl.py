"""The version of NCCL that a rank reports is that of the library it has loaded."""

from __future__ import annotations

import ctypes
import os
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.verify.onhost.engines.torch_rank.group import loaded_nccl


def library(number: int, answer: int = 0) -> Any:
    """A ctypes.CDLL that makes a libnccl of this number of every name."""

    def get_version(place: Any) -> int:
        place._obj.value = number
        return answer

    def load(name: str, mode: int) -> Any:
        assert (name, mode) == ("libnccl.so.2", os.RTLD_NOLOAD)
        return SimpleNamespace(ncclGetVersion=get_version)

    return load


@pytest.mark.parametrize(
    ("number", "version"),
    [(23203, (2, 32, 3)), (22809, (2, 28, 9)), (21003, (2, 10, 3)), (2804, (2, 8, 4))],
)
def test_its_number_is_read_as_nccl_codes_it(
    monkeypatch: pytest.MonkeyPatch, number: int, version: tuple[int, ...]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library(number))
    assert loaded_nccl() == version


def test_a_library_that_gives_no_number_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library(23203, answer=1))
    assert loaded_nccl() == ()


@pytest.mark.parametrize("name", ["libc.so.6", "libof-nobody.so.2"])
def test_one_that_is_not_loaded_or_is_no_nccl_has_no_version(name: str) -> None:
    assert loaded_nccl(name) == ()
