"""Reading rules of ebtables in the kernel's old tables, as ebtables-save prints them (ebtables(8)).

They are about what passes a bridge, and so about packets of the cluster only where its address is on a bridge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from remedy.firewall import spans
from remedy.firewall.iptables_rules import table_lines
from remedy.firewall.nftables_text import shortened
from remedy.firewall.packets import Box, Condition, Flow
from remedy.firewall.reading import ReadRule, narrow
from remedy.firewall.traffic import Chain

BASES = (
    ("nat", "PREROUTING", "prerouting"),
    ("filter", "INPUT", "input"),
    ("filter", "OUTPUT", "output"),
    ("nat", "OUTPUT", "output"),
    ("nat", "POSTROUTING", "postrouting"),
)
_VERDICTS = {"ACCEPT": "accept", "DROP": "drop", "RETURN": "return", "CONTINUE": "pass"}
_HARMLESS = frozenset({"mark", "log", "nflog", "ulog", "arpreply"})
_ETHER = {"ipv4": "ip", "arp": "arp", "ipv6": "ip6", "0x0800": "ip", "0x0806": "arp"}


def chains(text: str, table: str, flow: Flow, bounds: Box) -> Mapping[str, Chain]:
    """Return the chains of a table for the packets of a flow within ``bounds``."""
    policies: dict[str, str] = {}
    rules: dict[str, list[ReadRule]] = {}
    for line in table_lines(text, table):
        words = line.split()
        if line.startswith(":") and len(words) > 1:
            policies[words[0][1:]] = {"ACCEPT": "accept", "DROP": "drop"}.get(words[1], "")
            rules.setdefault(words[0][1:], [])
        elif words[:1] == ["-A"] and len(words) > 2:
            rules.setdefault(words[1], []).append(_read_rule(line, words[2:]))
    return {
        name: narrow(known, flow, bounds, policies.get(name, "")) for name, known in rules.items()
    }


def _read_rule(line: str, words: Sequence[str]) -> ReadRule:
    """Read what stands after ``-A CHAIN``."""
    rule = ReadRule(shortened(line))
    negated = False
    at = 0
    while at < len(words):
        option = words[at]
        at += 1
        if option == "!":
            negated = True
            continue
        if at < len(words) and words[at] == "!":
            negated, at = True, at + 1
        value = ""
        if at < len(words) and not words[at].startswith("-"):
            value, at = words[at], at + 1
        rule = _with_option(rule, option, value, negated)
        negated = False
    return rule


def _with_option(rule: ReadRule, option: str, value: str, negated: bool) -> ReadRule:
    """Return a rule with one option more."""
    if option == "-j":
        action = "pass" if value in _HARMLESS else _VERDICTS.get(value, "jump")
        return replace(rule, action=action, target=value)
    reader = _OPTIONS.get(option)
    if reader is not None:
        try:
            return replace(rule, tests=(*rule.tests, reader(value, negated)))
        except ValueError:
            pass
    return rule if rule.target else replace(rule, unread=(*rule.unread, option))


def _addresses(name: str) -> Callable[[str, bool], Condition]:
    return lambda value, negated: Condition(name, spans.of_networks([value]), negated)


def _ports(name: str) -> Callable[[str, bool], Condition]:
    def read(value: str, negated: bool) -> Condition:
        low, colon, high = value.partition(":")
        return Condition(
            name, ((int(low or 0), int(high or 65535) if colon else int(low)),), negated
        )

    return read


def _words(name: str, known: Mapping[str, str]) -> Callable[[str, bool], Condition]:
    return lambda value, negated: Condition(
        name, frozenset({known.get(value.lower(), value.replace("+", "*"))}), negated
    )


_OPTIONS: Mapping[str, Callable[[str, bool], Condition]] = {
    **dict.fromkeys(("-p", "--protocol"), _words("ethertype", _ETHER)),
    **dict.fromkeys(("--ip-src", "--ip-source"), _addresses("saddr")),
    **dict.fromkeys(("--ip-dst", "--ip-destination"), _addresses("daddr")),
    **dict.fromkeys(("--ip-proto", "--ip-protocol"), _words("l4proto", {"6": "tcp"})),
    **dict.fromkeys(("--ip-dport", "--ip-destination-port"), _ports("dport")),
    **dict.fromkeys(("--ip-sport", "--ip-source-port"), _ports("sport")),
    **dict.fromkeys(("--ip6-src", "--ip6-source"), _addresses("saddr6")),
    **dict.fromkeys(("--ip6-dst", "--ip6-destination"), _addresses("daddr6")),
    **dict.fromkeys(("--ip6-proto", "--ip6-protocol"), _words("l4proto", {"6": "tcp"})),
    **dict.fromkeys(("--ip6-dport", "--ip6-destination-port"), _ports("dport")),
    **dict.fromkeys(("--ip6-sport", "--ip6-source-port"), _ports("sport")),
    "--arp-ip-src": _addresses("arp-saddr"),
    "--arp-ip-dst": _addresses("arp-daddr"),
    **dict.fromkeys(("-i", "--in-interface"), _words("iif", {})),
    **dict.fromkeys(("-o", "--out-interface"), _words("oif", {})),
    **dict.fromkeys(("--logical-in", "--logical-out"), _words("bridge-name", {})),
}
