"""What the rules of a firewall do with new TCP connections from peers.

Rules are reduced to what matters for that: which sources and ports they match, whether they match for
certain, and what then happens. Sources and ports are treated as sets, so that the answer holds for every peer
and every port, whatever their number. A condition that cannot be decided from the rules alone (a rate limit, a
mark, a set that iptables keeps elsewhere) makes a rule uncertain: it neither lets in nor keeps out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from remedy.firewall.spans import Spans, meet, merge, minus

DEEPEST = 32
"""Chains called one from another; the kernel allows 16 in nftables."""


@dataclass(frozen=True)
class Rule:
    """One rule, as far as a new TCP connection is concerned.

    Args:
        action: "accept", "drop", "jump", "goto", "return" or "pass" (the next rule decides).
        target: the chain of a jump or goto.
        sources: addresses it matches; None: all.
        ports: ports it matches; None: all.
        certain: whether nothing else decides if it matches.
        words: the rule as its firewall shows it.
    """

    action: str
    target: str = ""
    sources: Spans | None = None
    ports: Spans | None = None
    certain: bool = True
    words: str = ""


@dataclass(frozen=True)
class Chain:
    """Rules in order, and what happens at their end ("accept" or "drop"; "" goes back to the caller)."""

    rules: tuple[Rule, ...]
    policy: str = ""


@dataclass(frozen=True)
class Traffic:
    """New connections from each of ``sources`` to each of ``ports``."""

    sources: Spans
    ports: Spans


@dataclass(frozen=True)
class Dropped:
    """What is kept out, and by which rules, as their tool prints them."""

    sources: Spans = ()
    ports: Spans = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)


@dataclass
class _Walk:
    chains: Mapping[str, Chain]
    dropped: list[tuple[Traffic, str]] = field(default_factory=list)

    def through(self, name: str, traffic: list[Traffic], depth: int = 0) -> list[Traffic]:
        """Send ``traffic`` through a chain; return what comes back to the caller, where there is one."""
        chain = self.chains.get(name)
        if chain is None or depth > DEEPEST:
            return traffic
        back: list[Traffic] = []
        for rule in chain.rules:
            if rule.action == "pass" or not rule.certain:
                continue
            remaining: list[Traffic] = []
            for part in traffic:
                hit, missed = _split(part, rule)
                remaining += missed
                if hit is None:
                    continue
                if rule.action == "drop":
                    self.dropped.append((hit, rule.words))
                elif rule.action == "return":
                    back.append(hit)
                elif rule.action == "goto":
                    back += self.through(rule.target, [hit], depth + 1)
                elif rule.action == "jump":
                    remaining += self.through(rule.target, [hit], depth + 1)
            traffic = remaining
            if not traffic:
                break
        traffic = back + traffic
        if chain.policy == "drop":
            self.dropped += [(part, f"chain {name}: policy drop") for part in traffic]
        return traffic


def _split(traffic: Traffic, rule: Rule) -> tuple[Traffic | None, list[Traffic]]:
    """Return the part that ``rule`` matches, and the parts that it does not."""
    sources = traffic.sources if rule.sources is None else meet(traffic.sources, rule.sources)
    ports = traffic.ports if rule.ports is None else meet(traffic.ports, rule.ports)
    if not sources or not ports:
        return None, [traffic]
    others = minus(traffic.sources, sources)
    missed = [Traffic(others, traffic.ports)] if others else []
    if remaining := minus(traffic.ports, ports):
        missed.append(Traffic(sources, remaining))
    return Traffic(sources, ports), missed


def dropped_by(chains: Mapping[str, Chain], base: str, traffic: Traffic) -> Dropped:
    """Return what of ``traffic`` the base chain ``base`` keeps out.

    Args:
        chains: all chains that can be called from it, by name.
        base: where packets come in.
        traffic: the connections.
    """
    if not traffic.sources or not traffic.ports:
        return Dropped()
    walk = _Walk(chains)
    walk.through(base, [traffic])
    return Dropped(
        merge(span for part, _ in walk.dropped for span in part.sources),
        merge(span for part, _ in walk.dropped for span in part.ports),
        tuple(dict.fromkeys(words for _, words in walk.dropped)),
    )
