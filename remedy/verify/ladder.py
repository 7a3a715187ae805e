"""The ladder: facts, engine, reachability, inside each host, the whole fleet; and isolation where that fails.

A rung is climbed only when the one below it is green, but for facts and reachability: both are cheap, and
together they show a fleet's faults at once. The rungs inside each host and over the whole fleet share one
launch, because what takes longest there is importing torch. Where the fleet is divided, its groups take the
place of the whole fleet, and after them the all-reduces across the groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from remedy.sentences import notes_folded
from remedy.spec import VerifySpec
from remedy.text import counted, folded, listed
from remedy.verify.accusations import names_of, summary
from remedy.verify.allreduce import preflight
from remedy.verify.allreduce.divided import PartRuns, between_groups, combined, parts_rung
from remedy.verify.allreduce.division import Division, HostGroup, divide
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.judge import impossible
from remedy.verify.allreduce.plan import default_deadline, group, part, plan_ranks
from remedy.verify.allreduce.run import TOO_FEW, GroupRun, launch
from remedy.verify.facts import Facts, compare
from remedy.verify.hosts import Participants
from remedy.verify.isolate.search import Search
from remedy.verify.reach.answers import links_without_names
from remedy.verify.reach.plan import ReachHost, plan_reach, reach_hosts
from remedy.verify.reach.result import Reach
from remedy.verify.reach.run import try_links
from remedy.verify.scripts import Run
from remedy.verify.verdict import (
    Culprit,
    HostVerdict,
    Rung,
    Verdict,
    accused,
    because_of,
    culprit,
)


def climb(
    run: Run,
    participants: Participants,
    spec: VerifySpec,
    on_rung: Callable[[Rung], None] = lambda _: None,
    pairs: Sequence[tuple[str, str]] = (),
    job: str = "",
) -> Verdict:
    """Climb as far as the fleet is green, and explain the first rung that is not.

    Args:
        run: runs scripts on hosts, all at once.
        participants: the hosts that take part.
        spec: the section ``verify``.
        on_rung: is called with each rung when it is climbed.
        pairs: new hosts, each with a partner that was proved before: these are tested in pairs, instead of
            every pair of hosts.
        job: the job of Slurm in whose steps ``run`` starts what it runs; empty where it uses ssh.
    """
    started = time.monotonic()
    verdict = _Climb(run, participants, spec, on_rung, job).verdict(pairs)
    named = verdict.culprits if verdict.passed or verdict.culprits else _of_outcomes(verdict)
    culprits = tuple(map(participants.with_facts, named))
    seconds = round(time.monotonic() - started, 3)
    return verdict.model_copy(
        update={"culprits": culprits, "seconds": seconds, "launcher": spec.launcher, "job": job}
    )


def _of_outcomes(verdict: Verdict) -> tuple[Culprit, ...]:
    """The hosts that failed as culprits, those with one reason together, where no rung named any."""
    by_reason: dict[str, list[str]] = {}
    for host in verdict.outcomes:
        if host.outcome == "fail":
            by_reason.setdefault(host.reason, []).append(host.host)
    return tuple(culprit(reason, *hosts) for reason, hosts in by_reason.items())


class _Climb:
    """One way up.

    Args:
        run, participants, spec, on_rung, job: as for ``climb``.

    Attributes:
        division: the groups that sum by themselves; None for one all-reduce of all hosts.
        facts: what the probes of all hosts show together.
        ranks: the plan of the all-reduce over all of them.
        rungs: those that were climbed.
    """

    def __init__(
        self,
        run: Run,
        participants: Participants,
        spec: VerifySpec,
        on_rung: Callable[[Rung], None],
        job: str,
    ) -> None:
        self.run = run
        self.participants = participants
        self.spec = spec
        self.on_rung = on_rung
        self.rungs: list[Rung] = []
        names = [host.name for host in participants.hosts]
        self.division = divide(spec, names, participants.groups)
        meeting = self.division.meeting if self.division else ()
        plan = plan_ranks(participants.hosts, spec.model_copy(update={"min_busbw": None}))
        states = participants.known_states
        self.facts = compare(states, plan, meeting) if states else Facts()
        ranks = plan_ranks(participants.hosts, spec, self.facts.limit, self.facts.unknown)
        self.ranks = ranks.model_copy(update={"port": plan.port, "job": job})

    def verdict(self, pairs: Sequence[tuple[str, str]]) -> Verdict:
        """Go up rung by rung, and return the verdict of the rung that failed, or of the whole fleet."""
        if self.ranks.world < 2:
            return self._alone()
        self._reached(self._facts_rung())
        if lacking := preflight.lacks(self.run, self.ranks):
            rung, verdict = preflight.refusal(self.ranks, lacking)
            self._reached(rung)
            return verdict.model_copy(update={"rungs": tuple(self.rungs)})
        links = self._links(tried=self.spec.reach and not pairs)
        if links.silent:
            return self._no_answer(links)
        if culprits := [*self.facts.culprits, *links.culprits]:
            return self._ended(culprits, links)
        if pairs and (culprits := self._new_hosts(pairs)):
            return self._ended(culprits, links)
        fleet, parts = self._divided(self.division) if self.division else self._whole_fleet()
        if not (fleet.verdict.passed or links.attempts or len(self.participants.hosts) < 2):
            # A group of gloo ranks connects in one direction only, by the order of the addresses: what the
            # other direction does, the tests of an isolation would not show.
            links = self._links(tried=True)
            if not links.passed:
                return self._ended(links.culprits, links)
        verdict = fleet.verdict
        if self._can_isolate(verdict) and not all(part.verdict.passed for part in parts):
            verdict = self._isolated(fleet, parts)
        slow = (links.slow,) if links.slow else ()
        evidence = (*verdict.evidence, *self.facts.warnings, *slow)
        return verdict.model_copy(
            update={
                "rungs": tuple(self.rungs),
                "evidence": evidence,
                "narrow_links": links.narrow,
                "late_links": links.late,
            }
        )

    def _reached(self, rung: Rung) -> None:
        self.rungs.append(rung)
        self.on_rung(rung)

    def _alone(self) -> Verdict:
        """Where there are not two ranks; whoever named the hosts can name more."""
        if not self.participants.hosts:
            return impossible(self.ranks, "no host is in a state to take part")
        (host,) = self.participants.hosts
        step = f"Prove it with the others: remedy verify {self.participants.inventory}"
        # Nothing speaks against this host: no name is given to whoever reads the culprits.
        culprit = Culprit(reason=f"{host.name} has no other host beside it", next_step=step)
        return impossible(self.ranks, TOO_FEW).model_copy(update={"culprits": (culprit,)})

    def _facts_rung(self) -> Rung:
        """What the probes show, before anything is started."""
        wrong = [summary(self.facts.culprits)] if self.facts.culprits else []
        if count := len(self.facts.nameless):
            wrong.append(f"{counted(count, 'name')} resolve{'s' * (count == 1)} wrongly")
        notes = filter(None, [self.ranks.unjudged, *notes_folded(self.facts.warnings)])
        return Rung(name="facts", passed=not wrong, message="; ".join(wrong or notes))

    def _links(self, *, tried: bool) -> Reach:
        """Try the links between all hosts, or take what the facts show of them."""
        nameless = self.facts.nameless
        names = [host.name for host in self.participants.hosts]
        if not tried or len(names) < 2:
            return links_without_names(names, nameless)
        plan = plan_reach(self._reach_hosts(), self.ranks.port)
        (links,) = try_links([plan], self.run, nameless)
        self._reached(links.rung)
        return links

    def _reach_hosts(self) -> list[ReachHost]:
        """The hosts, with the ports that the engine's ranks will use there."""
        return reach_hosts(self.participants, self.ranks.port, self.ranks.engine)

    def _no_answer(self, links: Reach) -> Verdict:
        """Where no host answers at all."""
        first, why = next(iter(links.failures.items()))
        verdict = impossible(self.ranks, f"no host reported ({first}: {why})")
        return verdict.model_copy(update={"rungs": tuple(self.rungs)})

    def _new_hosts(self, pairs: Sequence[tuple[str, str]]) -> list[Culprit]:
        """Test each new host with its partner, all at once; returns those that failed."""
        # Nothing was imported there yet: these are first starts, as those of a whole fleet are.
        plans = [part(self.ranks, pair, self.ranks.deadline) for pair in pairs]
        failed = [
            Culprit(
                name=new,
                hosts=(new,),
                reason=f"{new} does not work with {old}: {test.verdict.reason}",
            )
            for (new, old), test in zip(pairs, launch(plans, self.run), strict=True)
            if not test.verdict.passed
        ]
        good = listed(f"{new} with {old}" for new, old in pairs)
        message = summary(failed) or good
        self._reached(Rung(name="new hosts", passed=not failed, message=message))
        return failed

    def _whole_fleet(self) -> tuple[GroupRun, Sequence[GroupRun]]:
        """One launch, which is two rungs; returns it, and the runs in which culprits are looked for."""
        (fleet,) = launch([self.ranks], self.run)
        inside = _inside([fleet])
        self._reached(inside)
        verdict = fleet.verdict
        if inside.passed is False:
            bad = folded(_bad_inside(fleet))
            whole = Rung(name="whole fleet", passed=None, message=f"not climbed because of {bad}")
        else:
            passed, reason, seconds = verdict.passed, verdict.reason, verdict.seconds
            whole = Rung(name="whole fleet", passed=passed, message=reason, seconds=seconds)
        self._reached(whole)
        return fleet, (fleet,)

    def _divided(self, division: Division) -> tuple[GroupRun, Sequence[GroupRun]]:
        """The groups, side by side, and what sums across them; returns values as ``_whole_fleet``."""
        groups = self._side_by_side(division.groups)
        self._reached(_inside([*groups.values()]))
        runs = PartRuns(groups, {})
        self._reached(parts_rung("each group", groups))
        if not runs.failed:
            runs = PartRuns(groups, self._side_by_side(division.crossings))
        self._reached(parts_rung("across groups", runs.crossings))
        ready = {host: seconds for run in runs.all for host, seconds in run.ready.items()}
        late = frozenset(host for run in runs.failed for host in run.late)
        fleet = GroupRun(combined(self.ranks, division, runs), ready=ready, late=late)
        return fleet, tuple((runs.crossings or groups).values())

    def _side_by_side(self, parts: Sequence[HostGroup]) -> dict[str, GroupRun]:
        """Run all-reduces that have no host in common; a part of one rank has none."""
        plans = {}
        for members in parts:
            seconds = self.spec.deadline or default_deadline(len(members.hosts))
            plan = group(self.ranks, members.hosts, seconds)
            if plan.world > 1:
                plans[members.name] = plan
        return dict(zip(plans, launch([*plans.values()], self.run), strict=True))

    def _can_isolate(self, verdict: Verdict) -> bool:
        """Whether tests of groups can find who is broken: only what can be distinguished from good."""
        unjudged = self.ranks.unjudged and verdict.sum_exact
        applies = self.spec.isolate and len(self.participants.hosts) > 2
        return applies and not verdict.passed and verdict.possible and not unjudged

    def _isolated(self, fleet: GroupRun, parts: Sequence[GroupRun]) -> Verdict:
        """Look for the culprits by tests of groups, in each part that failed."""
        hosts = {host.name: host for host in self._reach_hosts()}
        search = Search(self.run, self.ranks, hosts, self.spec.isolate_seconds)
        verdict = search.explain(fleet, parts)
        if (
            self.division
            and self.rungs[-1].name == "across groups"
            and self.rungs[-1].passed is False
        ):
            verdict = between_groups(verdict, self.division)
        self._reached(search.rung(verdict))
        return verdict

    def _ended(self, culprits: Sequence[Culprit], links: Reach) -> Verdict:
        """The verdict where the ladder ended before the all-reduce."""
        reasons = accused(culprits)
        why = because_of(names_of(culprits))
        climbed = {rung.name for rung in self.rungs}
        above = (
            Rung(name="inside each host", passed=None, message=why),
            Rung(name="whole fleet", passed=None, message=why),
        )
        return Verdict(
            passed=False,
            engine=self.ranks.engine,
            expected_world_size=self.ranks.world,
            expected_hosts=len(self.ranks.hosts),
            reason=summary(culprits),
            outcomes=tuple(
                HostVerdict(host=host.name, outcome="fail", reason=reasons[host.name])
                if host.name in reasons
                else HostVerdict(host=host.name, outcome="not-tested", reason=why)
                for host in self.ranks.hosts
            ),
            evidence=links.evidence,
            rungs=(*self.rungs, *(rung for rung in above if rung.name not in climbed)),
            culprits=tuple(culprits),
            dead_links=links.dead,
            dead_count=max(links.count, len(links.dead)),
            narrow_links=links.narrow,
            late_links=links.late,
            links_sampled=bool(links.sampled),
        )


def _bad_inside(run: GroupRun) -> list[str]:
    """The hosts whose own ranks do not sum."""
    return [
        host.host
        for host in run.verdict.outcomes
        if host.outcome == "fail" and "inside this host" in host.reason
    ]


def _inside(runs: Sequence[GroupRun]) -> Rung:
    """What launches show of the ranks inside each host."""
    missing: set[str] = set()
    for run in runs:
        verdict = run.verdict
        if _bad_inside(run):
            return Rung(name="inside each host", passed=False, message=verdict.reason)
        if not ENGINES[verdict.engine].inside:
            why = f"the engine {verdict.engine} tries all hosts at once"
            return Rung(name="inside each host", passed=None, message=why)
        if not (verdict.passed or verdict.world_size > 0):
            missing |= run.missing
    if not missing:
        return Rung(name="inside each host", passed=True)
    message = f"not everywhere: {folded(sorted(missing))}"
    return Rung(name="inside each host", passed=None, message=message)
