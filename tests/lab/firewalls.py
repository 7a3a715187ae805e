"""What is said of the firewalls of a lab's hosts, and what their rules are."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.site import Site

APPLY = ("--yes", "--no-verify", "--json")


def titles(
    document: Mapping[str, dict[str, dict[str, list[dict[str, str]]]]],
) -> dict[str, list[str]]:
    """Return what is said of each host's firewalls."""
    return {
        host: [f["title"] for f in told["findings"] if f["remedy"] == "firewall"]
        for host, told in document["hosts"].items()
    }


def state(site: Site, host: str) -> str:
    """Return every rule of a host, in force and saved."""
    return site.cluster.run(
        host,
        "nft -s list ruleset; for t in iptables-nft iptables-legacy; do $t-save -t filter |"
        " sed -e '/^#/d' -e 's/ \\[.*\\]$//'; done;"
        " for f in /etc/ufw/user.rules /etc/nftables.conf /etc/nftables.d/* /etc/iptables/rules.v4"
        " /etc/firewalld/*/*.xml; do [ ! -e $f ] || { echo $f; cat $f; }; done",
    ).stdout
