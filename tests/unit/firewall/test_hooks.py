"""Which base chains packets pass, in which order, and what travels from one to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from remedy.firewall.hooks import Gate, Path, Tables, gates
from remedy.probe import NftChain, NftRule, NftRuleset
from tests.unit.firewall.firewall_bench import NO_NFT, TRAFFIC, WAY, saved

DROP = [{"drop": None}]
FAMILIES = ("inet", "ip", "ip6", "arp", "bridge", "netdev")
HOOKS = ("ingress", "prerouting", "input", "forward", "output", "postrouting", "egress")


def chain(
    family: str,
    hook: str,
    *expressions: Sequence[Any],
    priority: int = 0,
    kind: str = "filter",
    devices: tuple[str, ...] = (),
    policy: str = "accept",
) -> NftChain:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    return NftChain(family, "t", f"{hook}{priority}", hook, priority, policy, rules, kind, devices)


def passed(*chains: NftChain, path: Path = WAY, **tables: Any) -> list[Gate]:
    ruleset = NftRuleset(tables=(), chains=chains, sets=())
    return list(gates(Tables(ruleset, {}, **tables), TRAFFIC, path))


def places(found: Sequence[Gate], way: str, *, arp: bool = False) -> list[str]:
    return [gate.place for gate in found if gate.way == way and gate.arp is arp]


def match(protocol: str, field: str, right: Any) -> dict[str, Any]:
    left = {"payload": {"protocol": protocol, "field": field}}
    return {"match": {"op": "==", "left": left, "right": right}}


def test_packets_pass_the_chains_of_their_way_in_order() -> None:
    every = [
        chain(family, hook, devices=("eth0",) if hook.endswith("gress") else ())
        for family in FAMILIES
        for hook in HOOKS
    ]
    found = passed(*reversed(every))
    assert places(found, "in") == [
        "netdev t ingress0",
        "inet t ingress0",
        *(f"{family} t prerouting0" for family in ("ip", "inet")),
        *(f"{family} t input0" for family in ("ip", "inet")),
    ]
    assert places(found, "out") == [
        *(f"{family} t output0" for family in ("ip", "inet")),
        *(f"{family} t postrouting0" for family in ("ip", "inet")),
        "netdev t egress0",
    ]
    assert places(found, "in", arp=True) == ["netdev t ingress0", "arp t input0"]
    assert places(found, "out", arp=True) == ["arp t output0", "netdev t egress0"]


def test_chains_of_a_bridge_are_passed_where_the_address_is_on_one() -> None:
    rules = [
        chain("bridge", hook, DROP) for hook in ("prerouting", "input", "output", "postrouting")
    ]
    assert passed(*rules) == []
    bridge = Path("br0", "10.0.0.1", ("eth0",), bridged=True)
    found = passed(*rules, path=bridge)
    assert places(found, "in") == ["bridge t prerouting0", "bridge t input0"]
    assert places(found, "out") == ["bridge t output0", "bridge t postrouting0"]
    assert all(gate.judgement.dropped for gate in found)


@pytest.mark.parametrize(
    ("devices", "dropped"), [(("eth0",), True), (("eth1",), False), (("eth1", "eth0"), True)]
)
def test_a_chain_of_an_interface_is_passed_there_alone(
    devices: tuple[str, ...], dropped: bool
) -> None:
    found = passed(chain("netdev", "ingress", DROP, devices=devices))
    assert any(gate.judgement.dropped for gate in found) is dropped
    bond = Path("bond0", "10.0.0.1", ("eth0", "eth9"))
    below = passed(chain("netdev", "ingress", DROP, devices=devices), path=bond)
    assert any(gate.judgement.dropped for gate in below) is dropped


def test_a_chain_of_an_interface_that_is_not_known_is_a_doubt_and_hides_nothing() -> None:
    early = chain("netdev", "ingress", DROP)
    late = chain("inet", "input", DROP)
    found = passed(early, late)
    by_place = {gate.place: gate.judgement for gate in found if not gate.arp}
    assert not by_place["netdev t ingress0"].dropped
    assert [d.outcome for d in by_place["netdev t ingress0"].doubts] == ["netdev t ingress0: drop"]
    assert by_place["inet t input0"].dropped


def test_chains_of_nat_see_the_first_packet_of_a_connection_alone() -> None:
    state = {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}}
    assert not any(
        gate.judgement.dropped
        for gate in passed(chain("ip", "prerouting", [state, *DROP], kind="nat"))
    )
    assert passed(chain("ip", "prerouting", DROP, kind="nat"))[0].judgement.dropped


def test_marks_travel_from_chain_to_chain() -> None:
    give = {"mangle": {"key": {"meta": {"key": "mark"}}, "value": 7}}
    seven = {"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 7}}
    marks = chain("inet", "prerouting", [match("tcp", "dport", 29500), give])
    drops = chain("inet", "input", [seven, *DROP])
    found = {gate.place: gate.judgement for gate in passed(drops, marks)}
    assert found["inet t input0"].dropped.ports == ((29500, 29500),)
    late = replace_priority(marks, "input", 10)
    assert not any(gate.judgement.dropped for gate in passed(drops, late))


def replace_priority(old: NftChain, hook: str, priority: int) -> NftChain:
    return old._replace(hook=hook, priority=priority, name=f"{hook}{priority}")


def test_answers_to_packets_that_are_not_tracked_are_invalid() -> None:
    state = {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "invalid"}}
    notrack = chain("inet", "output", [{"notrack": None}], priority=-300)
    drops = chain("inet", "input", [state, *DROP])
    assert not any(gate.judgement.dropped for gate in passed(drops))
    assert any(gate.judgement.dropped for gate in passed(drops, notrack))
    both = chain("inet", "prerouting", [{"notrack": None}], priority=-300)
    assert not any(gate.judgement.dropped for gate in passed(drops, notrack, both))


def test_a_redirect_of_a_port_that_a_launcher_needs_is_a_doubt() -> None:
    text = saved(policy="ACCEPT") + (
        "*nat\n:PREROUTING ACCEPT\n"
        "-A PREROUTING -p tcp -m tcp --dport {} -j REDIRECT --to-ports 9\nCOMMIT\n"
    )
    for port, doubts in ((29500, 1), (40000, 0), (8080, 0)):
        found = gates(Tables(NO_NFT, {"nft": text.format(port)}), TRAFFIC, WAY)
        assert sum(len(gate.judgement.doubts) for gate in found) == doubts, port


@pytest.mark.parametrize(
    ("rule", "way", "arp"),
    [
        ("-A INPUT -s 10.0.0.2 -j DROP", "in", True),
        ("-A INPUT -p IPv4 --ip-src 10.0.0.2 -j DROP", "in", False),
        ("-A INPUT -p IPv4 --ip-proto tcp --ip-dport 29500:29600 -i eth+ -j DROP", "in", False),
        ("-A OUTPUT -p IPv4 --ip-dst 10.0.0.0/24 --logical-out br0 -j DROP", "out", False),
        ("-A INPUT -p ARP --arp-ip-src 10.0.0.3 -j DROP", "in", True),
    ],
)
def test_the_old_tables_of_arp_and_bridges_are_judged(rule: str, way: str, arp: bool) -> None:
    text = f"*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n{rule}\nCOMMIT\n"
    bridge = Path("br0", "10.0.0.1", ("eth0",), bridged=True)
    is_arptables = rule == "-A INPUT -s 10.0.0.2 -j DROP"
    tables: dict[str, Any] = {"arptables" if is_arptables else "ebtables": text}
    found = passed(path=bridge, **tables)
    dropped = [(gate.way, gate.arp) for gate in found if gate.judgement.dropped]
    assert dropped == [(way, arp)]
    if not is_arptables:
        assert not any(gate.judgement.dropped for gate in passed(**tables))


@pytest.mark.parametrize(
    "rule",
    [
        "-A INPUT --mark-set 1 -j DROP",
        "-A INPUT -p IPv4 --ip-tos 0x10 -j DROP",
        "-A INPUT -s 0:1:2:3:4:5 -j DROP",
    ],
)
def test_a_rule_of_ebtables_that_is_not_read_is_a_doubt(rule: str) -> None:
    text = f"*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n{rule}\nCOMMIT\n"
    found = passed(path=Path("br0", "10.0.0.1", ("eth0",), bridged=True), ebtables=text)
    assert rule in {doubt.words for gate in found for doubt in gate.judgement.doubts}


def test_rules_of_arptables_have_options_of_their_own() -> None:
    rules = "-A INPUT -i eth0 --h-length 6 --opcode {} -j ACCEPT\n"
    text = "*filter\n:INPUT DROP\n:OUTPUT ACCEPT\n{}COMMIT\n"
    (lost,) = (g.judgement for g in passed(arptables=text.format(rules.format(1))) if g.way == "in")
    assert lost.dropped.words == ("chain filter INPUT: policy drop",)
    both = rules.format(1) + rules.format(2)
    assert not any(g.judgement.dropped for g in passed(arptables=text.format(both)))


@pytest.mark.full
def test_five_thousand_rules_are_judged() -> None:
    numbers = range(5000)
    address = [f"{n // 250}.{n % 250}" for n in numbers]
    tables = {
        "banned": [f"-A own -s 203.0.{a}/32 -j REJECT" for a in address],
        "pairs": [f"-A own -s 10.0.{a}/32 -p tcp --dport {30000 + n} -j ACCEPT" for n, a in enumerate(address)],
        "ports": [f"-A own -p tcp -m tcp --dport {32768 + 2 * n} -j ACCEPT" for n in numbers],
        "rates": [f"-A own -p tcp -m tcp --dport {32768 + n} -m limit --limit 5/sec -j DROP" for n in numbers],
        "returns": [f"-A own -m limit --limit {n}/sec -j RETURN" for n in numbers],
    }  # fmt: skip
    for name, rules in tables.items():
        text = saved("-A INPUT -j own", *rules, policy="DROP").replace(
            ":OUTPUT ACCEPT\n", ":OUTPUT ACCEPT\n:own -\n"
        )
        found = list(gates(Tables(NO_NFT, {"nft": text}), TRAFFIC, WAY))
        assert not any(gate.judgement.exhausted for gate in found), name
        assert any(gate.judgement.dropped for gate in found), name


ZONE = {"mangle": {"key": {"ct": {"key": "zone"}}, "value": 5}}
INVALID = {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "invalid"}}


def test_a_zone_of_connection_tracking_for_one_way_loses_what_is_invalid_then() -> None:
    drops = chain("inet", "input", [INVALID, {"drop": None}])
    incoming = chain("inet", "prerouting", [ZONE], priority=-300)
    outgoing = chain("inet", "output", [ZONE], priority=-300)
    assert any(gate.judgement.dropped for gate in passed(drops, incoming))
    assert any(gate.judgement.dropped for gate in passed(drops, outgoing))
    assert not any(gate.judgement.dropped for gate in passed(drops, incoming, outgoing))
    assert not any(gate.judgement.dropped for gate in passed(incoming))
    elsewhere = chain(
        "inet", "prerouting", [match("ip", "saddr", "192.0.2.1"), ZONE], priority=-300
    )
    assert not any(gate.judgement.dropped for gate in passed(drops, elsewhere))


@pytest.mark.parametrize(("zone", "is_lost"), [("--zone 5", True), ("--zone 0", False)])
def test_a_zone_of_iptables_is_one(zone: str, is_lost: bool) -> None:
    text = (
        f"*raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n-A PREROUTING -p tcp -j CT {zone}\nCOMMIT\n"
        "*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n"
        "-A INPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n"
    )
    found = list(gates(Tables(NO_NFT, {"nft": text}), TRAFFIC, WAY))
    assert any(gate.judgement.dropped for gate in found) is is_lost
