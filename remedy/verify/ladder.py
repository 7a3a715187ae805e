"""The ladder: facts, reachability, inside each host, the whole fleet, and, where that fails, the culprits.

A rung is climbed only when the one below it is green, but for the first two: both are cheap, and together
they tell a fleet's faults at once. The rungs inside each host and over the whole fleet share one launch,
because what takes longest there is importing torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom

from remedy.probe import HostState
from remedy.spec import VerifySpec
from remedy.values import Unknown
from remedy.verify import facts
from remedy.verify.allreduce import preflight
from remedy.verify.allreduce.blame import Hints, names
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import Candidate, RankPlan, plan_ranks
from remedy.verify.allreduce.run import Run, launch
from remedy.verify.isolate.search import Search, part
from remedy.verify.reach import plan as reach
from remedy.verify.reach.result import DeadWay, Reach, judge
from remedy.verify.verdict import Culprit, HostOutcome, Rung, Verdict, impossible

Told = Callable[[Rung], None]


@dataclass(frozen=True)
class Sight:
    """What is known of the hosts that take part.

    Args:
        candidates: in the order of the ranks.
        states: what the probe found.
        known: by host, what is known to be wrong with it, in words.
        curable: hosts that a plan would change.
        inventory: its file's name, for the commands that are recommended.
    """

    candidates: Sequence[Candidate]
    states: Mapping[str, HostState] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    curable: frozenset[str] = frozenset()
    inventory: str = "INVENTORY"

    def joined(self, culprit: Culprit) -> Culprit:
        """A culprit with the facts that explain it, and what to do next."""
        told = tuple(line for host in culprit.hosts for line in self.known.get(host, ()))
        hosts = ",".join(culprit.hosts)
        command = "apply" if self.curable.intersection(culprit.hosts) else "check"
        step = culprit.next_step or f"remedy {command} {self.inventory} --limit {hosts}"
        return culprit.model_copy(update={"facts": told, "next_step": step})


def climb(
    run: Run,
    sight: Sight,
    spec: VerifySpec,
    told: Told = lambda _: None,
    pairs: Sequence[tuple[str, str]] = (),
) -> Verdict:
    """Climb as far as the fleet is green, and explain the first rung that is not.

    Args:
        run: runs scripts on hosts, all at once.
        sight: the hosts.
        spec: what the user wants.
        told: is told of each rung when it is climbed.
        pairs: new hosts, each with a partner that was proved before: these are tested in pairs, instead of
            every pair of hosts.
    """
    started = time.monotonic()
    addresses = {one.name: one.address for one in sight.candidates}
    states = {name: sight.states[name] for name in addresses if name in sight.states}
    ranks = plan_ranks(sight.candidates, spec.model_copy(update={"min_busbw": None}))
    if ranks.world < 2:
        return _alone(ranks, sight)
    rungs: list[Rung] = []

    def reached(rung: Rung) -> None:
        rungs.append(rung)
        told(rung)

    seen = facts.look(states, ranks) if len(states) == len(addresses) else None
    seen = seen or facts.Facts()
    ranks = plan_ranks(sight.candidates, spec, seen.limit, seen.unknown).model_copy(
        update={"port": ranks.port}
    )
    culprits = list(seen.culprits)
    nameless = _wrong_names(len(seen.nameless))
    said = "; ".join([*(one.reason for one in culprits), *([nameless] if nameless else [])])
    noted = "; ".join(filter(None, [ranks.unjudged, *seen.warnings]))
    reached(Rung(name="facts", passed=not said, said=said or noted))

    if ranks.engine != "torch" and (lacking := preflight.ask(run, ranks)):
        rung, refused = preflight.refusal(ranks, lacking)
        reached(rung)
        return refused.model_copy(update={"rungs": tuple(rungs)})
    ways = Reach(hosts=())
    if spec.reach and len(addresses) > 1 and not pairs:
        ways = _reach(run, sight, ranks, seen)
        reached(_rung_of(ways))
        if ways.silent:
            first, why = next(iter(ways.lost.items()))
            verdict = impossible(ranks, f"no host reported ({first}: {why})")
            return verdict.model_copy(update={"rungs": tuple(rungs)})
        culprits += _of_ways(ways)
    elif seen.nameless:
        ways = _nameless(addresses, seen)
        culprits += _of_ways(ways)
    if culprits:
        return _ended(ranks, sight, ways, culprits, rungs, time.monotonic() - started)

    failed = _new_ones(run, ranks, pairs, reached)
    if failed:
        return _ended(ranks, sight, ways, failed, rungs, time.monotonic() - started)
    verdict, hints = launch([ranks], run)[0]
    for rung in _launched(verdict, hints):
        reached(rung)
    if not (verdict.passed or ways.tried or len(addresses) < 2):
        # A group of gloo ranks connects in one direction only, by the order of the addresses: what the
        # other direction does, the tests of an isolation would not show.
        ways = _reach(run, sight, ranks, seen)
        reached(_rung_of(ways))
        if not ways.passed:
            return _ended(ranks, sight, ways, _of_ways(ways), rungs, time.monotonic() - started)
    # Tests of groups are for what can be told good from bad.
    telling = verdict.possible and not (ranks.unjudged and verdict.sum_exact)
    if not verdict.passed and telling and spec.isolate and len(addresses) > 2:
        search = Search(run, ranks, {d.name: d for d in doors(sight, ranks)}, spec.isolate_seconds)
        verdict = search.explain(verdict, hints)
        rung = search.rung(verdict)
        reached(rung)
    return verdict.model_copy(
        update={
            "rungs": tuple(rungs),
            "causes": tuple(map(sight.joined, verdict.causes)),
            "evidence": (*verdict.evidence, *seen.warnings),
            "seconds": round(time.monotonic() - started, 3),
        }
    )


def _alone(ranks: RankPlan, sight: Sight) -> Verdict:
    """What is said where there are not two ranks; whoever named the hosts can name more."""
    if not sight.candidates:
        return impossible(ranks, "no host is in a state to take part")
    (one,) = sight.candidates
    why = "an all-reduce needs two ranks, so two hosts, or one with two GPUs"
    step = f"Prove it with the others: remedy verify {sight.inventory}"
    cause = Culprit(what=one.name, hosts=(one.name,), reason="it is alone", next_step=step)
    return impossible(ranks, why).model_copy(update={"causes": (cause,)})


def _wrong_names(count: int) -> str:
    return f"{count} name{' resolves' if count == 1 else 's resolve'} wrongly" if count else ""


def _new_ones(
    run: Run, ranks: RankPlan, pairs: Sequence[tuple[str, str]], reached: Told
) -> list[Culprit]:
    """Test each new host with its partner, all at once; returns those that failed."""
    if not pairs:
        return []
    # Nothing was imported there yet: these are first starts, as those of a whole fleet are.
    plans = [part(ranks, pair, ranks.deadline) for pair in pairs]
    failed = [
        Culprit(what=new, hosts=(new,), reason=f"{new} does not work with {old}: {verdict.reason}")
        for (new, old), (verdict, _) in zip(pairs, launch(plans, run), strict=True)
        if not verdict.passed
    ]
    told = "; ".join(one.reason for one in failed) or names(f"{a} with {b}" for a, b in pairs)
    reached(Rung(name="new hosts", passed=not failed, said=told))
    return failed


def doors(sight: Sight, ranks: RankPlan) -> list[reach.Door]:
    """The hosts as peers see them, with ports of each one's own range."""
    found = []
    random = SystemRandom()
    for one in sight.candidates:
        state = sight.states.get(one.name)
        between, taken = reach.USUAL_RANGE, set[int]()
        if state is not None and not isinstance(state.sysctls, Unknown):
            between = _range(state.sysctls.live.get("net.ipv4.ip_local_port_range", "")) or between
            reserved = state.sysctls.live.get("net.ipv4.ip_local_reserved_ports", "")
            taken |= _spans(reserved)
        if state is not None and not isinstance(state.listeners, Unknown):
            taken |= {listener.port for listener in state.listeners}
        ports = reach.draw_ports(between, taken, ranks.port, random)
        found.append(reach.Door(name=one.name, address=one.address, ports=ports, python=one.python))
    return found


def _range(text: str) -> tuple[int, int] | None:
    """The setting ip_local_port_range."""
    words = text.split()
    return (int(words[0]), int(words[1])) if len(words) == 2 and text.split()[0].isdigit() else None


def _spans(text: str) -> set[int]:
    """The setting ip_local_reserved_ports: ``1000-2000,3000``."""
    found: set[int] = set()
    for span in filter(None, text.strip().split(",")):
        first, _, last = span.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found


def _reach(run: Run, sight: Sight, ranks: RankPlan, seen: facts.Facts) -> Reach:
    from remedy.transport import Script

    plan = reach.plan_reach(doors(sight, ranks), ranks.port)
    limit = reach.script_deadline(plan)
    began = time.monotonic()
    outputs = run(
        {d.name: Script(reach.script(plan, me), limit) for me, d in enumerate(plan.doors)}
    )
    seconds = round(time.monotonic() - began, 3)
    return judge(plan, outputs, seen.nameless, seconds)


def _nameless(addresses: Mapping[str, str], seen: facts.Facts) -> Reach:
    """Names that resolve wrongly as ways that do not work, where no connection was tried."""
    dead = tuple(
        DeadWay(source=s, target=t, port=0, outcome="no name", detail=detail)
        for (s, t), detail in seen.nameless.items()
    )
    return Reach(hosts=tuple(addresses), dead=dead)


def _rung_of(ways: Reach) -> Rung:
    found = "; ".join(ways.told(cause) for cause in ways.causes)
    good = f"{len(ways.hosts) * (len(ways.hosts) - 1)} ways, {ways.tried} connections"
    said = "; ".join(filter(None, [found or good, ways.cut]))
    return Rung(name="reachability", passed=ways.passed, said=said, seconds=ways.seconds)


def _of_ways(ways: Reach) -> list[Culprit]:
    """Who is to blame for dead ways; a host that is neither reached nor reaches others is one culprit."""
    found: dict[str, Culprit] = {}
    for cause in ways.causes:
        what = str(cause) if cause.kind == "way" else cause.host
        reason = ways.told(cause)
        if what in found:
            reason = f"{found[what].reason}; {reason}"
        found[what] = Culprit(what=what, hosts=cause.hosts, reason=reason)
    return list(found.values())


def _launched(verdict: Verdict, hints: Hints) -> list[Rung]:
    """The two rungs of one launch."""
    alone = [one for one in verdict.outcomes if "inside this host" in one.reason]
    bad = tuple(dict.fromkeys(one.host for one in alone if one.outcome == "fail"))
    if bad:
        return [
            Rung(name="inside each host", passed=False, said=verdict.reason),
            Rung(name="whole fleet", passed=None, said=f"not climbed because of {names(bad)}"),
        ]
    started = verdict.passed or verdict.world_size > 0 or not hints.missing
    whole = Rung(
        name="whole fleet", passed=verdict.passed, said=verdict.reason, seconds=verdict.seconds
    )
    if not ENGINES[verdict.engine].inside:
        said = f"the engine {verdict.engine} tries all hosts at once"
        return [Rung(name="inside each host", passed=None, said=said), whole]
    inside = Rung(
        name="inside each host",
        passed=True if started else None,
        said="" if started else f"not everywhere: {names(sorted(hints.missing))}",
    )
    return [inside, whole]


def _ended(
    ranks: RankPlan,
    sight: Sight,
    ways: Reach,
    culprits: Sequence[Culprit],
    rungs: Sequence[Rung],
    seconds: float,
) -> Verdict:
    """The verdict where the ladder ended before the all-reduce."""
    causes = tuple(sight.joined(one) for one in culprits)
    reasons: dict[str, str] = {}
    for one in causes:
        for host in one.hosts:
            reasons.setdefault(host, one.reason)
    kept = f"the group could not be proved because of {names(one.what for one in causes)}"
    climbed = {rung.name for rung in rungs}
    high = [name for name in ("inside each host", "whole fleet") if name not in climbed]
    return Verdict(
        passed=False,
        engine=ranks.engine,
        expected_world_size=ranks.world,
        expected_hosts=len(ranks.hosts),
        reason="; ".join(one.reason for one in causes[:3])
        + (f"; and {len(causes) - 3} more" if len(causes) > 3 else ""),
        outcomes=tuple(
            HostOutcome(host=h.name, outcome="fail", reason=reasons[h.name])
            if h.name in reasons
            else HostOutcome(host=h.name, outcome="not-tested", reason=kept)
            for h in ranks.hosts
        ),
        evidence=tuple(
            f"{d.source} -> {d.target} port {d.port or 'any'}: {d.outcome} {d.detail}".rstrip()
            for d in ways.dead[:20]
        ),
        seconds=round(seconds, 3),
        rungs=(*rungs, *(Rung(name=name, passed=None, said=kept) for name in high)),  # type: ignore[arg-type]
        causes=causes,
        dead_ways=ways.dead,
        dead_count=max(ways.count, len(ways.dead)),
    )
