"""Firewalls on real hosts: peers get in where they were kept out, nobody else does, and it lasts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.lab.conftest import Cluster
from tests.lab.firewalls import APPLY, state, titles
from tests.lab.site import Site
from tests.lab.wire import NEEDED, OTHER, Wire

pytestmark = pytest.mark.lab

RELOAD = {
    "ufw": "ufw reload",
    "firewalld": "firewall-cmd --reload",
    "nftables": "systemctl reload nftables",
    "iptables": "systemctl restart netfilter-persistent",
    "iptables-legacy": "systemctl restart netfilter-persistent",
}


@pytest.fixture
def site(cluster: Cluster) -> Site:
    return Site(cluster)


def test_each_firewall_lets_peers_in_and_nobody_else(site: Site) -> None:
    kinds = dict(zip(site.cluster.hosts, ("ufw", "firewalld", "nftables", "iptables"), strict=True))
    for host, kind in kinds.items():
        site.cluster.fault(host, f"firewall-{kind}")
    before = {host: state(site, host) for host in kinds}
    wire = Wire(site)
    wire.listen(kinds)
    first, *others = kinds
    kept_out: dict[str, list[int]] = {host: [] for host in others}
    let_in = {host: list(NEEDED) for host in others}
    assert wire.reached(first, others, NEEDED) == kept_out
    found = titles(site.remedy("check", "--json").document)
    for host, kind in kinds.items():
        assert len(found[host]) in (1, 2), found
        assert "keeps the cluster's hosts out" in found[host][0]
        assert found[host][0].startswith(kind)

    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert all(
        f["remedy"] != "firewall" for h in applied.document["hosts"].values() for f in h["findings"]
    )
    assert wire.reached(first, others, (*NEEDED, OTHER)) == let_in
    assert wire.reached(others[0], [first], (*NEEDED, OTHER)) == {first: list(NEEDED)}
    unasked = [first, *others[1:]]
    nobody = {host: [22] for host in unasked}
    assert wire.strangers(others[0], unasked) == nobody

    for host, kind in kinds.items():
        site.cluster.host(host).must(RELOAD[kind])
    assert wire.reached(first, others, NEEDED) == let_in
    assert wire.strangers(others[0], unasked) == nobody
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []

    with ThreadPoolExecutor() as pool:
        list(pool.map(site.cluster.reboot, kinds))
    wire.listen(kinds)
    assert wire.reached(first, others, (*NEEDED, OTHER)) == let_in
    assert wire.reached(others[0], [first], NEEDED) == {first: list(NEEDED)}
    assert wire.strangers(others[0], unasked) == nobody
    assert site.remedy("check", "--json", "--exit-code").document["plan"]["changes"] == []

    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert wire.reached(first, others, NEEDED) == kept_out
    for host, kind in kinds.items():
        assert state(site, host).split() == before[host].split(), kind


@pytest.mark.full
def test_several_firewalls_at_once_and_none(site: Site) -> None:
    first, second, *quiet = site.cluster.hosts
    site.cluster.fault(first, "firewall-nftables", "firewall-iptables-legacy")
    site.cluster.fault(second, "firewall-iptables-legacy")
    # What somebody else keeps in the table must not be saved, and must not be lost.
    site.cluster.host(second).must(
        "iptables-legacy -N DOCKER-USER && iptables-legacy -A DOCKER-USER -j RETURN"
    )
    wire = Wire(site)
    wire.listen([first, second])
    assert wire.reached(quiet[0], [first, second], NEEDED) == {first: [], second: []}
    applied = site.remedy("apply", *APPLY)
    changed = {c["host"] for c in applied.document["plan"]["changes"] if c["remedy"] == "firewall"}
    assert changed == {first, second}, "a host without a firewall is left alone"
    assert wire.reached(quiet[0], [first, second], NEEDED) == {
        first: list(NEEDED),
        second: list(NEEDED),
    }
    saved = site.cluster.run(second, "cat /etc/iptables/rules.v4").stdout
    assert "DOCKER" not in saved
    assert "REMEDY-PEERS" in saved
    assert "-A DOCKER-USER -j RETURN" in site.cluster.run(second, "iptables-legacy-save").stdout
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []
    # A node leaves: its address is let in no longer, in force and in what is loaded at boot.
    gone = wire.records[quiet[-1]]
    with site.inventory.open("a", encoding="utf-8") as file:
        file.write(f"gpus = [one for one in gpus if one[0] != {gone.name!r}]\n")
    assert site.remedy("apply", *APPLY).document["plan"]["changes"]
    assert wire.reached(gone.name, [first, second], NEEDED) == {first: [], second: []}
    assert wire.reached(quiet[0], [first, second], NEEDED) == {
        first: list(NEEDED),
        second: list(NEEDED),
    }


@pytest.mark.full
def test_what_others_write_later_stays_and_off_is_asked_for_twice(site: Site) -> None:
    first, second, *_ = site.cluster.hosts
    site.cluster.fault(first, "firewall-ufw")
    site.cluster.fault(second, "firewall-firewalld")
    limit = ("--limit", f"{first},{second}")
    assert site.remedy("apply", *APPLY, *limit).code == 0
    site.cluster.host(first).must("ufw allow 8081/tcp")
    site.cluster.host(second).must("firewall-cmd -q --add-port=8081/tcp")  # not --permanent
    assert site.remedy("apply", *APPLY, *limit).document["plan"]["changes"] == []
    # What firewalld has in force only would be lost by a reload: nothing is done, and that is said.
    (site.folder / "remedy.yaml").write_text("firewall: {ports: [8000]}\n")
    partly = site.remedy("apply", *APPLY, *limit)
    assert partly.code == 1
    assert "runtime-to-permanent" in partly.text
    assert "8081/tcp" in site.cluster.host(second).must("firewall-cmd --list-ports")
    site.cluster.host(second).must("firewall-cmd -q --runtime-to-permanent")
    assert site.remedy("apply", *APPLY, *limit).code == 0
    assert "8081" in site.cluster.host(first).must("ufw status")

    (site.folder / "remedy.yaml").write_text("firewall: {mode: off}\n")
    assert site.remedy("apply", *APPLY, *limit).code == 4, "high risk is asked for twice"
    off = site.remedy("apply", *APPLY, *limit, "--accept-high-risk")
    assert off.code == 0, off.text
    assert "inactive" in site.cluster.host(first).must("ufw status")
    assert "inactive" in site.cluster.run(second, "systemctl is-active firewalld").stdout
    back = site.remedy("rollback", off.document["run"], "--yes")
    assert back.code == 0, back.text
    assert "8081" in site.cluster.host(first).must("ufw status")
    assert "8081/tcp" in site.cluster.host(second).must("firewall-cmd --list-ports")


@pytest.mark.full
def test_a_firewalld_that_refuses_keeps_the_rules_that_it_had(site: Site) -> None:
    """A reload that fails would leave the host without any rule, open to everybody."""
    first, *_ = site.cluster.hosts
    host = site.cluster.host(first)
    limit = ("--limit", first)
    site.cluster.fault(first, "firewall-firewalld")
    # An interface that was bound at run time, as NetworkManager does it, is bound again as well.
    card = site.cluster.lab.record().host(first).cluster_interface
    host.must(f"firewall-cmd -q --zone=internal --change-interface={card}")
    in_force = host.must("nft -s list table inet firewalld")
    bad = "/etc/firewalld/services/theirs.xml"
    host.write(bad, b"<service><port protocol='tcp' port='none'/></service>")
    refused = site.remedy("apply", "--yes", "--no-verify", *limit)
    assert refused.code == 1
    assert "firewalld did not take the rules, and has its former rules again: " in refused.text
    assert f"{first}: still there: firewalld keeps the cluster's hosts out" in refused.text
    assert host.must("nft -s list table inet firewalld") == in_force
    assert host.must("firewall-cmd --state 2>&1").strip() == "running"
    ours = "ls /etc/firewalld/ipsets /etc/firewalld/policies"
    assert not [name for name in host.must(ours).splitlines() if "remedy" in name]

    host.must(f"rm {bad}")
    assert site.remedy("apply", *APPLY, *limit).code == 0
    assert site.remedy("apply", *APPLY, *limit).document["plan"]["changes"] == []


@pytest.mark.full
def test_verification_fails_before_and_passes_after(site: Site) -> None:
    if not site.cluster.lab.record().python:
        pytest.skip("no torch for the hosts: install the extra `torch`, or name an environment")
    (site.folder / "remedy.yaml").write_text("verify: {deadline: 25}\n")
    names = site.cluster.hosts[:2]
    limit = ("--limit", ",".join(names))
    assert site.remedy("apply", *APPLY, *limit).code == 0  # names and hosts files
    site.cluster.fault(names[0], "firewall-nftables")
    broken = site.remedy("verify", "--json", *limit)
    assert broken.code == 3, broken.text
    verdict = broken.document["verdict"]
    assert verdict["passed"] is False
    assert any("no answer" in one["reason"] for one in verdict["outcomes"])
    (site.folder / "remedy.yaml").unlink()
    applied = site.remedy("apply", "--yes", "--json", *limit)
    assert applied.code == 0, applied.text
    assert applied.document["verdict"]["passed"] is True
