"""What pages are made of in tests: verdicts, runs and a year of a fleet."""

from __future__ import annotations

import random

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit.story import Story
from remedy.plan import Plan
from remedy.report.pages.run import Circumstances, run_page
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.verify.verdict import (
    Bandwidth,
    Culprit,
    DeadLink,
    GroupTest,
    HostVerdict,
    Rung,
    SlowHost,
    Verdict,
)
from tests.unit.plans import plan_of
from tests.unit.report.first import first_look
from tests.unit.report.shapes import outcome_of, shape

WHO = Circumstances("2026-01-31T12:00:00.000Z", "ann@ops")
SIZES = [8, 1024, 65536, 1 << 20, 1 << 23, 1 << 26, 1 << 28]


def names_of(count: int) -> tuple[str, ...]:
    """Return names as clusters have them."""
    return tuple(f"rack{n // 32 + 1:02}-gpu{n % 32 + 1:03}" for n in range(count))


def good(count: int) -> Verdict:
    """A proof of hosts of which one is slow."""
    hosts = names_of(count)
    pace = {host: 11.0 + 0.01 * (place % 50) for place, host in enumerate(hosts)}
    pace[hosts[-1]] = 3.1
    return Verdict(
        passed=True,
        backend="nccl",
        world_size=8 * count,
        expected_world_size=8 * count,
        hosts=count,
        expected_hosts=count,
        sum_exact=True,
        bandwidth=tuple(
            Bandwidth(
                bytes=size,
                seconds=2e-5 + size / 9e9,
                algbw=size / (2e-5 + size / 9e9) / 1e9,
                busbw=1.2 * size / (2e-5 + size / 9e9) / 1e9,
                spread=0.03,
                out_of_place_busbw=size / (2e-5 + size / 9e9) / 1e9,
            )
            for size in SIZES
        ),
        busbw_gbps=10.4,
        limit_gbps=12.5,
        min_busbw_gbps=7.5,
        torch=("2.13.0",),
        nccl=("2.27.3",),
        reason=f"{8 * count} of {8 * count} ranks summed exactly; 10.4 GB/s; {hosts[-1]} is slow",
        outcomes=tuple(HostVerdict(host=host, outcome="pass") for host in hosts),
        seconds=41.5,
        pace=pace,
        slow=(SlowHost(host=hosts[-1], gbps=3.1, share=0.27),),
        rungs=(
            Rung(name="facts", passed=True, message="all hosts agree", seconds=1.2),
            Rung(name="reachability", passed=True, message="every pair, 3 ports", seconds=9.9),
            Rung(name="whole fleet", passed=True, message=f"{8 * count} ranks", seconds=28.0),
        ),
    )


def red(count: int) -> Verdict:
    """A proof that failed: a host behind a firewall, and a few links besides."""
    hosts = names_of(count)
    wall = hosts[count // 2]
    dice = random.Random(7)  # noqa: S311 - nothing is secret
    dead = [
        DeadLink(source=host, target=wall, port=29500, outcome="dropped", detail="3.5 s")
        for host in hosts
        if host != wall
    ]
    for outcome in ("refused", "stalled", "no name", "rejected", "no listener", "foreign"):
        source, target = dice.sample(hosts, 2)
        dead.append(DeadLink(source=source, target=target, port=33000, outcome=outcome))
    absent = hosts[0]
    return Verdict(
        passed=False,
        expected_hosts=count,
        reason=f"{wall}: no answer on port 29500 from any of the other {count - 1} hosts (dropped on the way)",
        outcomes=tuple(
            HostVerdict(
                host=host,
                outcome="fail" if host == wall else "not-tested",
                reason="" if host == wall else f"the group could not be proved because of {wall}",
            )
            for host in hosts
        ),
        absent=(absent,),
        rungs=(
            Rung(name="facts", passed=True, seconds=1.2),
            Rung(name="reachability", passed=False, message=f"{wall} is cut off", seconds=9.9),
            Rung(name="whole fleet", passed=None, message="reachability failed"),
        ),
        culprits=(
            Culprit(
                name=wall,
                hosts=(wall,),
                reason=f"{wall}: no answer on port 29500 from any of the other {count - 1} hosts",
                facts=("firewalld drops 32768-60999 in zone public", "nothing else is wrong"),
                next_step=f"remedy apply inventory.py --limit {wall}",
            ),
        ),
        dead_links=tuple(dead),
        dead_count=len(dead),
        tests=(
            GroupTest(round=1, purpose="first half", hosts=hosts[: count // 2], passed=True),
            GroupTest(round=1, purpose="second half", hosts=hosts[count // 2 :], passed=False),
        ),
    )


def first_plan(count: int) -> Plan:
    """The first plan of Debian hosts with firewalld that nobody has prepared."""
    return plan_of(first_look(count, "lab-firewalld"))


def run(verdict: Verdict | None, plan: Plan | None = None, mode: str = "verify") -> RunOutcome:
    """A run with this proof, which made all changes of the plan."""
    made: dict[str, list[ChangeResult]] = {}
    for change in plan.changes if plan is not None else ():
        made.setdefault(change.host, []).append(
            ChangeResult(id=change.id, status=ChangeStatus.DONE)
        )
    hosts = [entry.host for entry in verdict.outcomes] if verdict is not None else [*made]
    return RunOutcome(
        mode,
        "20260131T120000Z-0a1b2c3d",
        "inventory.py",
        {
            host: HostOutcome(HostStatus.CHANGED if host in made else HostStatus.OK, tuple(r))
            for host, r in {**dict.fromkeys(hosts, ()), **made}.items()
        },
        plan,
        converged=True if plan is not None else None,
        verdict=verdict,
    )


def proof_page(verdict: Verdict) -> str:
    """The page of a verification that ended with this verdict."""
    return run_page(run(verdict), WHO)


def many_faults(count: int) -> RunOutcome:
    """A verification of hosts of which a part has each of several faults."""
    faults = (
        "twins",
        "drops",
        "rejects or drops",
        "has one old address",
        "late clocks",
        "lets nothing out",
    )
    return outcome_of(shape(count, *faults, share=0.25 if count < 64 else 0.04))


def year(count: int = 64) -> list[Story]:
    """A year of a fleet: two hosts that come back, reds, a rollback, and a run that was cut off."""
    hosts = names_of(count)
    stories = []
    for month in range(1, 13):
        for day in range(1, 29, 3):
            time = f"2025-{month:02}-{day:02}T08:00:00.000Z"
            story = Story(f"2025{month:02}{day:02}T080000Z-0a1b2c3d", "check", time, by="cron@ops")
            story.hosts, story.exit_code = dict.fromkeys(hosts, "ok"), 0
            stories.append(story)
        time = f"2025-{month:02}-28T09:00:00.000Z"
        apply = Story(f"2025{month:02}28T090000Z-0a1b2c3d", "apply", time, by="ann@ops")
        changed = hosts[:2] if month % 3 else (hosts[2],)
        apply.planned = dict.fromkeys(changed, ("write /etc/hosts",))
        apply.results = {host: {"01-hosts_file": "done"} for host in changed}
        apply.hosts, apply.proved = dict.fromkeys(changed, "changed"), month != 6
        apply.exit_code = 0 if month != 6 else 3
        stories.append(apply)
    stories[3].exit_code = None
    stories[3].hosts = {}
    stories[14].exit_code = 1
    return stories
