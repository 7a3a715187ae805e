"""Firewalls that are armed for the next boot: found, opened in their files, open after the boot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json")
PORT = 29500


FAULTS: Mapping[str, tuple[str, str]] = {
    "gpu01": ("boots-into-nftables", "what nftables loads at boot"),
    "gpu02": ("boots-into-iptables", "iptables after the next boot (/etc/iptables/rules.v4)"),
    "gpu03": ("boots-into-ufw", "ufw after the next boot"),
    "gpu04": ("boots-into-firewalld", "firewalld after the next boot"),
}
LISTEN = "import socket,sys; socket.create_server((sys.argv[1], int(sys.argv[2]))).accept()"


KNOCK = """\
import socket, sys, time
for _ in range(5):
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
        sys.exit(0)
    except OSError:
        time.sleep(0.3)
sys.exit(1)
"""


def is_reached(cluster: Cluster, host: str, source: str) -> bool:
    """Return whether a host takes a connection from a peer on a launcher's port."""
    address = cluster.host(host).record.cluster_address
    cluster.run(host, f"setsid python3 -c '{LISTEN}' {address} {PORT} >/dev/null 2>&1 </dev/null &")
    return cluster.run(source, ["python3", "-c", KNOCK, address, str(PORT)]).returncode == 0


def findings(site: Site) -> dict[str, list[tuple[str, str]]]:
    """Return kind and title of what `remedy check` finds on each host, without reports."""
    hosts = site.remedy("check", "--json").document["hosts"]
    return {
        name: [(f["kind"], f["title"]) for f in host["findings"] if f["kind"] != "report"]
        for name, host in hosts.items()
    }


@pytest.mark.full
def test_what_is_armed_is_opened_before_it_closes(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    for host, (name, _) in FAULTS.items():
        cluster.fault(host, name)
        cluster.fault(host, name)
    assert findings(site) == {
        host: [("drift", f"{name} keeps the cluster's hosts out of ports that training needs")]
        for host, (_, name) in FAULTS.items()
    }
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert {change["action"]["kind"] for change in applied.document["plan"]["changes"]} == {"file"}
    assert not any(findings(site).values())

    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    cluster.reboot("gpu01")
    assert not is_reached(cluster, "gpu01", "gpu02")  # it was the truth

    again = site.remedy("apply", *APPLY)
    assert again.code == 0, again.text
    for host in cluster.hosts:
        cluster.reboot(host)
    for host in cluster.hosts:
        source = "gpu01" if host != "gpu01" else "gpu02"
        assert is_reached(cluster, host, source), host
    assert not any(findings(site).values())
