"""What tests of one GPU share: where they run, and what of a verdict they keep for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Record = Callable[[str, object], None]


def _no_gpu() -> str:
    """Why there is no NCCL here; nothing where there is."""
    try:
        import torch
    except ImportError:
        return "torch is not installed here"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no GPU here"
    return "" if torch.distributed.is_nccl_available() else "this torch was built without NCCL"


NO_GPU = _no_gpu()
on_gpu = [pytest.mark.gpu, pytest.mark.skipif(bool(NO_GPU), reason=NO_GPU or "there is one")]


def nccl() -> tuple[int, ...]:
    """The version of the NCCL that is loaded: torch.cuda.nccl.version() is that of its headers."""
    import ctypes

    import torch

    assert torch.distributed.is_nccl_available()
    version = ctypes.c_int()
    assert ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version)) == 0
    return version.value // 10000, version.value // 100 % 100, version.value % 100


def kept_of(verdict: Mapping[str, Any], record: Record) -> None:
    """Keep what a document of a verdict says for the report."""
    import torch

    record("torch", torch.__version__)
    if verdict["backend"] == "nccl":
        record("gpu", torch.cuda.get_device_name(0))
        record("nccl", ".".join(map(str, nccl())))
    for name in ("backend", "world_size", "busbw_gbps", "seconds"):
        record(name, verdict[name])
