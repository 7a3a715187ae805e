"""What is armed for the next boot, on hosts that really boot: found before it, and right after it."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json")
FAULTS = {
    "gpu01": "boots-with-other-ports",
    "gpu02": "boots-without-a-peer",
    "gpu03": "boots-without-ssh",
    "gpu04": "boots-with-another-name",
}


def titles(site: Site) -> dict[str, list[str]]:
    """Return what `remedy check` finds, by host, without reports."""
    hosts = site.remedy("check", "--json").document["hosts"]
    return {
        name: [finding["title"] for finding in host["findings"] if finding["kind"] != "report"]
        for name, host in hosts.items()
    }


def test_what_the_next_boot_breaks_is_found_before_it(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    assert not any(titles(site).values())
    for host, name in FAULTS.items():
        cluster.fault(host, name)
        cluster.fault(host, name)
    assert titles(site) == {
        "gpu01": ["the kernel may give ports that launchers need to outgoing connections"],
        "gpu02": ["after the next boot, this host drops what it sends to gpu01"],
        "gpu03": [
            "after the next boot, ssh.service does not run: it runs now, and is not started at boot"
        ],
        "gpu04": ["after the next boot, the host name is 'node'"],
    }
    site.remedy("apply", *APPLY)
    # What remedy leaves to people, by the words of its findings.
    cluster.host("gpu03").must("systemctl --no-reload enable ssh")
    cluster.host("gpu04").must("rm /etc/sysctl.d/98-name.conf")
    for host in ("gpu01", "gpu02", "gpu04"):
        cluster.reboot(host)
    reserved = cluster.run("gpu01", "sysctl -n net.ipv4.ip_local_reserved_ports").stdout
    assert "29400,29500" in reserved
    assert cluster.run("gpu04", "uname -n").stdout == "gpu04\n"
    # It was the truth: the route is there now, and goes; its script is still named.
    peer = site.addresses()["gpu01"]
    assert peer in cluster.run("gpu02", "ip route show type blackhole").stdout
    assert [t for t in titles(site)["gpu02"] if "drops what this host sends to gpu01" in t]
    cluster.host("gpu02").must("systemctl disable --quiet by-hand; rm /etc/rc.local")
    mended = site.remedy("apply", *APPLY)
    assert mended.code == 0, mended.text
    assert cluster.run("gpu02", "ip route show type blackhole").stdout == ""
    assert not any(titles(site).values())
