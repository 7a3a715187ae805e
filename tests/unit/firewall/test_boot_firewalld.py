"""Files of firewalld as rules: every element of a zone or policy that can let TCP in or keep it out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall.boot.firewalld import TABLE, default_zone, parse, port_range, ruleset_of
from remedy.probe import NftRuleset

ACCEPT, DROP, REJECT = {"accept": None}, {"drop": None}, {"reject": None}
LAN = {"prefix": {"addr": "10.0.0.0", "len": 24}}
SETS = {
    "lan": parse("<ipset><entry>10.0.0.0/24</entry><entry>10.0.0.9</entry><entry/></ipset>"),
    "six": parse("<ipset><entry>fd00::/64</entry></ipset>"),
    "range": parse("<ipset><entry>10.0.0.1-10.0.0.9</entry></ipset>"),
    "range6": parse("<ipset><entry>fd00::1-fd00::9</entry></ipset>"),
    "single6": parse("<ipset><entry>fd00::1</entry></ipset>"),
    "empty": parse("<ipset/>"),
}
SERVICES = {
    "mine": parse(
        '<service><port port="5-6" protocol="tcp"/><port port="7" protocol="udp"/></service>'
    )
}


def match(left: object, right: object, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


def address(right: object, name: str = "saddr", protocol: str = "ip", op: str = "==") -> object:
    return match({"payload": {"protocol": protocol, "field": name}}, right, op)


def port(right: object) -> dict[str, Any]:
    return match({"payload": {"protocol": "tcp", "field": "dport"}}, right)


def family(name: str) -> dict[str, Any]:
    return match({"meta": {"key": "nfproto"}}, name)


def interface(name: str) -> dict[str, Any]:
    return match({"meta": {"key": "iifname"}}, name)


def to(zone: str) -> dict[str, Any]:
    return {"goto": {"target": f"zone {zone}"}}


def rules(ruleset: NftRuleset, chain: str) -> list[Any]:
    (found,) = (c for c in ruleset.chains if c.name == chain)
    return [json.loads(rule.expression) for rule in found.rules]


def zone(body: str, target: str = "") -> list[Any]:
    text = f'<zone target="{target}">{body}</zone>' if target else f"<zone>{body}</zone>"
    made = ruleset_of({"z": parse(text)}, "z", services=SERVICES, ipsets=SETS)
    return rules(made, "zone z")


def rich(body: str, attributes: str = "") -> list[Any]:
    *found, last = zone(f"<rule {attributes}>{body}</rule>")
    assert last == [REJECT]
    return found


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("ACCEPT", ACCEPT), ("DROP", DROP), ("%%REJECT%%", REJECT), ("REJECT", REJECT), ("", REJECT),
        ("default", REJECT),
    ],
)  # fmt: skip
def test_a_zone_ends_with_its_target(target: str, verdict: object) -> None:
    assert zone("", target) == [[verdict]]


@pytest.mark.parametrize(
    ("element", "matches"),
    [
        ('<port port="22" protocol="tcp"/>', [port(22)]),
        ('<port port="22"/>', [port(22)]),
        ('<port port="22-30" protocol="tcp"/>', [port({"range": [22, 30]})]),
        ('<port port="22-22" protocol="tcp"/>', [port(22)]),
        ('<port port="22" protocol="udp"/>', []),
        ('<port port="x" protocol="tcp"/>', []),
        ('<port protocol="tcp"/>', []),
        ('<protocol value="tcp"/>', [match({"meta": {"key": "l4proto"}}, "tcp")]),
        ('<protocol value="udp"/>', []),
        ('<service name="ssh"/>', [port(22)]),
        ('<service name="mine"/>', [port({"range": [5, 6]})]),
        ('<service name="dhcpv6-client"/>', []),
        ('<source-port port="9" protocol="tcp"/>', [{"unread": "source port"}]),
        ("<short>Public</short>", []),
        ("<icmp-block-inversion/>", []),
    ],
)
def test_what_a_zone_lets_in(element: str, matches: list[Any]) -> None:
    assert zone(element) == [*([each, ACCEPT] for each in matches), [REJECT]]
    assert rich(f"{element}<drop/>")[: len(matches)] == [[each, DROP] for each in matches]


def test_a_service_of_etc_goes_before_the_known() -> None:
    services = {"ssh": parse('<service><port port="2222" protocol="tcp"/></service>')}
    made = ruleset_of({"z": parse('<zone><service name="ssh"/></zone>')}, "z", services=services)
    assert rules(made, "zone z") == [[port(2222), ACCEPT], [REJECT]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<source address="10.0.0.0/24"/>', address(LAN)),
        ('<source address="10.0.0.7"/>', address("10.0.0.7")),
        ('<source address="10.0.0.1-10.0.0.9"/>', address({"range": ["10.0.0.1", "10.0.0.9"]})),
        ('<source address="fd00::1"/>', address("fd00::1", protocol="ip6")),
        ('<source address="10.0.0.7" invert="True"/>', address("10.0.0.7", op="!=")),
        ('<source address="10.0.0.7" invert="yes"/>', address("10.0.0.7", op="!=")),
        ('<source address="10.0.0.7" invert="no"/>', address("10.0.0.7")),
        ('<source ipset="lan"/>', address({"set": [LAN, "10.0.0.9"]})),
        ('<source ipset="lan" invert="true"/>', address({"set": [LAN, "10.0.0.9"]}, op="!=")),
        ('<source address="ipset:lan"/>', address({"set": [LAN, "10.0.0.9"]})),
        ('<source ipset="six"/>',
         address({"set": [{"prefix": {"addr": "fd00::", "len": 64}}]}, protocol="ip6")),
        ('<source ipset="range"/>', address({"set": [{"range": ["10.0.0.1", "10.0.0.9"]}]})),
        ('<source ipset="range6"/>', address({"set": [{"range": ["fd00::1", "fd00::9"]}]}, protocol="ip6")),
        ('<source ipset="single6"/>', address({"set": ["fd00::1"]}, protocol="ip6")),
        ('<source ipset="empty"/>', address({"set": []})),
        ('<source ipset="gone"/>', {"unread": "ipset gone"}),
        ('<source mac="02:00:00:00:00:01"/>', {"unread": "source of a rich rule"}),
        ('<destination address="10.0.0.7"/>', address("10.0.0.7", "daddr")),
        ('<destination address="10.0.0.7" invert="yes"/>', address("10.0.0.7", "daddr", op="!=")),
        ('<destination address="10.0.0.7" invert="True"/>', address("10.0.0.7", "daddr", op="!=")),
        ('<destination ipset="lan"/>', address({"set": [LAN, "10.0.0.9"]}, "daddr")),
        ('<destination ipset="lan" invert="true"/>', address({"set": [LAN, "10.0.0.9"]}, "daddr", op="!=")),
        ('<destination address="ipset:lan"/>', address({"set": [LAN, "10.0.0.9"]}, "daddr")),
    ],
)  # fmt: skip
def test_whom_a_rich_rule_is_about(source: str, expected: object) -> None:
    assert rich(f"{source}<accept/>") == [[expected, ACCEPT]]
    both = rich(f'{source}<port port="5" protocol="tcp"/><drop/>', 'family="ipv4"')
    assert both == [[family("ipv4"), expected, port(5), DROP]]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("accept", [[ACCEPT]]), ("drop", [[DROP]]), ("reject", [[REJECT]]),
        ("mark", []), ("log", []), ("audit", []),
    ],
)  # fmt: skip
def test_what_a_rich_rule_does(verdict: str, expected: list[Any]) -> None:
    assert rich(f"<{verdict}/>") == expected


@pytest.mark.parametrize(
    "element",
    [
        '<port port="5" protocol="udp"/>',
        '<service name="dns"/>',
        '<protocol value="icmp"/>',
        '<icmp-block name="echo-request"/>',
        '<icmp-type name="echo-request"/>',
        "<masquerade/>",
    ],
)
def test_a_rich_rule_about_something_else_is_not_about_every_packet(element: str) -> None:
    assert rich(f"{element}<drop/>") == []


def test_rich_rules_are_in_the_order_of_firewalld() -> None:
    def rule(number: int, verdict: str, priority: str = "") -> str:
        return f'<rule {priority}><port port="{number}" protocol="tcp"/><{verdict}/></rule>'

    body = (
        rule(1, "drop", 'priority="5"')
        + rule(2, "accept")
        + '<port port="3" protocol="tcp"/>'
        + rule(4, "drop")
        + rule(5, "accept", 'priority="-5"')
        + rule(6, "reject", 'priority="x"')
        + rule(7, "drop", 'priority="1"')
    )
    *found, last = zone(body)
    ports = [each[0]["match"]["right"] for each in found]
    assert (ports, last) == ([5, 4, 6, 2, 3, 7, 1], [REJECT])


def test_a_packet_goes_to_the_zone_of_its_source_or_its_interface_or_the_default() -> None:
    zones = {
        "a": parse('<zone><interface name="eth0"/><interface name="eth1"/></zone>'),
        "b": parse(
            '<zone><source address="10.0.0.0/24"/><source ipset="six"/><source mac="x"/></zone>'
        ),
        "c": parse("<zone/>"),
    }
    made = ruleset_of(zones, "c", ipsets=SETS)
    six = {"set": [{"prefix": {"addr": "fd00::", "len": 64}}]}
    assert rules(made, "input") == [
        [match({"ct": {"key": "state"}}, {"set": ["established", "related"]}, "in"), ACCEPT],
        [interface("lo"), ACCEPT],
        [address(LAN), to("b")],
        [address(six, protocol="ip6"), to("b")],
        [interface("eth0"), to("a")],
        [interface("eth1"), to("a")],
        [to("c")],
    ]
    assert made.tables == (TABLE,)
    assert [(c.name, c.hook, c.priority, c.policy) for c in made.chains] == [
        ("input", "input", 0, "accept"),
        ("output", "output", 0, "accept"),
        *((f"zone {name}", "", 0, "") for name in zones),
    ]


def policies(*texts: str) -> NftRuleset:
    return ruleset_of({"c": parse("<zone/>")}, "c", policies=[parse(text) for text in texts])


def policy(
    number: int, side: str, priority: str, target: str = "CONTINUE", name: str = "HOST"
) -> str:
    return (
        f'<policy target="{target}"{priority}><{side}-zone name="{name}"/>'
        f'<port port="{number}" protocol="tcp"/></policy>'
    )


def ports_of(found: list[Any]) -> list[int]:
    texts = [each[0].get("match", {}) for each in found]
    return [m["right"] for m in texts if m.get("left") == port(0)["match"]["left"]]


def test_policies_come_by_priority_and_only_where_they_are_about_this_host() -> None:
    made = policies(
        policy(1, "egress", ' priority="-5"'),
        policy(2, "egress", ' priority="-9"'),
        policy(3, "egress", ' priority="9"'),
        policy(4, "egress", ""),
        policy(5, "egress", ' priority="-5"', name="ANY"),
        policy(6, "ingress", ' priority="9"'),
        policy(7, "ingress", ' priority="-9"'),
        policy(8, "ingress", ' priority="x"', name="public"),
    )
    assert ports_of(rules(made, "input")) == [2, 1, 4]
    assert ports_of(rules(made, "output")) == [7, 6]


@pytest.mark.parametrize(
    ("target", "verdicts"),
    [("ACCEPT", [ACCEPT]), ("DROP", [DROP]), ("REJECT", [REJECT]), ("CONTINUE", [])],
)
def test_a_policy_ends_with_its_target_if_it_has_one(target: str, verdicts: list[Any]) -> None:
    made = policies(policy(1, "ingress", "", target))
    assert rules(made, "output") == [[port(1), ACCEPT], *([each] for each in verdicts)]


@pytest.mark.parametrize(
    ("attributes", "is_read"),
    [
        ('ipv="ipv4" chain="INPUT"', "ipv4"),
        ('ipv="ipv6" chain="INPUT"', "ipv6"),
        ('ipv="eb" chain="INPUT"', ""),
        ('ipv="ipv4" chain="OUTPUT"', ""),
    ],
)
def test_direct_rules_may_drop(attributes: str, is_read: str) -> None:
    direct = parse(f"<direct><rule {attributes} table='filter'>-j DROP</rule></direct>")
    _, _, *found, _ = rules(ruleset_of({"c": parse("<zone/>")}, "c", direct=direct), "input")
    expected = [[family(is_read), {"unread": "direct rule of firewalld"}, DROP]]
    assert found == (expected if is_read else [])


@pytest.mark.parametrize(
    ("text", "zone_name"),
    [
        ("DefaultZone=work\n", "work"),
        ("# DefaultZone=home\n DefaultZone = work \n", "work"),
        ("", "public"),
    ],
)
def test_the_default_zone(text: str, zone_name: str) -> None:
    assert default_zone(text) == zone_name


@pytest.mark.parametrize(
    ("text", "ports"),
    [("22", (22, 22)), ("22-30", (22, 30)), ("", (0, 0)), ("x-3", (0, 0)), ("3-x", (0, 0)), ("3-", (0, 0))],
)  # fmt: skip
def test_the_ports_of_an_element(text: str, ports: tuple[int, int]) -> None:
    assert port_range(parse(f'<port port="{text}"/>')) == ports


def test_elements_have_attributes_and_text_and_what_is_in_them() -> None:
    root = parse(
        "<?xml version='1.0'?><!-- <zone a='0'/> -->\n"
        "<zone a='1' b-c = \"2\"> text <x/><y><x n='3'/></y><x n='4'/></zone>"
    )
    assert (root.name, root.attributes, root.text) == ("zone", {"a": "1", "b-c": "2"}, "text")
    assert [x.get("n") for x in root.all("x")] == ["", "4"]
    assert [x.get("n") for x in root.all("y")[0].all("x")] == ["3"]


@pytest.mark.parametrize("text", ["", "no element", "</zone>", "<!-- <zone/> -->"])
def test_a_file_without_elements_is_an_empty_one(text: str) -> None:
    root = parse(text)
    assert (root.name, root.children) == ("", [])


def test_a_tag_too_many_and_deep_nesting_do_no_harm() -> None:
    assert [x.name for x in parse("</a><zone></b></c><x/></zone>").all("x")] == []
    depth, element = 0, parse("<a>" * 500)
    while element.children:
        depth, element = depth + 1, element.children[0]
    assert depth < 20
