"""Hosts that could not be looked at: no report says anything of them."""

from __future__ import annotations

from remedy.plan import Fleet
from remedy.probe import HostState
from remedy.values import Unknown
from tests.unit.deploys.report_bench import findings_of, hosts


def fleet_of(state: HostState) -> Fleet:
    healthy = hosts({}, {})
    return Fleet(healthy.inventory, {**healthy.states, state.host: state}, healthy.spec)


def test_unknown_facts_make_no_noise() -> None:
    state = hosts({}).states["gpu01"]
    groups = [
        name
        for name in HostState.model_fields
        if name not in ("host", "root", "files", "complete", "costs")
    ]
    blind = state.model_copy(update={name: Unknown(reason="late") for name in groups})
    for remedy in (
        "clock",
        "fleet_versions",
        "pythons",
        "gpu_health",
        "network_health",
        "rdma_health",
        "resolver",
        "launching",
    ):
        assert findings_of(remedy, fleet_of(blind)) == []


def test_nothing_is_said_of_a_host_that_was_not_looked_at() -> None:
    blind = {
        "gpus": Unknown(reason="x"),
        "rdma": Unknown(reason="x"),
        "software": Unknown(reason="x"),
    }
    for remedy in ("gpu_health", "rdma_health", "pythons", "fleet_versions"):
        assert findings_of(remedy, hosts(blind, blind)) == []
