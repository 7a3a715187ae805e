"""What remedy only reports, on real hosts: it is seen, it fails nobody, and healthy hosts have none of it."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.lab import faults
from remedy.plan import remedies
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# Fault, where it is set, who finds it, and the words that it is told by.
FAULTS = (
    ("mtu-mismatch", "gpu04", "network_health", "mtu 1400: gpu04"),
    ("rp-filter-strict", "gpu01", "network_health", "eth0: rp_filter 1"),
    ("dead-name-server", "gpu03", "resolver", "nameserver 192.0.2.53"),
    ("proxy-set", "gpu02", "launching", "http_proxy=http://proxy.example:3128"),
    ("low-max-startups", "gpu01", "launching", "10-hardening.conf line 1: MaxStartups 2:30:10"),
    ("other-torch", "gpu04", "fleet_versions", "2.1.0"),
    ("libcuda-elsewhere", "gpu02", "gpu_health", "searched for libcuda.so.1: /usr/local/lib, "),
    ("two-pythons", "gpu03", "pythons", "torchrun: /usr/local/bin/torchrun"),
)
# resolver changes the order of the services, and only reports what name servers do.
OURS = frozenset(remedy.name for remedy in remedies() if remedy.only_reports) | {"resolver"}
# With every name in the hosts file nobody asks DNS, and a dead server does not matter any more.
CURED_BY_THE_WAY = {"dead-name-server"}
# Beside the reports: this fault is repaired, by a remedy that reports otherwise.
REPAIRED = "nsswitch-dns-first"


def findings(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what those who only report say, of hosts and of the fleet."""
    of_hosts = [finding for host in document["hosts"].values() for finding in host["findings"]]
    return [f for f in (*document["findings"], *of_hosts) if f["remedy"] in OURS]


def seen(document: dict[str, Any], fault: tuple[str, str, str, str]) -> bool:
    _, host, remedy, words = fault
    return any(
        f["remedy"] == remedy
        and f["host"] in (None, host)
        and any(words in line for line in f["evidence"])
        for f in findings(document)
    )


def test_what_is_only_reported_is_seen_and_fails_nobody(cluster: Cluster) -> None:
    site = Site(cluster)
    for name, host, _, _ in FAULTS:
        cluster.fault(host, name)
    cluster.fault("gpu02", REPAIRED)
    checked = site.remedy("check", "--json").document
    order = [f for f in findings(checked) if any("hosts: dns files" in e for e in f["evidence"])]
    assert [(f["host"], f["kind"]) for f in order] == [("gpu02", "drift")]
    assert [fault[0] for fault in FAULTS if not seen(checked, fault)] == []
    reports = [f for f in findings(checked) if f not in order]
    assert {f["kind"] for f in reports} == {"report"}
    assert all(f["fix"] and f["evidence"] for f in reports)
    applied = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert applied.code == 0, applied.stderr
    again = site.remedy("check", "--json").document
    left = {fault[0] for fault in FAULTS if seen(again, fault)}
    assert left == {fault[0] for fault in FAULTS} - CURED_BY_THE_WAY


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            "echo /opt/driver/lib64 >/etc/ld.so.conf.d/driver.conf", id="named to the loader"
        ),
        pytest.param(
            "ln -s /opt/driver/lib64/libcuda.so.1 /usr/lib/libcuda.so.1",
            id="a link",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "echo LD_LIBRARY_PATH=/opt/driver/lib64 >>/etc/environment",
            id="in the path of sessions",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_driver_that_is_mounted_from_elsewhere(cluster: Cluster, command: str) -> None:
    site = Site(cluster)
    cluster.fault("gpu02", "libcuda-elsewhere")
    titles = [f["title"] for f in findings(site.remedy("check", "--json").document)]
    assert titles == ["no libcuda of the driver where programs look for it"]
    cluster.host("gpu02").must(command)
    assert findings(site.remedy("check", "--json").document) == []


def test_a_smaller_mtu_is_proved_by_packets_that_must_not_be_cut(cluster: Cluster) -> None:
    """What carries the sum does not matter here: the ranks run a stub of torch (docs/tests.md)."""
    site = Site(cluster)
    site.run_on_stub()
    (site.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    rungs = {}
    for state in ("healthy", "mtu-mismatch"):
        if state != "healthy":
            cluster.fault("gpu04", state)
        verified = site.remedy("verify", "--json")
        # TCP agrees on the smaller size, so the all-reduce passes: that is why it has to be asked for.
        assert verified.code == 0, verified.stderr
        ladder = verified.document["verdict"]["rungs"]
        rungs[state] = next(rung["message"] for rung in ladder if rung["name"] == "reachability")
    assert "MTU" not in rungs["healthy"]
    for source in ("gpu01", "gpu02", "gpu03"):
        assert f"{source} -> gpu04 (1500 bytes)" in rungs["mtu-mismatch"]


def test_healthy_hosts_have_nothing_to_report(cluster: Cluster) -> None:
    site = Site(cluster)
    applied = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert applied.code == 0, applied.stderr
    checked = site.remedy("check", "--json").document
    assert findings(checked) == []
    assert {host["status"] for host in checked["hosts"].values()} == {"ok"}


def test_every_fault_of_this_kind_is_tested_here() -> None:
    module = f"{faults.__name__}.reports"
    assert {one.name for one in faults.catalogue() if one.inject.__module__ == module} == {
        *(fault[0] for fault in FAULTS),
        REPAIRED,
    }
