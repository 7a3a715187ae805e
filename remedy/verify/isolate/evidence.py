"""What the tests so far prove, and what the accused explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from remedy.verify.isolate.model import Fault, TestResult

# Where the largest part is no more than a quarter of all, two halves are tested: one that fails tells more.
QUARTER = 4
# Where it is so much of all already, little is left to prove, and that can wait while hosts are sought.
MOSTLY = 0.8


class Evidence:
    """The results, and for each host those that it is known to work with.

    Sets of hosts are bit masks: 2,048 hosts have two million pairs.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self.place = {host: number for number, host in enumerate(self.hosts)}
        self.fine = [1 << number for number in range(len(self.hosts))]
        self.passed: list[TestResult] = []
        self.failed: list[TestResult] = []

    def add(self, result: TestResult) -> None:
        """Take a result: all pairs of a group that worked are fine."""
        if not result.passed:
            self.failed.append(result)
            return
        self.passed.append(result)
        mask = self.mask(result.test.hosts)
        for host in result.test.hosts:
            self.fine[self.place[host]] |= mask

    def mask(self, hosts: Iterable[str]) -> int:
        """Make a number of a set of hosts."""
        return sum(1 << self.place[host] for host in set(hosts))

    def good(self, host: str) -> bool:
        """Say whether a host ever worked with another."""
        number = self.place[host]
        return self.fine[number] != 1 << number

    def gaps(self, hosts: Collection[str]) -> int:
        """Count the pairs among these hosts that were never in a group that worked."""
        mask = self.mask(hosts)
        return sum((mask & ~self.fine[self.place[host]]).bit_count() for host in hosts) // 2

    def proven(self, hosts: Collection[str]) -> bool:
        """Say whether every two of these hosts were once in a group that worked."""
        return not self.gaps(hosts)

    def unseen(self, host: str) -> int:
        """Count the hosts with which one has not been seen to work yet."""
        return len(self.hosts) - self.fine[self.place[host]].bit_count()

    def partners(self, host: str) -> list[str]:
        """List the good hosts, those far away from one first: they share little with it."""
        half = (self.place[host] + len(self.hosts) // 2) % len(self.hosts)
        return [other for other in (*self.hosts[half:], *self.hosts[:half]) if self.good(other)]

    def unexplained(self, faults: Collection[Fault]) -> list[tuple[str, ...]]:
        """List the groups that failed though none of these faults is in them."""
        groups = [result.test.hosts for result in self.failed]
        return [hosts for hosts in groups if not any(fault.breaks(hosts) for fault in faults)]

    def largest_fine(self, among: Collection[str]) -> list[str]:
        """Find the most of these hosts that were together in one group that worked; one good host at least."""
        members = set(among)
        best: set[str] = set()
        for result in self.passed:
            common = members.intersection(result.test.hosts)
            best = max(best, common, key=len)
        return [host for host in among if host in best]

    def line(self, hosts: Sequence[str], spans: Collection[str]) -> tuple[list[str], int]:
        """Put a group in the order of a hunt.

        Args:
            hosts: the group.
            spans: hosts that other hunts are after.

        Returns:
            the hosts, and how many at the beginning are known to work together: where nothing is known, a good
            host that the hunt keeps for itself.
        """
        begin = self.largest_fine(hosts)
        if not begin:
            begin = [host for host in self.partners(hosts[0]) if host not in spans][:1]
        first = set(begin)
        return [*begin, *(host for host in hosts if host not in first)], len(begin)

    def parts(self, among: Sequence[str]) -> list[tuple[str, ...]]:
        """Split hosts into parts each of which is known to work, the largest first where there is a choice."""
        parts = []
        remaining = list(among)
        while remaining:
            begin = self.largest_fine(remaining) or remaining[:1]
            common = self.mask(remaining)
            for host in begin:
                common &= self.fine[self.place[host]]
            part = list(begin)
            for host in remaining:
                if common >> self.place[host] & 1 and host not in begin:
                    part.append(host)
                    common &= self.fine[self.place[host]]
            parts.append(tuple(part))
            remaining = [host for host in remaining if host not in set(part)]
        return parts

    def clusters(self, among: Collection[str]) -> list[tuple[str, ...]]:
        """Gather the hosts that are linked by pairs which are not proven yet; others are in none of these."""
        remaining = self.mask(among)
        clusters = []
        for host in among:
            if not remaining >> self.place[host] & 1:
                continue
            members = frontier = 1 << self.place[host]
            remaining &= ~members
            while frontier:
                number = frontier.bit_length() - 1
                more = remaining & ~self.fine[number]
                frontier = (frontier & ~(1 << number)) | more
                members |= more
                remaining &= ~more
            if members.bit_count() > 1:
                clusters.append(tuple(h for h in among if members >> self.place[h] & 1))
        return clusters

    def meanwhile(
        self,
        among: Sequence[str],
        apart: Collection[frozenset[str]],
        *,
        several: bool,
        paired: bool,
    ) -> list[list[str]]:
        """Form groups of hosts that nobody is after while hunts go on.

        Args:
            among: the hosts. Good ones are tested apart from others, so that what fails is a host or a pair.
            apart: pairs that must not meet.
            several: whether several hunts go on.
            paired: whether a pair was sought: the next one is to show early.
        """
        good = self.unproven([host for host in among if self.good(host)], apart)
        if several:
            good = [part for group in good for part in self._portioned(group, paired)]
        return [*good, *self.unproven([host for host in among if not self.good(host)], apart)]

    def _portioned(self, among: Sequence[str], paired: bool) -> list[list[str]]:
        """How good hosts are tested while several hunts go on: in halves, together, or not yet."""
        parts = self.parts(among)
        largest = len(parts[0])
        if QUARTER * largest > len(among):
            return [list(among)] if paired or largest < MOSTLY * len(among) else []
        middle = len(parts) // 2
        return [
            [host for part in half for host in part] for half in (parts[:middle], parts[middle:])
        ]

    def unproven(
        self, among: Collection[str], apart: Collection[frozenset[str]], *, filled: bool = False
    ) -> list[list[str]]:
        """Form disjoint groups that would prove the pairs among these hosts which are not proven yet.

        Args:
            among: the hosts.
            apart: pairs that must not meet.
            filled: whether hosts that have nothing left to prove join them, as far as they may meet: a larger
                group costs no more, and proves again what a single test proved.
        """
        remaining = self.mask(among)
        forbidden = dict.fromkeys(among, 0)
        for pair in apart:
            for host in pair & forbidden.keys():
                forbidden[host] |= self.mask(pair - {host})
        need = {h: remaining & ~self.fine[self.place[h]] & ~forbidden[h] for h in among}
        order = sorted((h for h in among if need[h]), key=lambda h: -need[h].bit_count())
        groups = []
        while order:
            group = self._grown(order, need, forbidden)
            if len(group) > 1:
                groups.append(group)
            taken = set(group)
            order = [host for host in order if host not in taken]
        if filled and groups:
            taken = {host for group in groups for host in group}
            groups += [[host] for host in among if host not in taken]
        return [group for group in self._joined(groups, forbidden) if len(group) > 1]

    def _joined(self, groups: Sequence[list[str]], forbidden: Mapping[str, int]) -> list[list[str]]:
        """Groups that may meet, as one: a single test proves them all."""
        joined: list[tuple[list[str], int, int]] = []
        for group in groups:
            members, banned = self.mask(group), 0
            for host in group:
                banned |= forbidden[host]
            for at, (hosts, others, never) in enumerate(joined):
                if not (members & never or banned & others):
                    joined[at] = ([*hosts, *group], others | members, never | banned)
                    break
            else:
                joined.append((group, members, banned))
        return [hosts for hosts, _, _ in joined]

    def _grown(
        self, order: Sequence[str], need: Mapping[str, int], forbidden: Mapping[str, int]
    ) -> list[str]:
        """The first host with all that it, or one already taken, still has to be seen with."""
        group = [order[0]]
        members, banned = 1 << self.place[order[0]], forbidden[order[0]]
        waiting = list(order[1:])
        while waiting:
            later = []
            for host in waiting:
                bit = 1 << self.place[host]
                if banned & bit:
                    continue
                if need[host] & members:
                    group.append(host)
                    members |= bit
                    banned |= forbidden[host]
                else:
                    later.append(host)
            if len(later) == len(waiting):
                break
            waiting = later
        return group

    def doubts(self, fault: Fault, faults: Iterable[Fault]) -> list[str] | None:
        """Find what speaks against an accusation: hosts each of which may be the other end of a broken link.

        Returns:
            those with which the accused was in all the failed groups that no other fault explains; all hosts
            where there is no such group; None where the accusation stands.
        """
        (suspect,) = fault.hosts
        rest = [known for known in faults if known != fault]
        common: set[str] | None = None
        for result in self.failed:
            hosts = set(result.test.hosts)
            if suspect in hosts and not any(known.breaks(hosts) for known in rest):
                common = hosts if common is None else common & hosts
        if common is None:
            return list(self.hosts)
        return sorted(common - {suspect}, key=self.place.__getitem__) or None


def suspects_of(result: TestResult) -> dict[str, frozenset[str]]:
    """Find the fewest hosts that explain what a failed group reported of itself.

    Returns:
        each with the hosts between which and it nobody answered.
    """
    partners: dict[str, set[str]] = {}
    for source, target in result.unanswered:
        partners.setdefault(source, set()).add(target)
        partners.setdefault(target, set()).add(source)
    suspects = set(result.missing)
    unexplained = [set(way) for way in result.unanswered if not suspects & set(way)]
    while unexplained:
        counted = Counter(host for way in unexplained for host in way)
        most = max(sorted(counted), key=counted.__getitem__)
        suspects.add(most)
        unexplained = [way for way in unexplained if most not in way]
    return {host: frozenset(partners.get(host, ())) for host in sorted(suspects)}


def new_suspects(
    result: TestResult, followed: dict[str, frozenset[str]], evidence: Evidence
) -> dict[str, frozenset[str]]:
    """Find the hosts that a failed group named and that were not followed up for it before.

    Args:
        result: of the group.
        followed: whom each named host was followed up with; what is new is added.
        evidence: of who is good.
    """
    suspects = {}
    for host, hinted in suspects_of(result).items():
        fresh = hinted - followed.get(host, frozenset())
        if fresh or (host not in followed and not evidence.good(host)):
            suspects[host] = fresh
            followed[host] = followed.get(host, frozenset()) | fresh
    return suspects
