"""Networks: MTU, speed and strict filtering, compared between the hosts."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.network_health import NetworkHealthSpec
from remedy.probe import Mention, Sysctls
from tests.unit.build import record
from tests.unit.deploys.links_bench import interface, network
from tests.unit.deploys.report_bench import LATE, finding_of, findings_of, hosts, says
from tests.unit.deploys.ways_bench import routing


def test_an_mtu_that_differs_is_told_with_interface_and_proof() -> None:
    these = hosts(
        network(interface("eno2", "10.0.0.1", mtu=9000)),
        network(interface("eno2", "10.0.0.2", mtu=9000), interface("x", "10.9.0.2", mtu=1500)),
        network(interface("ens1", "10.0.0.3", mtu=1500)),
    )
    finding = finding_of("network_health", these)
    assert finding.label == "mtu-mismatch"
    assert finding.evidence == ("mtu 9000: gpu[01-02]", "mtu 1500: gpu03", "interface ens1: gpu03")
    assert "ping -M do -s 8972 PEER" in finding.fix
    assert findings_of("network_health", these, NetworkHealthSpec(compare=False)) == []


@pytest.mark.parametrize(
    ("mtu", "kinds"),
    [
        (68, ["blocked"]),
        (575, ["blocked"]),
        (576, ["report"]),
        (1279, ["report"]),
        (1280, []),
        (0, []),
    ],
)
@pytest.mark.parametrize("name", ["eno2", "lo"])
def test_an_mtu_by_which_packets_carry_nothing(name: str, mtu: int, kinds: list[str]) -> None:
    loopback: dict[str, Any] = {"kind": "loopback", "state": "UNKNOWN", "up": True}
    mtus = {"eno2": 9000, "lo": 65536, name: mtu}

    def state(own: str, mtus: dict[str, int]) -> dict[str, Any]:
        lo = interface("lo", "127.0.0.1", mtu=mtus["lo"], **loopback)
        return network(lo, interface("eno2", own, mtu=mtus["eno2"]))

    lines = [
        Mention(path="/etc/network/interfaces", line=3, text=f"iface {name} inet static"),
        Mention(path="/etc/network/interfaces", line=4, text=f"    mtu {mtu}"),
        Mention(path="/etc/rc.local", line=2, text=f"ip link set dev {name} mtu {mtu}"),
        Mention(path="/etc/rc.local", line=3, text=f"ip link set dev eth7 mtu {mtu}"),
    ]
    broken = {**state("10.0.0.1", mtus), "mentions": tuple(lines)}
    these = hosts(broken, state("10.0.0.2", {"eno2": 9000, "lo": 65536}))
    spec = NetworkHealthSpec(compare=False)
    findings = findings_of("network_health", these, spec)
    assert [finding.kind.value for finding in findings] == kinds
    for finding in findings:
        assert finding.evidence == (
            f"{name}: mtu {mtu}",
            f"/etc/network/interfaces:4: mtu {mtu}",
            f"/etc/rc.local:2: ip link set dev {name} mtu {mtu}",
        )
        usual = {"eno2": 9000, "lo": 65536}[name]
        assert f"ip link set dev {name} mtu {usual}; and correct the line" in finding.fix
        assert finding.label == {"eno2": "mtu-mismatch", "lo": "network-unreachable"}[name]
    without = hosts(state("10.0.0.1", mtus), state("10.0.0.2", {"eno2": 9000, "lo": 65536}))
    for finding in findings_of("network_health", without, spec):
        assert finding.evidence[0] == f"{name}: mtu {mtu}"
        assert "correct the line" not in finding.fix


def test_a_slow_link_is_told_and_an_unknown_speed_is_not_compared() -> None:
    fast = network(interface("a", "10.0.0.1", speed=100_000))
    slow = network(interface("b", "10.0.0.2", speed=1000))
    none = network(interface("c", "10.0.0.3"))
    finding = finding_of("network_health", hosts(fast, slow, none))
    assert finding.evidence[:2] == ("1000 Mb/s: gpu02", "100000 Mb/s: gpu01")
    assert findings_of("network_health", hosts(fast, none)) == []


def strict(**values: str) -> dict[str, Any]:
    live = {f"net.ipv4.conf.{name}.rp_filter": value for name, value in values.items()}
    return {"sysctls": record(Sysctls, live=live)}


TWO = network(interface("eno1", "10.0.0.1"), interface("eno2", "10.0.0.101", prefix=32))
RAILS = network(interface("eno1", "10.0.0.1"), interface("eno2", "10.0.0.101"))


@pytest.mark.parametrize(
    ("facts", "evidence"),
    [
        ({**TWO, **strict(all="1", eno1="0", eno2="0")}, ("eno1", "eno2")),
        ({**TWO, **strict(all="0", eno1="0", eno2="1")}, ("eno2",)),
        ({**TWO, **strict(all="2", eno1="1", eno2="1")}, ()),
        ({**TWO, **strict(all="0", eno1="2", eno2="0")}, ()),
        ({**network(interface("eno1", "10.0.0.1")), **strict(all="1", eno1="1")}, ()),
        ({**TWO, "sysctls": LATE}, ()),
        # The remedy `rails` judges these.
        ({**RAILS, **strict(all="1", eno1="0", eno2="0")}, ()),
    ],
)
def test_strict_filtering_counts_with_two_ways_in(
    facts: dict[str, Any], evidence: tuple[str, ...]
) -> None:
    found = findings_of("network_health", hosts(facts))
    assert tuple(line.split(":")[0] for f in found for line in f.evidence) == evidence


def test_a_slow_interface_is_named_with_its_hosts() -> None:
    fast = network(interface("a", "10.0.0.1", speed=100_000))
    also = network(interface("a", "10.0.0.2", speed=100_000))
    slow = network(interface("b", "10.0.0.3", speed=1000))
    finding = finding_of("network_health", hosts(fast, also, slow))
    assert finding.label == "wrong-interface"
    says(
        finding,
        title=("speed",),
        evidence=("1000 Mb/s: gpu03", "interface b: gpu03"),
        fix=("cluster.subnet", "ethtool"),
    )
    assert "interface a" not in "\n".join(finding.evidence)


def test_an_mtu_is_compared_on_the_cluster_interface_alone() -> None:
    finding = finding_of(
        "network_health",
        hosts(
            network(interface("a", "10.0.0.1", mtu=9000)),
            network(interface("a", "10.0.0.2", mtu=1500)),
        ),
    )
    says(
        finding,
        title=("MTU",),
        evidence=("mtu 9000: gpu01", "mtu 1500: gpu02"),
        fix=("8972", "remedy verify"),
    )


def test_strict_filtering_is_named_with_its_cause_and_cure() -> None:
    live = {"net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.eno1/7.rp_filter": "0"}
    two = network(
        interface("eno1.7", "10.0.0.1"),
        interface("eno2", "10.0.0.101", prefix=32),
        interface("x", "10.9.0.1"),
    )
    finding = finding_of("network_health", hosts({**two, "sysctls": record(Sysctls, live=live)}))
    assert finding.label == "network-unreachable"
    says(
        finding,
        title=("reverse path",),
        evidence=("eno1.7: rp_filter 1", "eno2: rp_filter 1"),
        fix=("rp_filter = 2",),
    )
    assert len(finding.evidence) == 2


def beyond(route: str, rp_filter: str) -> list[str]:
    """Return what is said of a host whose peer is beyond a router, reached by this route."""
    own = network(interface("eno1", "10.0.0.1"), interface("mgmt", "192.0.2.1"))
    live = {"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.eno1.rp_filter": rp_filter}
    facts = {**own, "sysctls": record(Sysctls, live=live), "routing": routing(LINK0, route)}
    far = network(interface("eno1", "10.9.0.2"))
    return [f.title for f in findings_of("network_health", hosts(facts, far)) if f.host == "gpu01"]


LINK0 = "10.0.0.0/24 dev eno1 proto kernel scope link src 10.0.0.1"


def test_strict_filtering_counts_where_the_way_back_leads_elsewhere() -> None:
    (title,) = beyond("default via 192.0.2.254 dev mgmt", "1")
    assert title.startswith("strict reverse path filtering of eno1 drops what comes from gpu02")
    assert beyond("default via 192.0.2.254 dev mgmt", "2") == []
    assert beyond("default via 10.0.0.254 dev eno1", "1") == []
