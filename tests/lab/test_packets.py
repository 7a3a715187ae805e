"""Packets between hosts: dropped on their way out, in other tables, over IPv6, by units, and by rules of which
nobody can say what they do.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import Cluster
from tests.lab.firewalls import APPLY, state, titles
from tests.lab.site import RemedyOutput, Site
from tests.lab.wire import NEEDED, Wire

pytestmark = pytest.mark.lab


@pytest.fixture
def site(cluster: Cluster) -> Site:
    return Site(cluster)


def evidence(document: RemedyOutput, host: str, kind: str, remedy: str = "firewall") -> str:
    """Return what a remedy says of a host, in findings of one kind."""
    found = document.document["hosts"][host]["findings"]
    return "\n".join(
        "\n".join((f["title"], *f["evidence"], f["fix"]))
        for f in found
        if f["remedy"] == remedy and f["kind"] == kind
    )


def test_what_a_firewall_lets_nobody_out_for_is_opened_towards_peers_alone(site: Site) -> None:
    kinds = dict(zip(site.cluster.hosts, ("ufw", "firewalld", "nftables", "iptables"), strict=True))
    for host, kind in kinds.items():
        site.cluster.fault(host, f"firewall-{kind}-outgoing")
    before = {host: state(site, host) for host in kinds}
    wire = Wire(site)
    wire.listen(kinds)

    def reached() -> dict[str, dict[str, list[int]]]:
        """Return what each host can connect to on each of the others."""
        return {h: wire.reached(h, [other for other in kinds if other != h], NEEDED) for h in kinds}

    nothing: dict[str, dict[str, list[int]]] = {
        h: {other: [] for other in kinds if other != h} for h in kinds
    }
    everything = {h: {other: list(NEEDED) for other in kinds if other != h} for h in kinds}
    assert reached() == nothing
    checked = site.remedy("check", "--json")
    for host, kind in kinds.items():
        assert kind in evidence(checked, host, "drift"), checked.text
        assert "keeps this host from connecting" in evidence(checked, host, "drift")

    # Over a new connection each host confirms its change: answers of sshd have never been held back.
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert reached() == everything
    strangers = wire.stranger
    for host in kinds:
        look = f"python3 -c 'import socket; socket.create_connection((\"{strangers}\", 29500), 1)' 2>&1"
        assert "refused" not in site.cluster.run(host, look).stdout, "only peers are let out to"
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []

    reload = {
        "ufw": "ufw reload",
        "firewalld": "firewall-cmd --reload",
        "nftables": "systemctl reload nftables",
        "iptables": "systemctl restart netfilter-persistent",
    }
    for host, kind in kinds.items():
        site.cluster.host(host).must(reload[kind])
    assert reached() == everything
    assert site.remedy("check", "--json", "--exit-code").document["plan"]["changes"] == []

    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert reached() == nothing
    for host, kind in kinds.items():
        assert state(site, host).split() == before[host].split(), kind


@pytest.mark.full
def test_what_is_lost_in_other_tables_is_repaired_or_named(site: Site) -> None:
    ingress, raw, arp, notrack = site.cluster.hosts
    faults = {ingress: "ingress", raw: "raw", arp: "arp", notrack: "notrack"}
    assert site.remedy("apply", *APPLY).code == 0
    wire = Wire(site)
    wire.listen(faults)
    for host, fault in faults.items():
        site.cluster.fault(host, f"firewall-{fault}")
        site.cluster.host(host).must("ip neighbour flush all")
    assert wire.reached(ingress, [notrack], NEEDED) == {notrack: []}
    assert wire.reached(notrack, [ingress], NEEDED) == {ingress: []}

    applied = site.remedy("apply", *APPLY)
    assert applied.code == 1, applied.text
    assert wire.reached(ingress, [notrack], NEEDED) == {notrack: list(NEEDED)}
    assert wire.reached(notrack, [ingress], NEEDED) == {ingress: list(NEEDED)}
    again = site.remedy("check", "--json")
    assert again.document["plan"]["changes"] == []
    statuses = {host: again.document["hosts"][host]["status"] for host in faults}
    assert statuses == {ingress: "ok", raw: "failed", arp: "failed", notrack: "ok"}
    assert "-t raw -A PREROUTING -s " in evidence(again, raw, "blocked")
    assert "iptables -t raw -S" in evidence(again, raw, "blocked")
    assert "arp operation request arp daddr ip" in evidence(again, arp, "blocked")


@pytest.mark.full
def test_a_rule_that_its_text_does_not_decide_is_unknown_until_it_is_accepted(site: Site) -> None:
    rate, random, *_ = site.cluster.hosts
    limit = ("--limit", f"{rate},{random}")
    assert site.remedy("apply", *APPLY, *limit).code == 0
    site.cluster.fault(rate, "firewall-rate")
    site.cluster.fault(random, "firewall-random")
    checked = site.remedy("check", "--json", *limit)
    assert checked.code == 1, checked.text
    assert checked.document["plan"]["changes"] == []
    assert {checked.document["hosts"][h]["status"] for h in (rate, random)} == {"failed"}
    assert "hashlimit" in evidence(checked, rate, "unknown")
    assert "numgen random mod 10" in evidence(checked, random, "unknown")
    last = site.remedy("check", *limit).stdout.splitlines()[-1]
    assert last.startswith("unknown"), last
    assert "2 " in last

    texts = [
        finding["evidence"][0]
        for host in (rate, random)
        for finding in checked.document["hosts"][host]["findings"]
        if finding["kind"] == "unknown"
    ]
    assert len(texts) == 2
    settings = f"firewall: {{accepted_rules: {json.dumps(texts[:1])}}}\n"
    (site.folder / "remedy.yaml").write_text(settings)
    once = site.remedy("check", "--json", *limit)
    assert {h: once.document["hosts"][h]["status"] for h in (rate, random)} == {
        rate: "ok",
        random: "failed",
    }
    # Another rule is another text.
    site.cluster.host(rate).must(
        "iptables-nft -A INPUT -p tcp -m connlimit --connlimit-above 3 -j DROP"
    )
    more = site.remedy("check", "--json", *limit)
    assert "connlimit" in evidence(more, rate, "unknown")
    assert "hashlimit" not in evidence(more, rate, "unknown")
    assert titles(more.document)[rate]


NAMES_STAY = "hosts_file: {manage: false}\n"


def leads_to(site: Site, host: str, peer: str) -> str:
    """Return what a peer's name leads to first."""
    return site.cluster.host(host).must(["getent", "ahosts", peer]).split()[0]


def test_what_is_lost_over_ipv6_and_by_units_is_named(site: Site) -> None:
    lost, closed, *_ = site.cluster.hosts
    limit = ("--limit", f"{lost},{closed}")
    site.cluster.fault(lost, "firewall-ip6tables")
    site.cluster.fault(closed, "unit-denies-peers")
    (site.folder / "remedy.yaml").write_text(NAMES_STAY)
    checked = site.remedy("check", "--json", *limit)
    rule = "-A INPUT -s 2001:db8:214::/64 -p tcp -m tcp --dport 29400:65535 -j DROP"
    assert rule in evidence(checked, lost, "blocked")
    assert "IPv6" not in evidence(checked, closed, "blocked")
    line = "/etc/systemd/system/user.slice.d/closed.conf:2: IPAddressDeny="
    assert line in evidence(checked, closed, "blocked", "unit_network")

    # Names that lead to the cluster addresses again end it; what a unit may do is its owner's affair.
    (site.folder / "remedy.yaml").unlink()
    assert rule in evidence(site.remedy("check", "--json", *limit), lost, "report")
    site.cluster.host(closed).must("rm /etc/systemd/system/user.slice.d/closed.conf")
    applied = site.remedy("apply", *APPLY, *limit)
    assert applied.code == 0, applied.text
    assert leads_to(site, lost, closed) == site.addresses()[closed]
    again = site.remedy("check", "--json", *limit)
    assert again.document["plan"]["changes"] == []
    assert not evidence(again, lost, "report") + evidence(again, closed, "blocked", "unit_network")
    assert site.remedy("rollback", applied.document["run"], "--yes").code == 0
    assert leads_to(site, lost, closed).startswith("2001:db8:214::")


def test_systemd_drops_what_it_keeps_a_unit_from(site: Site) -> None:
    free, peer, *_ = site.cluster.hosts
    host, address = site.cluster.host(free), site.addresses()[peer]
    ask = f"systemd-run -q --wait -P {{}} ping -c1 -W3 {address}"
    host.must(ask.format(""))
    assert host.run(ask.format("-p IPAddressDeny=any")).returncode != 0


@pytest.mark.full
def test_both_directions_and_routes_of_ipv6_are_named(site: Site) -> None:
    both, routed, *_ = site.cluster.hosts
    limit = ("--limit", f"{both},{routed}")
    site.cluster.fault(both, "firewall-nft-ip6")
    site.cluster.fault(routed, "route-ipv6-unreachable")
    (site.folder / "remedy.yaml").write_text(NAMES_STAY)
    checked = site.remedy("check", "--json", *limit)
    told = evidence(checked, both, "blocked")
    assert "ip6 lab_fault input: ip6 saddr 2001:db8:214::/64 tcp dport 1024-65535 drop" in told
    assert "ip6 lab_fault output: ip6 daddr 2001:db8:214::/64 tcp dport 1024-65535 drop" in told
    assert "unreachable 2001:db8:214::" in evidence(checked, routed, "blocked", "peer_routes")
    for host, command in (
        (both, "nft delete table ip6 lab_fault"),
        (routed, "ip -6 route flush type unreachable"),
    ):
        site.cluster.host(host).must(command)
    after = site.remedy("check", "--json", *limit)
    assert not evidence(after, both, "blocked") + evidence(after, routed, "blocked", "peer_routes")


@pytest.mark.full
def test_firewalls_in_odd_ways_are_opened_or_named(site: Site) -> None:
    limited, rich, locked, listed = site.cluster.hosts
    faults = {
        limited: "ufw-limit",
        rich: "firewalld-rich",
        locked: "firewalld-lockdown",
        listed: "ipset",
    }
    assert site.remedy("apply", *APPLY).code == 0
    wire = Wire(site)
    wire.listen(faults)
    for host, name in faults.items():
        site.cluster.fault(host, f"firewall-{name}")
    before = {host: state(site, host) for host in faults}
    for host in (rich, locked, listed):
        assert wire.reached(limited, [host], NEEDED) == {host: []}
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 1, applied.text
    for host in (rich, locked, listed):
        assert wire.reached(limited, [host], NEEDED) == {host: list(NEEDED)}, applied.text
    checked = site.remedy("check", "--json")
    statuses = {host: checked.document["hosts"][host]["status"] for host in faults}
    assert statuses == {limited: "failed", rich: "ok", locked: "ok", listed: "ok"}
    assert "recent" in evidence(checked, limited, "unknown")
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    for host in faults:
        assert state(site, host).split() == before[host].split(), host
