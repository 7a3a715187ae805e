"""The guard against being locked out, on real hosts: what cuts the connection is taken back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import pytest

from remedy.apply.job import Job, SecondProbe
from remedy.apply.report import HostReport
from remedy.apply.start import new_run_id
from remedy.runs.outcome import HostStatus
from remedy.runs.probe import probe

from .conftest import Cluster
from .runs import LOCKOUT, carry_out, new_file, open_hosts, pending, plan_of

pytestmark = pytest.mark.lab
# Each test leaves its host as it was: what it made is taken back, or removed. So all share one cluster.


def no_confirmation(
    _job: Job, reports: dict[str, HostReport], _second: SecondProbe | None
) -> dict[str, HostReport]:
    """Stand in for a controller that died after the change and before its confirmation."""
    return reports


def test_a_change_that_blocks_ssh_ends_reverted(module_cluster: Cluster) -> None:
    cluster = module_cluster
    host = cluster.hosts[0]
    session = open_hosts(cluster.inventory_path, 10, host)
    outcome = carry_out(session, plan_of(host, LOCKOUT, {}), probe(session))
    assert outcome.hosts[host].status is HostStatus.FAILED
    assert outcome.exit_code == 1
    error = outcome.hosts[host].error
    assert error is not None
    assert "took it back by itself" in error.message
    assert cluster.run(host, LOCKOUT.observe).stdout.strip() == "gone"
    assert pending(cluster, host) == ""


def test_a_change_that_leaves_the_way_open_is_confirmed(module_cluster: Cluster) -> None:
    cluster = module_cluster
    host = cluster.hosts[0]
    session = open_hosts(cluster.inventory_path, 60, host)
    path = f"/etc/remedy-test-{secrets.token_hex(4)}"
    action, blobs = new_file(path)
    outcome = carry_out(session, plan_of(host, action, blobs), probe(session))
    assert outcome.hosts[host].results[0].status.value == "done"
    assert cluster.run(host, f"cat {path}; rm {path}").stdout == "guarded\n"
    assert pending(cluster, host) == ""


def test_a_controller_that_dies_before_confirming(module_cluster: Cluster) -> None:
    cluster = module_cluster
    host = cluster.hosts[1]
    session = open_hosts(cluster.inventory_path, 10)
    path = f"/etc/remedy-test-{secrets.token_hex(4)}"
    action, blobs = new_file(path)
    session.carrier._confirm = no_confirmation  # type: ignore[method-assign,assignment]
    session.carrier.make(plan_of(host, action, blobs), new_run_id())
    assert cluster.run(host, f"cat {path}").stdout == "guarded\n"
    refused = open_hosts(cluster.inventory_path, 10).carrier.make(
        plan_of(host, LOCKOUT, {}), new_run_id()
    )
    assert "waits for its confirmation" in refused[host].refused
    for _ in range(40):
        if not cluster.run(host, f"test -e {path} && echo there").stdout:
            break
        time.sleep(0.5)
    assert cluster.run(host, f"test -e {path} && echo there").stdout == ""
    assert pending(cluster, host) == ""


def test_what_nothing_takes_back_any_more_is_taken_back_by_the_next_run(
    module_cluster: Cluster,
) -> None:
    cluster = module_cluster
    host = cluster.hosts[2]
    session = open_hosts(cluster.inventory_path, 3000)
    action, blobs = new_file(path := f"/etc/remedy-test-{secrets.token_hex(4)}")
    session.carrier._confirm = no_confirmation  # type: ignore[method-assign,assignment]
    session.carrier.make(plan_of(host, action, blobs), run := new_run_id())
    other, others = new_file(f"{path}-2")
    second = open_hosts(cluster.inventory_path, 60)
    waiting = second.carrier.make(plan_of(host, other, others), new_run_id())[host]
    assert f"LOCKED run {run} waits for its confirmation" in waiting.refused
    cluster.host(host).must(f"systemctl stop remedy-guard-{run}.timer")
    report = second.carrier.make(plan_of(host, other, others), new_run_id())[host]
    assert report.results["01-test"].status.value == "done"
    assert cluster.run(host, f"ls {path}*; rm {path}-2").stdout == f"{path}-2\n"
    assert pending(cluster, host) == ""


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.full), "after"])
def test_a_run_that_dies_while_it_arms_its_timer_leaves_no_lock(
    module_cluster: Cluster, when: str
) -> None:
    cluster = module_cluster
    host = cluster.hosts[3]
    real = '/usr/bin/systemd-run "$@"'
    script = "kill -9 $PPID" if when == "before" else f"{real}; kill -9 $PPID"
    cluster.host(host).must(
        ["sh", "-c", "cat >/usr/local/bin/systemd-run; chmod 755 /usr/local/bin/systemd-run"],
        stdin=f"#!/bin/sh\n{script}\n",
    )
    session = open_hosts(cluster.inventory_path, 10)
    action, blobs = new_file(path := f"/etc/remedy-test-{secrets.token_hex(4)}")
    died = session.carrier.make(plan_of(host, action, blobs), new_run_id())[host]
    assert not died.finished
    assert cluster.run(host, f"ls {path}").stdout == ""
    cluster.host(host).must("rm /usr/local/bin/systemd-run")
    report = session.carrier.make(plan_of(host, action, blobs), new_run_id())[host]
    assert report.results["01-test"].status.value == "done"
    assert cluster.run(host, f"cat {path}; rm {path}").stdout == "guarded\n"
    for _ in range(40):
        if not pending(cluster, host):
            break
        time.sleep(0.5)
    assert pending(cluster, host) == ""


def test_a_reboot_before_the_confirmation(new_cluster: Callable[..., Cluster]) -> None:
    fresh = new_cluster(count=1)
    host = fresh.hosts[0]
    session = open_hosts(fresh.inventory_path, 3000)
    action, blobs = new_file("/etc/remedy-test")
    session.carrier._confirm = no_confirmation  # type: ignore[method-assign,assignment]
    session.carrier.make(plan_of(host, action, blobs), new_run_id())
    assert fresh.run(host, "cat /etc/remedy-test").stdout == "guarded\n"
    fresh.reboot(host)
    for _ in range(40):
        if not fresh.run(host, "test -e /etc/remedy-test && echo there").stdout:
            break
        time.sleep(0.5)
    assert fresh.run(host, "test -e /etc/remedy-test && echo there").stdout == ""
    assert "reverted" in fresh.run(host, "cat /var/log/remedy.jsonl").stdout
    assert pending(fresh, host) == ""
