"""Looking for the culprits of an all-reduce that failed: the planned tests, run for real.

Each test is a small all-reduce with a deadline of its own; the tests of a round run at the same time, on
disjoint hosts.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from statistics import median

from remedy.text import counted, folded, listed
from remedy.verify.accusations import names_of, summary
from remedy.verify.allreduce.plan import RankPlan, part
from remedy.verify.allreduce.run import GroupRun, launch
from remedy.verify.isolate.model import Fault, Link, Test, TestResult
from remedy.verify.isolate.planner import Isolation
from remedy.verify.reach.plan import ReachHost, plan_reach
from remedy.verify.reach.run import try_links
from remedy.verify.scripts import Run
from remedy.verify.verdict import (
    Culprit,
    GroupTest,
    HostVerdict,
    Rung,
    Verdict,
    accused,
)

# Seconds for a test: two imports of torch on busy processors, and a group that hangs; at most so many.
BASE, PER_HOST, MOST = 25.0, 0.2, 90.0
# Where hosts are known to start slowly: so many times as long, and these seconds for the rest. What was
# measured has no limit of its own: it would accuse hosts that are merely slower than it.
STARTS, REST = 2.0, 15.0
# So many times as long has a group with a host that was only late before: it gets one second chance.
MORE = 2.0
# Hosts of a group that worked which are partners in one that failed: its own may all be in doubt.
LENT = 4


def patience(members: Collection[str], ready: Mapping[str, float]) -> float:
    """Return seconds that a group may take: several GPUs a host, or a slow file system, need more.

    Args:
        members: of the group.
        ready: seconds until a host could meet others in the run of the whole fleet; those that never could
            are taken to be like most.
    """
    like_most = median(ready.values()) if ready else 0.0
    slowest = max(ready.get(host, like_most) for host in members)
    more = PER_HOST * len(members)
    return max(min(BASE + more, MOST), STARTS * slowest + min(REST + more, MOST))


class Search:
    """One search.

    Args:
        run: runs scripts on hosts.
        plan: the whole fleet's, which failed.
        hosts: as their peers see them, to test directions apart.
        budget: seconds for all tests together.
    """

    def __init__(
        self, run: Run, plan: RankPlan, hosts: Mapping[str, ReachHost], budget: float
    ) -> None:
        self.run = run
        self.plan = plan
        self.hosts = hosts
        self.budget = budget
        self.ready: Mapping[str, float] = {}
        self.late: set[str] = set()
        self.tests: list[GroupTest] = []
        self.reasons: dict[frozenset[str], str] = {}
        self.isolations = [Isolation([host.name for host in plan.hosts])]

    def explain(self, fleet: GroupRun, groups: Sequence[GroupRun] = ()) -> Verdict:
        """Find the faults, and return the fleet's verdict with them.

        Args:
            fleet: the run that failed.
            groups: its parts, where it was divided. Each that failed is searched by itself, all side by side.
        """
        end = time.monotonic() + self.budget
        self.ready = fleet.ready
        self.late.update(fleet.late)
        if groups:
            self.isolations = [*_begun(groups)]
        else:
            _begin(self.isolations[0], fleet)
        searching = [isolation for isolation in self.isolations if not isolation.unexplained]
        while searching and time.monotonic() < end:
            asked = {isolation: isolation.next_round() for isolation in searching}
            searching = [isolation for isolation in searching if asked[isolation]]
            results = self._round([*chain.from_iterable(asked.values())]) if searching else []
            for isolation in searching:
                tests = set(asked[isolation])
                isolation.take([result for result in results if result.test in tests])
            searching = [isolation for isolation in searching if not isolation.unexplained]
        for isolation in searching:
            isolation.unexplained = f"the time for it, {self.budget:.0f} s, was not enough"
        return self._verdict(fleet.verdict)

    def rung(self, verdict: Verdict) -> Rung:
        """Sum up the search as a rung."""
        culprits = names_of(verdict.culprits) or "no culprit found"
        slow = self.late.difference(*(culprit.hosts for culprit in verdict.culprits))
        more = f"; {folded(sorted(slow))} started slowly and got more time" if slow else ""
        unexplained = listed(filter(None, (isolation.unexplained for isolation in self.isolations)))
        more += f"; {unexplained}" if unexplained else ""
        rounds = counted(self._rounds - 1, "round")
        return Rung(
            name="isolation",
            passed=bool(verdict.culprits) and not unexplained,
            message=f"{culprits}, by {counted(len(self.tests), 'test')} in {rounds}{more}",
            seconds=round(sum({test.round: test.seconds for test in self.tests}.values()), 3),
        )

    @property
    def _rounds(self) -> int:
        """The rounds so far, the run that failed among them."""
        return max((isolation.rounds for isolation in self.isolations), default=0)

    def _round(self, tests: Sequence[Test]) -> list[TestResult]:
        """Run the tests of a round."""
        began, number = time.monotonic(), self._rounds
        dead = self._dead_links([test for test in tests if test.purpose == "links"])
        # Where connections are good it is the pair itself that has to be tried.
        groups = [test for test in tests if not dead.get(test)]
        results = [
            TestResult(test, False, frozenset(), links) for test, links in dead.items() if links
        ]
        for test, group in zip(groups, self._launch(groups), strict=True):
            passed = group.verdict.passed
            self.reasons[frozenset(test.hosts)] = group.verdict.reason
            if passed or test.purpose == "links":
                results.append(TestResult(test, passed))
            else:
                results.append(TestResult(test, passed, group.missing, group.unanswered))
        seconds = round(time.monotonic() - began, 3)
        self.tests += [
            GroupTest(
                round=number,
                purpose=result.test.purpose,
                hosts=result.test.hosts,
                passed=result.passed,
                seconds=seconds,
            )
            for result in results
        ]
        return results

    def _launch(self, tests: Sequence[Test]) -> list[GroupRun]:
        """Run groups; those that failed with a host that was late for the first time, a second time."""
        groups = launch([self._part(test) for test in tests], self.run)
        again = [
            number
            for number, group in enumerate(groups)
            if not group.verdict.passed and group.late - self.late
        ]
        self.late.update(*(groups[number].late for number in again))
        chances = [self._part(tests[number]) for number in again]
        for number, group in zip(again, launch(chances, self.run) if again else (), strict=True):
            groups[number] = group
        return groups

    def _part(self, test: Test) -> RankPlan:
        """Plan a group: with more time, even than the fleet had, where one of its hosts was late before."""
        more = MORE if self.late.intersection(test.hosts) else 1.0
        whole = self.plan.model_copy(update={"deadline": more * self.plan.deadline})
        return part(whole, test.hosts, more * patience(test.hosts, self.ready))

    def _dead_links(self, tests: Sequence[Test]) -> dict[Test, frozenset[Link]]:
        """The dead directions of each pair."""
        plans = [
            plan_reach([self.hosts[host] for host in test.hosts], self.plan.port) for test in tests
        ]
        dead: dict[Test, frozenset[Link]] = {}
        for test, links in zip(tests, try_links(plans, self.run), strict=True):
            dead[test] = frozenset((link.source, link.target) for link in links.dead)
            if links.dead:
                self.reasons[frozenset(test.hosts)] = summary(links.culprits)
        return dead

    def _verdict(self, verdict: Verdict) -> Verdict:
        """The fleet's verdict with the culprits."""
        faults = chain.from_iterable(isolation.faults for isolation in self.isolations)
        culprits = tuple(map(self._culprit, faults))
        reasons = accused(culprits)
        untested = {*chain.from_iterable(isolation.untested for isolation in self.isolations)}
        update: dict[str, object] = {"culprits": culprits, "tests": tuple(self.tests)}
        if culprits:
            update["reason"] = summary(culprits)
            update["outcomes"] = tuple(
                HostVerdict(host=host.name, outcome="fail", reason=reasons[host.name])
                if host.name in reasons
                else HostVerdict(
                    host=host.name, outcome="not-tested", reason="no group with it worked"
                )
                if host.name in untested
                else HostVerdict(host=host.name, outcome="pass")
                for host in self.plan.hosts
            )
        return verdict.model_copy(update=update)

    def _culprit(self, fault: Fault) -> Culprit:
        """A fault, in the words of the test that showed it most closely."""
        involved = [
            (len(hosts), reason)
            for hosts, reason in self.reasons.items()
            if fault.breaks(hosts) and reason
        ]
        closest = min(involved, default=(0, ""))[1]
        if fault.is_host:
            text = f"{fault} works with none of the hosts it was tested with"
        else:
            text = f"{fault}: these two do not work together, and each does with others"
        reason = f"{text}: {closest}" if closest else text
        return Culprit(name=str(fault), hosts=fault.hosts, reason=reason)


def _begun(groups: Sequence[GroupRun]) -> Iterator[Isolation]:
    """Begin an isolation for each group that failed; hosts of groups that worked are lent to it as partners."""
    working = [list(group.hosts) for group in groups if group.verdict.passed]
    for group in groups:
        if group.verdict.passed:
            continue
        lending = max(working, key=len, default=[])
        lent = tuple(lending[:LENT]) if len(lending) > 1 else ()
        del lending[: len(lent)]
        isolation = Isolation([*group.hosts, *lent])
        _begin(isolation, group, lent)
        yield isolation


def _begin(isolation: Isolation, group: GroupRun, lent: tuple[str, ...] = ()) -> None:
    """Give an isolation the run that failed as its first test; hosts that are lent to it worked together."""
    (first,) = isolation.next_round()
    failed = TestResult(first, False, group.missing, group.unanswered)
    isolation.take([failed, *([TestResult(Test(lent, "rest"), True)] if lent else [])])
