"""What was made right is right after a reboot, also where something would set it back."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

FAULTS = {
    "gpu01": "duplicate-hostname",
    "gpu02": "hostname-reset-by-cloud-init",
    "gpu03": "hostname-lost-at-reboot",
}


def test_names_survive_a_reboot(cluster: Cluster) -> None:
    site = Site(cluster)
    for host, fault in FAULTS.items():
        cluster.fault(host, fault)
    looked = site.remedy("check").stdout
    assert "gpu02: cloud-init sets the host name back at boot" in looked
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 0, applied.text
    assert "not verified" in applied.stdout
    for host in FAULTS:
        before = cluster.host(host).boot_id()
        cluster.reboot(host)
        assert cluster.host(host).boot_id() != before
    site.assert_right()
    again = site.remedy("apply", "--yes", "--no-verify")
    assert again.code == 0, again.text
    assert "no change    every host is as the inventory and the spec want it" in again.stdout
    assert cluster.run("gpu01", "ls -A /etc/cloud 2>/dev/null").stdout == ""
