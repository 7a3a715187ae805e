"""A node is replaced: refused until the user accepts it, then it and its peers are made right."""

from __future__ import annotations

import json
from ipaddress import IPv4Network

import pytest

from tests import stub
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# Beyond the addresses that hosts of a lab have.
NEW_NUMBER = 240


def test_a_replaced_node_is_accepted_by_name_and_then_everybody_finds_it(cluster: Cluster) -> None:
    if cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    site = Site(cluster)
    site.make_ranks_cheap()
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    others = [host for host in cluster.hosts if host != "gpu02"]
    known = cluster.lab.paths.known_hosts.read_text("ascii")
    addresses = {**site.addresses(), "gpu02": _replace(cluster, site)}

    refused = site.remedy("apply", "--yes", "--no-verify")
    assert refused.code == 4
    assert "gpu02" in refused.stdout
    assert "the ssh host key has CHANGED" in refused.stdout
    assert f"remedy trust {site.inventory} --replace gpu02" in refused.stdout
    # Nobody has been on it; and its peers, who could be reached, know its new address already.
    assert site.names("gpu02").running == "node"
    assert cluster.run("gpu02", "ls /var/lib/remedy").returncode != 0
    site.assert_right(*others, addresses=addresses)

    # A changed key is nothing that a general yes accepts.
    blanket = site.remedy("trust", "--yes")
    assert blanket.code == 4
    assert "--replace gpu02" in blanket.stderr
    assert cluster.lab.paths.known_hosts.read_text("ascii") == known

    unasked = site.remedy("trust", "--replace", "gpu02")
    assert unasked.code == 2
    assert cluster.lab.paths.known_hosts.read_text("ascii") == known
    accepted = site.remedy("trust", "--replace", "gpu02", "--yes")
    assert accepted.code == 0, accepted.text
    assert "SHA256:" in accepted.stdout

    applied = site.remedy("apply", "--yes", "--json")
    assert applied.code == 0, applied.text
    document = applied.document
    assert {change["host"] for change in document["plan"]["changes"]} == {"gpu02"}
    site.assert_right(addresses=addresses)
    assert document["verdict"]["passed"] is True
    assert document["verdict"]["hosts"] == len(cluster.hosts)
    # The machine that was there before has the records of the first run, and that is nobody's fault.
    witnesses = site.remedy("audit verify", "--hosts")
    assert witnesses.code == 0, witnesses.text
    # And nothing of the first run is to be taken back on the new one.
    first = json.loads(site.remedy("history", "--command", "apply", "--json").stdout)["runs"][0]
    back = site.remedy("rollback", first["run"], "-o", str(site.folder / "back.json"))
    assert "gpu02: a different machine answers there now" in back.stdout


def _replace(cluster: Cluster, site: Site) -> str:
    """Put another machine in gpu02's place, with another cluster address; return that."""
    cluster.replace("gpu02")
    stub.install(cluster.host("gpu02"))
    one = cluster.host("gpu02").record
    network = IPv4Network(cluster.lab.record().cluster)
    new = str(network[NEW_NUMBER])
    device = one.cluster_interface
    cluster.host("gpu02").must(
        f"ip address flush dev {device} && ip address add {new}/{network.prefixlen} dev {device}"
    )
    site.edit_inventory({"gpu02": {"cluster_address": new}})
    return new
