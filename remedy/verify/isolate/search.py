"""Looking for the culprits of an all-reduce that failed: the planned tests, run for real.

Each test is a small all-reduce with a deadline of its own; the tests of a round run at the same time, on
disjoint hosts.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from statistics import median

from remedy.verify.allreduce.blame import Hints, names
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.run import Run, launch
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.planner import Isolation
from remedy.verify.reach import plan as reach
from remedy.verify.reach.result import judge
from remedy.verify.verdict import Culprit, GroupTest, HostOutcome, Rung, Verdict

# Seconds for a test: two imports of torch on busy processors, and a group that hangs; at most so many.
BASE, PER_HOST, MOST = 25.0, 0.2, 90.0
# Where hosts are known to start slowly: so many times as long, and these seconds for the rest. What was
# measured has no limit of its own: it would accuse hosts that are merely slower than it.
STARTS, REST = 2.0, 15.0


def patience(members: Collection[str], ready: Mapping[str, float]) -> float:
    """Seconds that a group may take: several GPUs a host, or a slow file system, need more than the usual.

    Args:
        members: of the group.
        ready: seconds until a host could meet others in the run of the whole fleet; those that never could
            are taken to be like most.
    """
    like_most = median(ready.values()) if ready else 0.0
    slowest = max((ready.get(host, like_most) for host in members), default=0.0)
    more = PER_HOST * len(members)
    return max(min(BASE + more, MOST), STARTS * slowest + min(REST + more, MOST))


def part(plan: RankPlan, members: Collection[str], seconds: float) -> RankPlan:
    """The plan of a part of a fleet, in the order of the fleet, with a deadline of its own.

    Args:
        plan: of the fleet.
        members: of the part.
        seconds: that torch may take, never more than the fleet had; other engines get what they need beyond
            that.
    """
    wanted = set(members)
    hosts = tuple(host for host in plan.hosts if host.name in wanted)
    deadline = min(seconds + ENGINES[plan.engine].patience, plan.deadline)
    # A single size tells what is asked; the largest only where slowness is what may fail.
    sizes = plan.sizes or (None if plan.min_busbw else (65_536,))
    return plan.model_copy(
        update={
            "nonce": secrets.token_hex(8),
            "hosts": hosts,
            "deadline": deadline,
            "sizes": sizes,
            # What cannot be judged of the whole says nothing of its parts.
            "unjudged": "",
        }
    )


class Search:
    """One search.

    Args:
        run: runs scripts on hosts.
        plan: the whole fleet's, which failed.
        doors: the hosts as peers see them, to tell directions apart.
        budget: seconds for all tests together.
    """

    def __init__(
        self, run: Run, plan: RankPlan, doors: Mapping[str, reach.Door], budget: float
    ) -> None:
        self.run = run
        self.plan = plan
        self.doors = doors
        self.budget = budget
        self.ready: Mapping[str, float] = {}
        self.tests: list[GroupTest] = []
        self.reasons: dict[frozenset[str], str] = {}
        self.isolation = Isolation([host.name for host in plan.hosts])

    def explain(self, verdict: Verdict, hints: Hints) -> Verdict:
        """Find the faults, and return the verdict with them."""
        end = time.monotonic() + self.budget
        (fleet,) = self.isolation.next_round()
        self.ready = hints.ready
        self.isolation.take([TestResult(fleet, False, hints.missing, hints.unanswered)])
        while not self.isolation.unexplained and time.monotonic() < end:
            tests = self.isolation.next_round()
            if not tests:
                break
            self.isolation.take(self._hold(tests))
        else:
            self.isolation.unexplained = self.isolation.unexplained or (
                f"the time for it, {self.budget:.0f} s, was not enough"
            )
        return self._verdict(verdict)

    def rung(self, verdict: Verdict) -> Rung:
        """What the search came to."""
        found = names(one.what for one in verdict.causes) if verdict.causes else "nobody was found"
        more = f"; {self.isolation.unexplained}" if self.isolation.unexplained else ""
        return Rung(
            name="isolation",
            passed=bool(verdict.causes) and not self.isolation.unexplained,
            said=f"{found}, by {len(self.tests)} tests in {self.isolation.rounds - 1} rounds{more}",
            seconds=round(sum({test.round: test.seconds for test in self.tests}.values()), 3),
        )

    def _hold(self, tests: Sequence[Test]) -> list[TestResult]:
        """Run the tests of a round."""
        began = time.monotonic()
        dead = self._ways([test for test in tests if test.purpose == "links"])
        # Where connections are good it is the pair itself that has to be tried.
        groups = [test for test in tests if not dead.get(test)]
        plans = [part(self.plan, one.hosts, patience(one.hosts, self.ready)) for one in groups]
        verdicts = launch(plans, self.run)
        results = [
            TestResult(test, False, frozenset(), ways) for test, ways in dead.items() if ways
        ]
        for test, (verdict, hints) in zip(groups, verdicts, strict=True):
            self.reasons[frozenset(test.hosts)] = verdict.reason
            told = Hints() if verdict.passed or test.purpose == "links" else hints
            results.append(TestResult(test, verdict.passed, told.missing, told.unanswered))
        seconds = round(time.monotonic() - began, 3)
        self.tests += [
            GroupTest(
                round=self.isolation.rounds,
                purpose=one.test.purpose,
                hosts=one.test.hosts,
                passed=one.passed,
                seconds=seconds,
            )
            for one in results
        ]
        return results

    def _ways(self, tests: Sequence[Test]) -> dict[Test, frozenset[tuple[str, str]]]:
        """The dead directions of each pair."""
        from remedy.transport import Script

        plans = {
            test: reach.plan_reach([self.doors[host] for host in test.hosts], self.plan.port)
            for test in tests
        }
        if not plans:
            return {}
        outputs = self.run(
            {
                door.name: Script(reach.script(plan, me), reach.script_deadline(plan))
                for plan in plans.values()
                for me, door in enumerate(plan.doors)
            }
        )
        found = {}
        for test, plan in plans.items():
            ways = judge(plan, outputs)
            found[test] = frozenset((one.source, one.target) for one in ways.dead)
            if ways.dead:
                told = "; ".join(ways.told(cause) for cause in ways.causes)
                self.reasons[frozenset(test.hosts)] = told
        return found

    def _verdict(self, verdict: Verdict) -> Verdict:
        """The fleet's verdict with what was found."""
        causes = tuple(map(self._culprit, self.isolation.faults))
        accused = {host: one.reason for one in causes for host in one.hosts}
        untested = set(self.isolation.untested)
        update: dict[str, object] = {"causes": causes, "tests": tuple(self.tests)}
        if causes:
            update["reason"] = "; ".join(one.reason for one in causes[:3]) + (
                f"; and {len(causes) - 3} more" if len(causes) > 3 else ""
            )
            update["outcomes"] = tuple(
                HostOutcome(host=h.name, outcome="fail", reason=accused[h.name])
                if h.name in accused
                else HostOutcome(host=h.name, outcome="not-tested", reason="no group of it worked")
                if h.name in untested
                else HostOutcome(host=h.name, outcome="pass")
                for h in self.plan.hosts
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
        return Culprit(what=str(fault), hosts=fault.hosts, reason=reason)
