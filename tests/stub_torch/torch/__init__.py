"""A stub of torch: the few calls that a rank of the engine ``torch`` makes, by the standard library alone.

It starts in a tenth of a second where torch takes seconds. It has no GPU, and sums slowly: tests that use it
measure small sizes.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from . import distributed as distributed

__version__ = "0.0"
int64, int32, float32, float64, uint8 = "q", "i", "f", "d", "B"
cuda = SimpleNamespace(is_available=lambda: False)
version = SimpleNamespace(cuda=None)


def device(kind: str, index: int = 0) -> str:
    """Name a device; there is one."""
    return f"{kind}:{index}"


class Tensor:
    """Numbers of one type, in one dimension."""

    def __init__(self, numbers: array[Any]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> Tensor:
        return Tensor(self.numbers[part])

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        others = other.numbers if isinstance(other, Tensor) else [other] * len(self)
        return Tensor(array("b", map(operator.ne, self.numbers, others)))

    __hash__ = None  # type: ignore[assignment]

    def _each(self, numbers: Iterable[float]) -> Tensor:
        self.numbers[:] = array(self.numbers.typecode, numbers)
        return self

    def remainder_(self, by: int) -> Tensor:
        """Replace each number by its remainder."""
        return self._each([n % by for n in self.numbers])

    def mul_(self, by: int) -> Tensor:
        """Multiply each number."""
        return self._each([n * by for n in self.numbers])

    def add_(self, more: int) -> Tensor:
        """Add to each number."""
        return self._each([n + more for n in self.numbers])

    def copy_(self, source: Tensor) -> Tensor:
        """Take the numbers of another tensor."""
        return self._each(source.numbers)

    def zero_(self) -> Tensor:
        """Make each number 0."""
        return self._each(array(self.numbers.typecode, bytes(self.size())))

    def size(self) -> int:
        """Count bytes."""
        return len(self.numbers) * self.numbers.itemsize

    def sum(self) -> Tensor:
        """Add all numbers up."""
        return Tensor(array("q", [sum(map(int, self.numbers))]))

    def any(self) -> Tensor:
        """Say whether a number is not 0."""
        return Tensor(array("b", [any(self.numbers)]))

    def item(self) -> float:
        """Return the only number."""
        (number,) = self.numbers.tolist()
        return float(number)

    def cpu(self) -> Tensor:
        """Return itself: it is there already."""
        return self

    def tolist(self) -> list[float]:
        """Return all numbers."""
        numbers: list[float] = self.numbers.tolist()
        return numbers


def tensor(numbers: list[float], dtype: str = float32, device: str = "") -> Tensor:  # noqa: ARG001
    """Make a tensor of numbers."""
    return Tensor(array(dtype, numbers))


def zeros(count: int, dtype: str = float32, device: str = "") -> Tensor:  # noqa: ARG001
    """Make a tensor of so many zeros."""
    return Tensor(array(dtype, bytes(count * array(dtype).itemsize)))


def full(shape: tuple[int], value: float, device: str = "") -> Tensor:  # noqa: ARG001
    """Make a tensor of one number, many times."""
    return Tensor(array(float32, [value]) * shape[0])


def arange(count: int, dtype: str = float32, device: str = "") -> Tensor:  # noqa: ARG001
    """Make a tensor of 0, 1, 2 and so on."""
    return Tensor(array(dtype, range(count)))


def zeros_like(other: Tensor) -> Tensor:
    """Make a tensor of zeros, as large as another."""
    return zeros(len(other), other.numbers.typecode)


empty_like = zeros_like
