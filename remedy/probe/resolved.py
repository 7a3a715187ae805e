"""What names resolve to on a host, without a table of the whole fleet for each of its hosts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property

Addresses = tuple[str, ...]


class Answers(dict[str, Addresses]):
    """The addresses of names, as many hosts have them; not to be changed."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all of them."""
        return hashlib.sha256(json.dumps(self, sort_keys=True).encode()).hexdigest()


class Resolved(Mapping[str, Addresses]):
    """The addresses of names: what many hosts answer alike, and what one of them answers otherwise.

    >>> alike = Answers(a=("10.0.0.1",), b=("10.0.0.2",))
    >>> answers = Resolved(alike, {"a": ("127.0.1.1",)})
    >>> dict(answers)
    {'a': ('127.0.1.1',), 'b': ('10.0.0.2',)}

    Args:
        alike: one object for all hosts that have it.
        otherwise: what counts in its place, or beside it.
    """

    def __init__(self, alike: Answers, otherwise: Mapping[str, Addresses]) -> None:
        self.alike = alike
        self.otherwise = otherwise

    def __getitem__(self, name: str) -> Addresses:
        """Return the addresses of a name."""
        return self.otherwise[name] if name in self.otherwise else self.alike[name]

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        yield from self.alike
        yield from (name for name in self.otherwise if name not in self.alike)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self.alike) + sum(name not in self.alike for name in self.otherwise)
