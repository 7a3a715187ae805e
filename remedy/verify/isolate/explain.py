"""The failure graph of directed ways, explained by the fewest hosts and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from remedy.verify.isolate.model import Way

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
    ways: frozenset[Way] = frozenset()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it concerns."""
        return (self.host, self.target) if self.target else (self.host,)

    def __str__(self) -> str:
        words = {"in": f"{self.host} is not reached", "out": f"{self.host} reaches nobody"}
        return words.get(self.kind, f"{self.host} -> {self.target}")


def explain_ways(failed: Collection[Way], tried: Collection[Way]) -> tuple[Cause, ...]:
    """Explain failed ways by the fewest causes, hosts before pairs.

    Args:
        failed: ways that did not work.
        tried: all ways that were tested, those that failed among them.
    """
    into, out = Counter(t for _, t in tried), Counter(s for s, _ in tried)
    left = set(failed)
    causes: list[Cause] = []
    while left:
        bad_in, bad_out = Counter(t for _, t in left), Counter(s for s, _ in left)
        # The share counts what no other host explains already: a dead host must not drag its peers along.
        gone = set(failed) - left
        in_left = {h: into[h] - sum(1 for _, t in gone if t == h) for h in bad_in}
        out_left = {h: out[h] - sum(1 for s, _ in gone if s == h) for h in bad_out}
        choices = [
            (count, count / total[host], kind, host)
            for kind, bad, total in (("in", bad_in, in_left), ("out", bad_out, out_left))
            for host, count in bad.items()
            if count >= FEWEST and count >= SHARE * total[host]
        ]
        if not choices:
            break
        _, _, kind, host = max(choices, key=lambda c: (c[0], c[1], c[2], c[3]))
        side = 1 if kind == "in" else 0
        ways = frozenset(way for way in left if way[side] == host)
        causes.append(Cause("in" if kind == "in" else "out", host, "", ways))
        left -= ways
    causes += [Cause("way", s, t, frozenset({(s, t)})) for s, t in sorted(left)]
    return tuple(causes)
