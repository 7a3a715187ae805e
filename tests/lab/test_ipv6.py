"""IPv6 on real hosts: off, on, and never where ssh itself needs it."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01")


@pytest.fixture
def site(cluster: Cluster) -> Site:
    return Site(cluster)


def spec(site: Site, text: str) -> None:
    (site.folder / "remedy.yaml").write_text(f"ipv6: {text}\n")


def addresses(site: Site) -> str:
    """Return the IPv6 addresses of the host, without what the kernel counts down."""
    return site.cluster.host("gpu01").must("ip -6 -brief address | tr -s ' '")


@pytest.mark.full
def test_off_and_back_with_the_addresses_that_it_had(site: Site) -> None:
    site.cluster.fault("gpu01", "ipv6-address")
    before = addresses(site)
    assert "fd00:6c61:62::1/64" in before
    spec(site, "{mode: disable}")
    refused = site.remedy("apply", *APPLY)
    assert refused.code == 4, "an address goes with it, so it is asked for twice"
    applied = site.remedy("apply", *APPLY, "--accept-high-risk")
    assert applied.code == 0, applied.text
    change = next(c for c in applied.document["plan"]["changes"] if "everywhere" in c["title"])
    assert (change["risk"], change["guarded"]) == ("high", True)
    assert addresses(site) == ""
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert "fd00:6c61:62::1/64" in addresses(site)
    assert "fe80::" in addresses(site)


def test_on_again_and_after_a_reboot(site: Site) -> None:
    site.cluster.fault("gpu01", "ipv6-off")
    assert addresses(site) == ""
    spec(site, "{mode: keep}")
    changes = site.remedy("apply", *APPLY).document["plan"]["changes"]
    assert not [c for c in changes if c["remedy"] == "ipv6"], "nobody asked for it"
    spec(site, "{mode: enable}")
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert "fe80::" in addresses(site)
    site.cluster.reboot("gpu01")
    assert "fe80::" in addresses(site)
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []


def test_one_interface_is_off_also_after_a_reboot(site: Site) -> None:
    spec(site, "{interfaces: {eth0: disable}}")
    assert site.remedy("apply", *APPLY).code == 0
    look = "cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6 /proc/sys/net/ipv6/conf/lo/disable_ipv6"
    assert site.cluster.run("gpu01", look).stdout.split() == ["1", "0"]
    site.cluster.reboot("gpu01")
    assert site.cluster.run("gpu01", look).stdout.split() == ["1", "0"]
