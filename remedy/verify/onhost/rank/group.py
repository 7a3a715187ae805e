"""A group of ranks, as an engine connects them, and the values that it sums.

It travels to the hosts: standard library only, Python >= 3.8.
"""

from __future__ import annotations

from typing import Any

# Element i of a checked buffer is i modulo this: float32 counts exactly up to 2**24, for 16,000 ranks and more.
WAVE = 8


class Buffer:
    """Float32 values that an engine sums over all ranks."""

    def fill(self, base: int, step: int) -> None:
        """Make element i ``base + i % WAVE * step``."""
        raise NotImplementedError

    def all_reduce(self) -> None:
        """Sum in place."""
        raise NotImplementedError

    def all_reduce_copy(self) -> None:
        """Sum into another buffer, keeping the input."""
        raise NotImplementedError

    def settle(self) -> None:
        """Wait until all sums are done; nothing to do where each is done when it returns."""

    def wrong(self, base: int, step: int) -> int:
        """Count the elements that are not ``base + i % WAVE * step``."""
        raise NotImplementedError


class Group:
    """All ranks of a run.

    Args:
        rank, world: this rank's number, and how many there are, as the engine says.
        backend: what carries the sum.
        software: name and version of what sums, the same on all hosts of a sound fleet.
        device: what it sums on.
        unusable: why by rank, where the group had to do without what was planned.
        inside: seconds of an all-reduce among the ranks of this host, where that was tried.
    """

    rank: int
    world: int
    backend: str
    software: str = ""
    device: str = "cpu"
    unusable: dict[str, str] = {}  # noqa: RUF012  (replaced, never changed)
    inside: float | None = None

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum a vector of integers (each sum below 2**56) over all ranks."""
        raise NotImplementedError

    def gather(self, data: bytes) -> list[bytes]:
        """Gather every rank's bytes, in rank order; all ranks MUST give the same number of them."""
        raise NotImplementedError

    def buffer(self, count: int) -> Buffer:
        """Make a buffer of ``count`` elements."""
        raise NotImplementedError

    def leave(self) -> None:
        """Part with the others, when all of them have come as far."""
        raise NotImplementedError

    def identity(self) -> dict[str, str]:
        """Name what sums, and on what: to be compared over the hosts."""
        return {"software": self.software, "device": self.device}

    def largest(self, value: float) -> float:
        """Find the largest of all ranks' values, by which all of them decide alike."""
        return max(float(text) for text in self.gather(f"{value:24.12f}".encode("ascii")))

    def meet(self) -> None:
        """Wait for all ranks."""
        self.gather(b"here")

    def ready(self) -> None:
        """Make sure that all ranks begin to measure at the same time."""
        self.gather(b"here")

    def fits(self, size: int) -> bool:  # noqa: ARG002  (of memory that is shared with others)
        """Say whether there is memory for a measurement of so many bytes."""
        return True

    def pairs(self, members: list[dict[str, Any]]) -> list[dict[str, Any]] | None:  # noqa: ARG002
        """Exchange data with a few other hosts, one by one; None where the engine cannot.

        Args:
            members: the identities of all ranks, in rank order.

        Returns:
            of each partner ``rank``, ``bytes`` in either direction, and ``seconds`` for both.
        """
        return None
