"""A failed verification names the cause and the command, and that command cures it, for fault after fault."""

from __future__ import annotations

import os
import shlex

import pytest

from remedy.text import fold
from tests.lab import forks
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# With --full the ranks run torch, else the stub, which sums little.
CHEAP = forks.WHOLE not in os.environ
SIZES = ", sizes: [8]" if CHEAP else ""


@pytest.fixture
def site(cluster: Cluster) -> Site:
    """A cluster that works."""
    if not cluster.lab.record().python:
        pytest.skip("no torch for the hosts: install the extra `torch`, or name an environment")
    site = Site(cluster)
    if CHEAP:
        site.run_on_stub()
    (site.folder / "remedy.yaml").write_text(f"verify: {{deadline: 24{SIZES}}}\n", encoding="utf-8")
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    return site


@pytest.mark.parametrize(
    ("fault", "victim", "label"),
    [
        pytest.param("firewall-ufw", -1, "firewall-ports", marks=pytest.mark.full),
        ("firewall-nftables", -1, "firewall-ports"),
        pytest.param("firewall-firewalld", -1, "firewall-ports", marks=pytest.mark.full),
        pytest.param("firewall-iptables", 0, "firewall-ports", marks=pytest.mark.full),
        pytest.param("stale-peer-entry", 0, "hostname-unresolvable", marks=pytest.mark.full),
        pytest.param("no-peer-entries", -1, "hostname-unresolvable", marks=pytest.mark.full),
        pytest.param("wrong-socket-ifname", -1, "wrong-interface", marks=pytest.mark.full),
    ],
)
def test_the_command_that_a_failed_verification_prints_cures(
    site: Site, fault: str, victim: int, label: str
) -> None:
    host = site.cluster.hosts[victim]
    site.cluster.fault(host, fault)
    cure(site, host, label=label)


@pytest.mark.full
def test_an_own_name_that_leads_to_loopback(site: Site) -> None:
    # Without the search by tests of groups, which makes this the longest of all; others here have it.
    spec = "verify: {deadline: 24, isolate: false}\n"
    (site.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
    # Of two, because gloo lets one of each pair connect: such a host alone may be the one that does.
    hosts = site.cluster.hosts[-2:]
    for host in hosts:
        own = f"sed -i 's/^.*[[:space:]]{host}$/127.0.1.1 {host}/' /etc/hosts"
        site.cluster.host(host).must(own)
    cure(site, *hosts, label="loopback-hostname")


def cure(site: Site, *hosts: str, label: str) -> None:
    """See that verifying fails with this cause and a command for these hosts, and that it ends it."""
    failed = site.remedy("verify", "--json")
    assert failed.code == 3, failed.stderr
    explained = failed.document["explanation"]
    assert explained["diagnosis"]["label"] == label, explained
    own = next(one for one in explained["confirmations"] if one["label"] == label)
    assert own["status"] == "confirmed"
    assert own["hosts"] == list(hosts)
    program, command, inventory, *words = shlex.split(explained["command"])
    assert (program, command, words) == ("remedy", "apply", ["--limit", fold(hosts)])
    assert inventory == str(site.inventory)
    cured = site.remedy(command, *words, "--yes", "--no-verify")
    assert cured.code == 0, cured.stderr
    # The short deadline was for what hangs; a busy machine may need longer for what passes.
    (site.folder / "remedy.yaml").write_text(f"verify: {{deadline: 90{SIZES}}}\n", encoding="utf-8")
    proved = site.remedy("verify")
    assert proved.code == 0, proved.stderr
