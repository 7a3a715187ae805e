"""The endpoints that growth is measured with: what they say of themselves is what a host would say."""

from __future__ import annotations

from benchmarks.scale_page import page, plot
from remedy.apply.job import Job
from remedy.apply.report import ChangeStatus, parse_report
from remedy.apply.script import render_changes
from remedy.plan import Origin, make_plan
from remedy.probe import ProbeRequest, parse_probe
from tests.unit.growth import NONCE, fleet, swarm_of

JOB = Job(run="20260101T000000Z-00000000", nonce="a" * 16, by="me@here")
WHEN = Origin(created="2026-11-23T00:00:00+00:00", author="me@here")


def test_a_broken_host_makes_its_changes_and_needs_none_after_them() -> None:
    before = fleet(24, 1.0)
    plan = make_plan(before, WHEN)
    assert len(plan.hosts) == 24
    swarm = swarm_of(24, 1.0)
    name = swarm.name(7)
    script = render_changes(JOB, plan.for_host(name), plan.blobs)
    report = parse_report(JOB, plan.for_host(name), swarm.answer(7, script))
    assert report.finished
    assert {result.status for result in report.results.values()} == {ChangeStatus.DONE}
    request = ProbeRequest(names=before.inventory.names, nonce=NONCE)
    states = {
        swarm.name(number): parse_probe(
            swarm.name(number), swarm.answer(number, f"\nnonce={NONCE}\n"), request
        )
        for number in (7, 8)
    }
    after = make_plan(type(before)(before.inventory, states, before.spec), WHEN)
    assert after.hosts == (swarm.name(8),)


def test_the_page_and_the_plot_hold_what_was_measured() -> None:
    figures = {
        "rc": 0, "wall": 9.0, "cpu": 12.8, "rss_mib": 201, "commands": 256, "asked": 2**20, "answered": 2**20,
        "additions": 1.1, "commit": "abc1234", "day": "2026-11-23", "machine": "2 cores",
    }  # fmt: skip
    known = {"check": {"256": figures}}
    row = "| check | 256 | 12.8 s | 50.0 ms | 1.10 s | 201 MiB | 4 KiB | 4 KiB | 2 MiB |"
    assert row in page(known)
    assert "abc1234" in page(known)
    assert "plans.md" not in page(known)
    first = page({**known, "first": {"4096": {**figures, "plan_mib": 0.79}}})
    assert "of 4,096 hosts is a file of 0.8 MiB" in first
    assert "[plans.md](plans.md)" in first, "what it costs to look at plans stands in one place"
    drawn = plot(known)
    assert drawn.startswith("<svg")
    assert ">after</text>" in drawn
