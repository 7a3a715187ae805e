"""Packets between hosts: dropped on their way out, in other tables, and by rules that nobody can judge."""

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


def evidence(document: RemedyOutput, host: str, kind: str) -> str:
    """Return what is said of a host's firewalls, in findings of one kind."""
    found = document.document["hosts"][host]["findings"]
    return "\n".join(
        "\n".join((f["title"], *f["evidence"], f["fix"]))
        for f in found
        if f["remedy"] == "firewall" and f["kind"] == kind
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
