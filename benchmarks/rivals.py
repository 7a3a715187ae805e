"""How others look for the culprit, over the same simulated tests.

Each is written from its published description. A search returns what it accuses and how many rounds it took;
the fleet counts the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from benchmarks.simulated import SimulatedFleet
from remedy.verify.isolate.model import Fault, Test
from remedy.verify.isolate.planner import Isolation

Search = Callable[[SimulatedFleet], tuple[set[Fault], int]]


def remedy(fleet: SimulatedFleet) -> tuple[set[Fault], int]:
    """Adaptive group testing with hosts and pairs."""
    isolation = Isolation(fleet.hosts)
    while tests := isolation.next_round():
        isolation.take([fleet.run(test) for test in tests])
    return set(isolation.faults), isolation.rounds


def exhaustive(fleet: SimulatedFleet) -> tuple[set[Fault], int]:
    """Every pair, by the circle method; a host of which most pairs fail is broken, other pairs are."""
    failed = [
        (first, second)
        for at, first in enumerate(fleet.hosts)
        for second in fleet.hosts[at + 1 :]
        if not _passes(fleet, first, second)
    ]
    often = Counter(host for pair in failed for host in pair)
    broken = {host for host, count in often.items() if count > (len(fleet.hosts) - 1) / 2}
    faults: set[Fault] = {Fault((host,)) for host in broken}
    faults |= {_pair(*pair) for pair in failed if not broken.intersection(pair)}
    return faults, len(fleet.hosts) - 1 + len(fleet.hosts) % 2


def two_pass(fleet: SimulatedFleet) -> tuple[set[Fault], int]:
    """Random disjoint pairs, then each host of a failed pair with one that passed (cluster-health-scanner)."""
    hosts = list(fleet.hosts)
    Random(1).shuffle(hosts)  # noqa: S311
    pairs = list(zip(hosts[::2], hosts[1::2], strict=False))
    if len(hosts) % 2:
        pairs.append((hosts[-1], hosts[0]))
    passed: list[str] = []
    suspects: list[str] = []
    for pair in pairs:
        (passed if _passes(fleet, *pair) else suspects).extend(pair)
    if not suspects or not passed:
        return {Fault((host,)) for host in suspects}, 1
    good = (passed * len(suspects))[: len(suspects)]
    rounds = 1 + -(-len(suspects) // len(set(passed)))
    return {
        Fault((suspect,))
        for suspect, partner in zip(suspects, good, strict=True)
        if not _passes(fleet, suspect, partner)
    }, rounds


def two_rounds(fleet: SimulatedFleet) -> tuple[set[Fault], int]:
    """Adjacent pairs, then the fastest with the slowest; a fault has failed twice (DLRover)."""
    hosts = list(fleet.hosts)

    def paired(order: Sequence[str]) -> dict[str, bool]:
        groups = [list(order[at : at + 2]) for at in range(0, len(order) - 1, 2)]
        if len(order) % 2:
            groups[-1].append(order[-1])
        worked: dict[str, bool] = {}
        for group in groups:
            worked |= dict.fromkeys(group, fleet.run(Test(tuple(group), "screen")).passed)
        return worked

    first = paired(hosts)
    # Those that failed are the slowest of all.
    ranked = sorted(hosts, key=lambda host: not first[host])
    crossed = [host for pair in zip(ranked, reversed(ranked), strict=True) for host in pair]
    second = paired(crossed[: len(hosts)])
    return {Fault((h,)) for h in hosts if not first[h] and not second.get(h, first[h])}, 2


def bisection(fleet: SimulatedFleet) -> tuple[set[Fault], int]:
    """Halve what fails, both halves at once, down to pairs; then each survivor with a host that passed."""
    if fleet.run(Test(fleet.hosts, "fleet")).passed:
        return set(), 1
    level, rounds = [fleet.hosts], 1
    good: list[str] = []
    suspects: list[str] = []
    while level:
        rounds += 1
        below = []
        for group in level:
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                if len(half) < 2:
                    suspects += half
                elif fleet.run(Test(half, "half")).passed:
                    good += half
                elif len(half) == 2:
                    suspects += half
                else:
                    below.append(half)
        level = below
    if not good:
        return {Fault((host,)) for host in suspects}, rounds
    faults: set[Fault] = {
        Fault((suspect,))
        for number, suspect in enumerate(suspects)
        if not _passes(fleet, suspect, good[number % len(good)])
    }
    return faults, rounds + 1


def _passes(fleet: SimulatedFleet, host: str, peer: str) -> bool:
    return fleet.run(Test((host, peer), "confirm")).passed


def _pair(host: str, peer: str) -> Fault:
    return Fault((min(host, peer), max(host, peer)))


ALL: dict[str, Search] = {
    "remedy": remedy,
    "plain bisection": bisection,
    "two-pass (cluster-health-scanner)": two_pass,
    "two rounds (DLRover)": two_rounds,
    "exhaustive pairs": exhaustive,
}
