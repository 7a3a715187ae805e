"""Who proves a wave with it: hosts that an earlier wave proved, and hosts whose last proof still holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from remedy.plan import Plan
from remedy.probe import fingerprint
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session
from remedy.verify.last import load


@dataclass(frozen=True)
class Ground:
    """What the choice of partners rests on.

    Args:
        still_proved: hosts whose last proof still holds: they are as they were when it was made.
        proved_once: hosts that took part in the last proof, also those that have changed since.
        to_change: the hosts that the run changes.
    """

    still_proved: tuple[str, ...] = ()
    proved_once: frozenset[str] = frozenset()
    to_change: frozenset[str] = frozenset()

    def partners(
        self,
        wave: Sequence[str],
        proved_now: Collection[str] = (),
        begun: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Return the hosts that prove a wave with it, at most as many as it has itself.

        Args:
            wave: its hosts.
            proved_now: those that an earlier wave of this run proved.
            begun: all of earlier waves. The last proof of one that was not proved after them holds no longer.

        A host that the run will still change may lack what a new host needs (its name, its rules): it is a
        partner only of hosts that were proved with it before.
        """
        known = set(wave) <= self.proved_once
        others = [host for host in self.still_proved if host not in {*wave, *begun}]
        holding = [host for host in others if known or host not in self.to_change]
        candidates = list(dict.fromkeys([*(h for h in proved_now if h not in wave), *holding]))
        # Neighbours share switches: those in the middle of the rest have seen more of the network.
        half = len(candidates) // 2
        return tuple([*candidates[half:], *candidates[:half]][: max(1, len(wave))])


def ground_of(session: Session, result: ProbeResult, plan: Plan) -> Ground:
    """Return what is known of the last proof, for hosts as they were read before anything is changed."""
    last = load(session.home)
    if isinstance(last, str) or not last.passed:
        return Ground(to_change=frozenset(plan.hosts))
    states = result.fleet.states
    held = (
        n for n, mark in last.fingerprints.items() if n in states and fingerprint(states[n]) == mark
    )
    return Ground(tuple(held), frozenset(last.fingerprints), frozenset(plan.hosts))


def with_pair(
    sizes: Sequence[tuple[str, ...]], ground: Ground, earlier: Collection[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the waves with a second host in the first where nobody else can prove the first alone.

    Args:
        sizes: the waves.
        ground: for the choice of partners.
        earlier: hosts that are proved before the first wave.
    """
    if len(sizes) < 2 or len(sizes[0]) > 1 or ground.partners(sizes[0], earlier, earlier):
        return tuple(sizes)
    first, second, *rest = sizes
    widened = ((*first, second[0]), second[1:], *rest)
    return tuple(wave for wave in widened if wave)
