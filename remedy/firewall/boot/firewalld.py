"""What firewalld loads at boot: its zones and policies, as rules of nftables such as it makes itself.

A packet goes to the zone of its source, else to that of its interface, else to the default zone; policies with
a negative priority come before (firewalld.zones(5), firewalld.zone(5), firewalld.policies(5),
firewalld.direct(5)). The files are read without a parser of XML: they are written by others, and have no more
than elements with attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from remedy.probe import NftChain, NftRule, NftRuleset
from remedy.text import is_number

TABLE = ("inet", "firewalld at boot")
INPUT, OUTPUT = "input", "output"
_ELEMENT = re.compile(r'<(/?)([a-z][\w-]*)((?:\s+[\w-]+\s*=\s*(?:"[^"]*"|\'[^\']*\'))*)\s*(/?)>')
_ATTRIBUTE = re.compile(r'([\w-]+)\s*=\s*(?:"([^"]*)"|\'([^\']*)\')')
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Services that a zone has from the start: none of them has a port of a launcher or of the kernel's range.
_SERVICES: Mapping[str, tuple[str, ...]] = {"ssh": ("22/tcp",)}

Expression = list[dict[str, Any]]
_FAMILY = {"meta": {"key": "nfproto"}}


@dataclass
class Element:
    """An element: its name, its attributes, the text behind its tag, and what is in it."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> list[Element]:
        """Return the elements of a name that are right in it."""
        return [child for child in self.children if child.name == name]

    def get(self, name: str) -> str:
        """Return an attribute, "" where there is none."""
        return self.attributes.get(name, "")


def parse(text: str) -> Element:
    """Return the first element of a file; an empty one where there is none."""
    root = Element("")
    stack = [root]
    text = _COMMENT.sub("", text)
    for tag in _ELEMENT.finditer(text):
        closing, name, attributes, empty = tag.groups()
        if closing:
            if len(stack) > 1:
                stack.pop()
            continue
        values = {key: first or second for key, first, second in _ATTRIBUTE.findall(attributes)}
        element = Element(name, values, text[tag.end() :].partition("<")[0].strip())
        stack[-1].children.append(element)
        if not empty and len(stack) < 16:
            stack.append(element)
    return root.children[0] if root.children else root


def default_zone(configuration: str) -> str:
    """Return the zone of firewalld.conf (5) that takes what no other does."""
    match = re.search(r"(?m)^\s*DefaultZone\s*=\s*(\S+)", configuration)
    return match[1] if match else "public"


def ruleset_of(
    zones: Mapping[str, Element],
    default: str,
    *,
    policies: Iterable[Element] = (),
    services: Mapping[str, Element] | None = None,
    direct: Element | None = None,
    ipsets: Mapping[str, Element] | None = None,
) -> NftRuleset:
    """Return the rules for what comes in.

    Args:
        zones: by name.
        default: the default zone.
        policies: every policy.
        services: those that are defined in /etc, by name.
        direct: the direct rules.
        ipsets: sets of addresses, by name.
    """
    sets = {name: _entries(element) for name, element in (ipsets or {}).items()}
    world = _World(services or {}, sets)
    rules: list[Expression] = [
        [
            _match({"ct": {"key": "state"}}, {"set": ["established", "related"]}, "in"),
            {"accept": None},
        ],
        [_match({"meta": {"key": "iifname"}}, "lo"), {"accept": None}],
        *_direct(direct),
    ]
    outgoing: list[Expression] = []
    for policy in sorted(policies, key=_priority):
        chosen = [*world.rules(policy), *_target(policy.get("target"), default=())]
        if _priority(policy) < 0 and _is_about(policy, "egress-zone"):
            rules += chosen
        if _is_about(policy, "ingress-zone"):
            outgoing += chosen
    for name, zone in zones.items():
        for source in zone.all("source"):
            if source.get("address"):
                rules.append([world.source(source.get("address")), _goto(name)])
            elif source.get("ipset"):
                rules.append([world.named(source.get("ipset")), _goto(name)])
    for name, zone in zones.items():
        for interface in zone.all("interface"):
            rules.append([_match({"meta": {"key": "iifname"}}, interface.get("name")), _goto(name)])
    rules.append([_goto(default)])
    chains = [_chain(INPUT, rules, "input"), _chain(OUTPUT, outgoing, "output")]
    for name, zone in zones.items():
        closed = [{"reject": None}]
        chains.append(
            _chain(
                f"zone {name}", [*world.rules(zone), *_target(zone.get("target"), default=closed)]
            )
        )
    return NftRuleset(tables=(TABLE,), chains=tuple(chains), sets=())


def _chain(name: str, rules: Iterable[Expression], hook: str = "") -> NftChain:
    lines = tuple(NftRule(0, "", json.dumps(rule)) for rule in rules)
    return NftChain(*TABLE, name, hook, 0, "accept" if hook else "", lines)


def _goto(zone: str) -> dict[str, Any]:
    return {"goto": {"target": f"zone {zone}"}}


def _match(left: object, right: object, operator: str = "==") -> dict[str, Any]:
    return {"match": {"op": operator, "left": left, "right": right}}


def _target(target: str, *, default: Iterable[dict[str, Any]]) -> list[Expression]:
    """Return the rule at the end of a zone or policy."""
    verdicts = {"ACCEPT": "accept", "DROP": "drop", "%%REJECT%%": "reject", "REJECT": "reject"}
    if target in verdicts:
        return [[{verdicts[target]: None}]]
    ending = list(default)
    return [ending] if ending else []


def _priority(policy: Element) -> int:
    text = policy.get("priority")
    return int(text) if re.fullmatch(r"-?\d{1,5}", text) else -1


def _is_about(policy: Element, side: str) -> bool:
    """Return whether a policy is about what goes to this host ("egress-zone"), or what it sends itself."""
    return any(zone.get("name") == "HOST" for zone in policy.all(side))


def port_range(port: Element) -> tuple[int, int]:
    """Return the first and last port of an element ``port``; (0, 0) where it names none."""
    low, dash, high = port.get("port").partition("-")
    if not is_number(low) or (dash and not is_number(high)):
        return 0, 0
    return int(low), int(high or low)


def _entries(ipset: Element) -> list[Any]:
    """Return the addresses of a set."""
    return [_address(entry.text) for entry in ipset.all("entry") if entry.text]


def _address(text: str) -> Any:
    address, slash, length = text.partition("/")
    if slash and is_number(length):
        return {"prefix": {"addr": address, "len": int(length)}}
    low, dash, high = text.partition("-")
    return {"range": [low, high]} if dash else text


def _protocol(entries: Iterable[Any]) -> str:
    """Return the protocol of addresses as ``_address`` gives them; a set has those of one family."""
    for entry in entries:
        value = (
            entry.get("prefix", {}).get("addr") or entry["range"][0]
            if isinstance(entry, dict)
            else entry
        )
        if ":" in str(value):
            return "ip6"
    return "ip"


def _direct(direct: Element | None) -> Iterator[Expression]:
    """Yield the direct rules for what comes in: their words are iptables', so they may match."""
    for rule in direct.all("rule") if direct is not None else ():
        if rule.get("ipv") in ("ipv4", "ipv6") and rule.get("chain") == "INPUT":
            yield [
                _match(_FAMILY, rule.get("ipv")),
                {"unread": "direct rule of firewalld"},
                {"drop": None},
            ]


class _World:
    """What rules of zones refer to.

    Args:
        services: defined in /etc, by name.
        sets: addresses by the name of their set.
    """

    def __init__(self, services: Mapping[str, Element], sets: Mapping[str, list[Any]]) -> None:
        self.services = services
        self.sets = sets

    def rules(self, zone: Element) -> list[Expression]:
        """Return the rules of a zone or policy in the order of firewalld (firewalld.richlanguage(5)).

        Rich rules with a negative priority are first, those with a positive one last; of the others those that
        deny come before those that accept, and before ports and services.
        """
        rich = [
            (_rank(rule), expression)
            for rule in sorted(zone.all("rule"), key=_rank)
            for expression in self._rich(rule)
        ]
        plain = [
            [*match, {"accept": None}] for child in zone.children for match in self._opened(child)
        ]
        first = [rule for (priority, _), rule in rich if priority <= 0]
        return [*first, *plain, *(rule for (priority, _), rule in rich if priority > 0)]

    def _rich(self, rule: Element) -> Iterator[Expression]:
        verdict = _verdict(rule)
        if not verdict:
            return
        begin: Expression = [_match(_FAMILY, rule.get("family"))] if rule.get("family") else []
        for source in rule.all("source"):
            operator = "!=" if source.get("invert").lower() in ("true", "yes") else "=="
            if source.get("ipset"):
                begin.append(self.named(source.get("ipset"), operator))
            elif source.get("address"):
                begin.append(self.source(source.get("address"), operator))
            else:
                begin.append({"unread": "source of a rich rule"})
        for destination in rule.all("destination"):
            operator = "!=" if destination.get("invert").lower() in ("true", "yes") else "=="
            if destination.get("ipset"):
                begin.append(self.named(destination.get("ipset"), operator, "daddr"))
            else:
                begin.append(self.source(destination.get("address"), operator, "daddr"))
        opened = [match for child in rule.children for match in self._opened(child)]
        has_element = any(
            child.name
            in (
                "port",
                "service",
                "protocol",
                "icmp-block",
                "icmp-type",
                "masquerade",
            )
            for child in rule.children
        )
        for match in opened or ([] if has_element else [[]]):
            yield [*begin, *match, {verdict: None}]

    def _opened(self, child: Element) -> Iterator[Expression]:
        """Yield what an element of a zone matches, where TCP can be among it."""
        if child.name == "port" and child.get("protocol") in ("tcp", ""):
            low, high = port_range(child)
            if high:
                right: Any = {"range": [low, high]} if high > low else low
                yield [_match({"payload": {"protocol": "tcp", "field": "dport"}}, right)]
        elif child.name == "protocol" and child.get("value") == "tcp":
            yield [_match({"meta": {"key": "l4proto"}}, "tcp")]
        elif child.name == "service":
            service = self.services.get(child.get("name"))
            for port in service.children if service else ():
                yield from self._opened(port)
            for text in _SERVICES.get(child.get("name"), ()) if service is None else ():
                number = int(text.partition("/")[0])
                yield [_match({"payload": {"protocol": "tcp", "field": "dport"}}, number)]
        elif child.name == "source-port":
            yield [{"unread": "source port"}]

    def source(self, text: str, operator: str = "==", field: str = "saddr") -> dict[str, Any]:
        """Return the match for an address or network."""
        if text.startswith("ipset:"):
            return self.named(text.removeprefix("ipset:"), operator, field)
        left = {"payload": {"protocol": "ip6" if ":" in text else "ip", "field": field}}
        return _match(left, _address(text), operator)

    def named(self, name: str, operator: str = "==", field: str = "saddr") -> dict[str, Any]:
        """Return the match for a set of addresses."""
        if name not in self.sets:
            return {"unread": f"ipset {name}"}
        left = {"payload": {"protocol": _protocol(self.sets[name][:1]), "field": field}}
        return _match(left, {"set": self.sets[name]}, operator)


def _rank(rule: Element) -> tuple[int, bool]:
    """Return the place of a rich rule among those of its zone."""
    text = rule.get("priority")
    priority = int(text) if re.fullmatch(r"-?\d{1,5}", text) else 0
    return priority, _verdict(rule) == "accept"


def _verdict(rule: Element) -> str:
    """Return what a rich rule does, "" where it only marks or logs."""
    return next(
        (child.name for child in rule.children if child.name in ("accept", "drop", "reject")), ""
    )
