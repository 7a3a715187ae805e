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


@pytest.mark.full
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
    assert "no change    every host is as the inventory and the spec require" in again.stdout
    assert cluster.run("gpu01", "ls -A /etc/cloud 2>/dev/null").stdout == ""


def test_what_did_not_survive_a_reboot_is_told_host_by_host(cluster: Cluster) -> None:
    site = Site(cluster)
    (site.folder / "remedy.yaml").write_text("port_range: {range: 50000-51000}\n")
    applied = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert applied.code == 0, applied.text
    # The live value is right until the boot that finds no file to set it from.
    cluster.host("gpu02").must("rm /etc/sysctl.d/90-remedy-ports.conf")
    for host in ("gpu01", "gpu02"):
        cluster.reboot(host)
    found = site.remedy("check", "--after-reboot", "--json")
    assert found.code == 1
    told = found.document["after_reboot"]
    assert {host: one["boot"] for host, one in told.items()} == {
        "gpu01": "survived",
        "gpu02": "lost",
        "gpu03": "not booted",
        "gpu04": "not booted",
    }
    assert {one["run"] for one in told.values()} == {applied.document["run"]}
    assert any("90-remedy-ports.conf" in title for title in told["gpu02"]["changes"])
    said = site.remedy("check", "--after-reboot").stdout
    assert "gpu01: booted since the last run; every applied change is still there" in said
    assert "gpu02: booted since the last run, and NOT every applied change is still there" in said
    mended = site.remedy("apply", "--yes", "--no-verify")
    assert mended.code == 0, mended.text
    cluster.reboot("gpu02")
    after = site.remedy("check", "--after-reboot", "--json")
    assert after.code == 0, after.text
    assert after.document["after_reboot"]["gpu02"]["boot"] == "survived"
