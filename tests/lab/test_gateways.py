"""Hosts that only gateways reach: read, repaired and proved through them, and told where that fails."""

from __future__ import annotations

from collections.abc import Iterator

import ClusterShell
import pytest

from remedy.lab.rootfs import GUARDED_PASSWORD
from remedy.runs.outcome import HostStatus
from remedy.runs.probe import probe
from tests.lab.conftest import Cluster
from tests.lab.gateway_site import PACKAGES, GatewaySite
from tests.lab.runs import LOCKOUT, carry_out, plan_of
from tests.lab.site import Site
from tests.lab.test_guard import open_hosts

pytestmark = pytest.mark.lab

SHORT = ", name: 3, connect: 3, key_exchange: 4, login: 4, channel: 4, command: 4"


def test_hosts_behind_a_gateway_are_read_and_repaired(cluster: Cluster) -> None:
    through = GatewaySite(Site(cluster), ("gpu01",))
    through.install()
    site = through.site
    checked = site.remedy("check", "--json")
    assert {host["error"] for host in checked.document["hosts"].values()} == {None}, checked.text
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 0, applied.text
    site.assert_right()
    again = site.remedy("check", "--exit-code")
    assert again.code == 0, again.text


@pytest.fixture(scope="module")
def module_site(module_cluster: Cluster) -> GatewaySite:
    through = GatewaySite(Site(module_cluster), ("gpu01", "gpu02"))
    through.install()
    return through
