"""The failure graph of directed ways, explained by the fewest hosts and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from remedy.verify.isolate.model import Link

# A host is blamed for its ways, rather than each way for itself, where at least this share of them fails:
# a host with a closed firewall may still be reached by the few that had a connection open.
SHARE = 0.6
FEWEST = 2


@dataclass(frozen=True)
class Cause:
    """What explains failed ways.

    Args:
        kind: "in": the host is not reached by others; "out": it does not reach others; "way": one way.
        host: the host, or the source of the way.
        target: of the way; "" otherwise.
        ways: what it explains.
    """

    kind: Literal["in", "out", "way"]
    host: str
    target: str = ""
    ways: frozenset[Link] = frozenset()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it concerns."""
        return (self.host, self.target) if self.target else (self.host,)

    def __str__(self) -> str:
        words = {"in": f"{self.host} is not reached", "out": f"{self.host} reaches nobody"}
        return words.get(self.kind, f"{self.host} -> {self.target}")


def explain_ways(failed: Collection[Link], each: int) -> tuple[Cause, ...]:
    """Explain failed ways by the fewest causes, hosts before pairs.

    Args:
        failed: ways that did not work.
        each: how many ways lead to each host, and as many from it: the number of the others.
    """
    left = set(failed)
    causes: list[Cause] = []
    while left:
        bad_in, bad_out = Counter(t for _, t in left), Counter(s for s, _ in left)
        # The share counts what no other host explains already: a dead host must not drag its peers along.
        gone = set(failed) - left
        gone_in, gone_out = Counter(t for _, t in gone), Counter(s for s, _ in gone)
        choices = [
            (count, kind, host)
            for kind, bad, other in (("in", bad_in, gone_in), ("out", bad_out, gone_out))
            for host, count in bad.items()
            if count >= FEWEST and count >= SHARE * (each - other[host])
        ]
        if not choices:
            break
        _, kind, host = max(choices)
        side = 1 if kind == "in" else 0
        ways = frozenset(way for way in left if way[side] == host)
        causes.append(Cause("in" if kind == "in" else "out", host, "", ways))
        left -= ways
    causes += [Cause("way", s, t, frozenset({(s, t)})) for s, t in sorted(left)]
    return tuple(causes)
