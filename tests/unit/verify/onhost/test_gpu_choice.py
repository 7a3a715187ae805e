"""Which rank can use a GPU, and why not. No GPU is asked: a stand-in says what torch would."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.verify.onhost.engines.torch_rank.meet import agree, usable_gpu
from tests.unit.build import first_rank

torch = pytest.importorskip("torch")


class Cuda:
    """What torch.cuda says on a host.

    Args:
        gpus: how many it sees.
        broken: the GPU on which nothing can be allocated.
    """

    def __init__(self, gpus: int, broken: int | None = None) -> None:
        self.gpus = gpus
        self.broken = broken
        self.chosen = -1

    def is_available(self) -> bool:
        return self.gpus > 0

    def device_count(self) -> int:
        return self.gpus

    def set_device(self, number: int) -> None:
        self.chosen = number


def stand_in(cuda: Cuda, *, nccl: bool = True) -> Any:
    def zeros(_: int, device: str) -> Any:
        assert device == "cuda"
        if cuda.chosen == cuda.broken:
            raise RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA")
        return torch.zeros(1)

    return SimpleNamespace(
        cuda=cuda,
        distributed=SimpleNamespace(is_nccl_available=lambda: nccl),
        version=SimpleNamespace(cuda="13.0" if cuda.gpus else None),
        __version__="2.13.0",
        zeros=zeros,
    )


def test_each_rank_tries_a_gpu_of_its_own() -> None:
    cuda = Cuda(8)
    assert usable_gpu(stand_in(cuda), 3, 8) == (True, "")
    assert cuda.chosen == 3


@pytest.mark.parametrize(
    ("cuda", "why"),
    [
        (Cuda(0), "torch.cuda is not available (torch 2.13.0, built for no CUDA)"),
        (Cuda(4), "8 ranks but 4 visible GPUs (CUDA_VISIBLE_DEVICES=0,1,2,3)"),
        (Cuda(8, broken=3), "GPU 3: RuntimeError: CUDA error: out of memory"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_told(
    cuda: Cuda, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer visible devices than ranks: some say "invalid device ordinal", all others wait for them."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert usable_gpu(stand_in(cuda), 3, 8) == (False, why)


def test_visible_devices_are_told_only_where_they_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert usable_gpu(stand_in(Cuda(4)), 0, 8)[1] == "8 ranks but 4 visible GPUs"
    assert usable_gpu(stand_in(Cuda(1)), 0, 2)[1] == "2 ranks but 1 visible GPU"
    assert usable_gpu(stand_in(Cuda(8), nccl=False), 0, 8)[1] == "torch was built without NCCL"


@pytest.mark.parametrize("wanted", ["auto", "nccl"])
def test_one_rank_without_a_gpu_has_all_use_gloo_and_is_named(tmp_path: Path, wanted: str) -> None:
    """The store is torch's own; the other ranks have said their part before."""
    store = torch.distributed.HashStore()
    store.set("here/1", '{"usable": true, "why": ""}')
    store.set("here/2", '{"usable": false, "why": "8 ranks but 4 visible GPUs"}')
    decided = agree(first_rank(tmp_path, store, backend=wanted), store, True, "")
    assert decided == {
        "backend": "gloo",
        "missing": [],
        "unusable": {"2": "8 ranks but 4 visible GPUs"},
    }
