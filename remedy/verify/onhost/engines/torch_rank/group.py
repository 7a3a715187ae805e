"""The ranks of torch's default group, over NCCL or gloo."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

from remedy.verify.onhost.engines.torch_rank.pairs import exchange
from remedy.verify.onhost.engines.torch_rank.rank import TorchRank
from remedy.verify.onhost.rank.group import WAVE, Buffer, Group

# How long a rank that is done waits for the others, so that no last message is cut off; in seconds.
FAREWELL = 5.0
# Buffers that a measurement needs at most: the values, a copy, what is expected, and comparing them.
BUFFERS = 5


def loaded_nccl(name: str = "libnccl.so.2") -> tuple[int, ...]:
    """Return the version of the NCCL that is loaded here, which may be another than torch was built with.

    ``torch.cuda.nccl.version()`` is a number of the headers: with libnccl.so.2 of 2.32.3 it said 2.28.9.

    Args:
        name: the library, by the name in it.

    Returns:
        Its three numbers, as ncclGetVersion (nccl.h) codes them; nothing where torch has it within itself.
    """
    version = ctypes.c_int()
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        if library.ncclGetVersion(ctypes.byref(version)) != 0:
            return ()
    except (OSError, AttributeError):
        return ()
    # Up to 2.8 a thousand was a major release.
    major, rest = divmod(version.value, 10_000 if version.value >= 10_000 else 1_000)
    return major, rest // 100, rest % 100


class TorchGroup(Group):
    """All ranks, once the default group of ``torch.distributed`` stands.

    Args:
        torch: the module.
        rank: this one, which has met the others at the store.
        backend: "nccl" or "gloo".
    """

    def __init__(self, torch: Any, rank: TorchRank, backend: str) -> None:
        self.torch = torch
        self.dist: Any = torch.distributed
        self.me = rank
        self.on_gpu = backend == "nccl"
        self.place: Any = (
            torch.device("cuda", rank.local_rank) if self.on_gpu else torch.device("cpu")
        )
        self.rank, self.world, self.backend = rank.rank, self.dist.get_world_size(), backend

    def identity(self) -> dict[str, str]:
        """Return versions, and the GPU."""
        nccl = ""
        if self.on_gpu:
            version = loaded_nccl() or self.torch.cuda.nccl.version()
            nccl = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
        device = self.torch.cuda.get_device_name(self.place) if self.on_gpu else "cpu"
        return {"torch": self.torch.__version__, "nccl": nccl, "device": device}

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum int64 values."""
        vector = self.torch.tensor(values, dtype=self.torch.int64, device=self.place)
        self.dist.all_reduce(vector)
        numbers: list[int] = vector.cpu().tolist()
        return numbers

    def gather(self, data: bytes) -> list[bytes]:
        """Gather bytes: torch's own object gather needs numpy, which torch does not bring along, and pickle."""
        local = self.torch.tensor(list(data), dtype=self.torch.uint8, device=self.place)
        parts = [self.torch.empty_like(local) for _ in range(self.world)]
        self.dist.all_gather(parts, local)
        return [bytes(part.cpu().tolist()) for part in parts]

    def largest(self, value: float) -> float:
        """Find the largest value by one all-reduce, whatever the number of ranks."""
        number = self.torch.tensor([value], dtype=self.torch.float64, device=self.place)
        self.dist.all_reduce(number, op=self.dist.ReduceOp.MAX)
        return float(number.item())

    def meet(self) -> None:
        """Wait for all ranks: gloo's monitored barrier is the only one that names who did not come."""
        if self.on_gpu:
            self.dist.barrier(device_ids=[self.me.local_rank])
            self.torch.cuda.synchronize()
        else:
            limit = self.me.within(self.me.config["group_seconds"])
            self.dist.monitored_barrier(timeout=limit, wait_all_ranks=True)

    def ready(self) -> None:
        """Wait for this rank's own GPU: all ranks have just agreed on a number."""
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def fits(self, size: int) -> bool:
        """Ask the GPU for free memory, which others may hold."""
        return not self.on_gpu or bool(size * BUFFERS <= self.torch.cuda.mem_get_info()[0])

    def pairs(self, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Exchange between barriers, so that all pairs are at it at the same time."""
        self.meet()
        rows = exchange(self, members)
        self.meet()
        return rows

    def buffer(self, count: int) -> Buffer:
        """Make a tensor of float32."""
        return TorchFloats(self, count)

    def leave(self) -> None:
        """Wait shortly until all ranks are done, so that leaving cuts off no last message."""
        store = self.me.store
        limit = time.monotonic() + FAREWELL
        gone = store.add("done", 1)
        while gone < self.world and time.monotonic() < limit:
            time.sleep(0.02)
            gone = store.add("done", 0)


class TorchFloats(Buffer):
    """A tensor of float32 values, and a second one for sums that keep their input."""

    def __init__(self, group: TorchGroup, count: int) -> None:
        self.group = group
        torch = group.torch
        self.values: Any = torch.zeros(count, dtype=torch.float32, device=group.place)
        self.result: Any = torch.zeros_like(self.values)

    def _wave(self, base: int, step: int) -> Any:
        torch = self.group.torch
        numbers = torch.arange(len(self.values), device=self.group.place, dtype=torch.int32)
        return numbers.remainder_(WAVE).mul_(step).add_(base)

    def fill(self, base: int, step: int) -> None:
        """Overwrite the values where they are."""
        if base or step:
            self.values.copy_(self._wave(base, step))
        else:
            self.values.zero_()

    def all_reduce(self) -> None:
        """Sum in place; NCCL only begins."""
        self.group.dist.all_reduce(self.values)

    def all_reduce_copy(self) -> None:
        """Copy first, as a caller that keeps its input has to."""
        self.result.copy_(self.values)
        self.group.dist.all_reduce(self.result)

    def settle(self) -> None:
        """Wait for the GPU."""
        self.group.ready()

    def wrong(self, base: int, step: int) -> int:
        """Count on the device."""
        return int((self.values != self._wave(base, step)).sum().item())
