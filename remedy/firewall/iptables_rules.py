"""Reading rules of iptables and ip6tables, as iptables-save(8) prints them and as their files keep them.

arptables-save prints the same format with options of its own, which are read here, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from remedy.firewall.ipsets import condition_of, parse_ipsets
from remedy.firewall.iptables_options import OPTIONS, READABLE, mark
from remedy.firewall.iptables_targets import (
    BY_PROGRAM,
    HARMLESS,
    REWRITES,
    TERMINAL,
    keeps_hops,
    source_of,
)
from remedy.firewall.nftables_text import shortened
from remedy.firewall.packets import (
    SMALLEST_SEGMENT,
    Box,
    Condition,
    Either,
    Flow,
    Test,
)
from remedy.firewall.reading import LazyChains, ReadRule, narrow
from remedy.firewall.spans import Spans
from remedy.firewall.traffic import Chain

TABLES = ("raw", "mangle", "nat", "filter", "security")


@dataclass(frozen=True)
class _Line:
    """What has been read of a line so far."""

    tests: tuple[Test, ...] = ()
    unread: tuple[str, ...] = ()
    action: str = "pass"
    target: str = ""
    module: str = ""
    mark: tuple[int, int | None] | None = None
    untracks: bool = False
    connection_mark: bool = False
    restores_mark: bool = False
    source: Spans = ()
    zones: bool = False

    def plus(self, test: Test) -> _Line:
        """Return the line with a condition more."""
        return replace(self, tests=(*self.tests, test))

    def without(self, reason: str) -> _Line:
        """Return the line with something that cannot be answered."""
        return replace(self, unread=(*self.unread, reason))


_FILLED_SET = re.compile(r" -j SET --add-set (\S+) ")
_ASKED_SET = re.compile(r"( !)? --match-set (\S+) ")
_MATCHED_SET = re.compile(r" --match-set (\S+) ")

# --- texts -------------------------------------------------------------------------------------------------


def tables_of(text: str) -> tuple[str, ...]:
    """Return the names of the tables in a saved text."""
    return tuple(line[1:].strip() for line in text.splitlines() if line.startswith("*"))


@lru_cache(maxsize=256)
def table_lines(text: str, table: str) -> tuple[str, ...]:
    """Return the lines of a table, without its name and COMMIT."""
    lines = []
    inside = False
    for line in text.splitlines():
        if line.startswith("*"):
            inside = line.strip() == f"*{table}"
        elif line.startswith("COMMIT"):
            inside = False
        elif inside:
            lines.append(line)
    return tuple(lines)


def filter_lines(text: str) -> tuple[str, ...]:
    """Return the lines of table ``filter``, without its name and COMMIT."""
    return table_lines(text, "filter")


def rules_of(text: str, chain: str, table: str = "filter") -> tuple[str, ...]:
    """Return the rules of a chain, as they are written."""
    start = f"-A {chain} "
    return tuple(line for line in table_lines(text, table) if line.startswith(start))


def has_chain(text: str, chain: str, table: str = "filter") -> bool:
    """Return whether a table has a chain of that name."""
    return any(line.startswith(f":{chain} ") for line in table_lines(text, table))


@lru_cache(maxsize=256)
def _lines_by_chain(text: str, table: str) -> MappingProxyType[str, tuple[str, tuple[str, ...]]]:
    """Return the policy and the lines of each chain of a table."""
    policies: dict[str, str] = {}
    rules: dict[str, list[str]] = {}
    for line in table_lines(text, table):
        if line.startswith(":") and len(line.split()) > 1:
            name, policy = line[1:].split()[:2]
            policies[name] = {"ACCEPT": "accept", "DROP": "drop"}.get(policy, "")
            rules.setdefault(name, [])
        elif line.startswith("-A ") and len(line.split(" ", 2)) > 2:
            rules.setdefault(line.split(" ", 2)[1], []).append(line)
    return MappingProxyType(
        {name: (policies.get(name, ""), tuple(lines)) for name, lines in rules.items()}
    )


def read_chain(
    text: str, table: str, chain: str, ipsets: str | None = None, family: str = "inet"
) -> tuple[ReadRule, ...]:
    """Return the rules of a chain.

    Args:
        text: what iptables-save prints.
        table: the chain's table.
        chain: its name.
        ipsets: what ``ipset save`` prints; None where that is not known.
        family: of the packets, "inet" or "inet6".
    """
    chains = _lines_by_chain(text, table)
    place = "" if table == "filter" else f"-t {table} "
    rules = []
    for line in chains[chain][1]:
        # What is in a set that rules fill says nothing of the next packet, so such a rule is uncertain as well.
        again = [None] if _filled_sets(text) & set(_MATCHED_SET.findall(line)) else []
        for known in _held(line, ipsets, again):
            rule = read_rule(line, known, family)
            if rule.action in ("jump", "goto") and rule.target not in chains:
                rule = replace(rule, action="drop", unread=(*rule.unread, f"target {rule.target}"))
            rules.append(replace(rule, words=shortened(f"{place}{rule.words}")))
    return tuple(rules)


def _held(line: str, ipsets: str | None, again: list[None]) -> tuple[str | None, ...]:
    """Return against what a rule is read: the sets as they are, and None where they can be otherwise soon.

    Args:
        line: the rule.
        ipsets: the sets; None where they are not known.
        again: None, where rules fill a set that it asks.
    """
    sets = parse_ipsets(ipsets or "")
    for negation, name in _ASKED_SET.findall(line):
        if name in sets and sets[name].expires:
            if not negation and " -j ACCEPT" in line:
                return (None,)
            if negation and re.search(r" -j (DROP|REJECT)\b", line):
                again = [None]
    return (ipsets, *again)


@lru_cache(maxsize=256)
def _filled_sets(text: str) -> frozenset[str]:
    """Return the sets of ipset into which rules put addresses."""
    return frozenset(_FILLED_SET.findall(text))


def chains(
    text: str, table: str, flow: Flow, bounds: Box, ipsets: str | None = None
) -> Mapping[str, Chain]:
    """Return the chains of a table for the packets of a flow within ``bounds``."""
    known = _lines_by_chain(text, table)
    family = "inet6" if flow.ether in ("ip6", "nd") else "inet"

    def make(name: str) -> Chain:
        rules = read_chain(text, table, name, ipsets, family)
        return narrow(rules, flow, bounds, known[name][0])

    return LazyChains(known, make)


def arp_chains(text: str, flow: Flow, bounds: Box) -> Mapping[str, Chain]:
    """Return the chains of arptables, whose addresses are those in packets of ARP."""
    known = _lines_by_chain(text, "filter")

    def make(name: str) -> Chain:
        rules = (
            replace(rule, tests=tuple(_renamed(test, "arp-{}") for test in rule.tests))
            for rule in read_chain(text, "filter", name)
        )
        return narrow(rules, flow, bounds, known[name][0])

    return LazyChains(known, make)


def _renamed(test: Test, pattern: str) -> Test:
    """Return a condition on addresses as a condition on those of another family."""
    if isinstance(test, Either):
        known = (tuple(_of_family(c, pattern) for c in a) for a in test.alternatives)
        return replace(test, alternatives=tuple(known))
    return _of_family(test, pattern)


def _of_family(condition: Condition, pattern: str) -> Condition:
    if condition.field in ("saddr", "daddr"):
        return replace(condition, field=pattern.format(condition.field))
    return condition


def marks_connections(text: str) -> bool:
    """Return whether some rule gives connections a mark."""
    return any(
        read_rule(line, None).connection_mark for line in text.splitlines() if "CONNMARK" in line
    )


# --- one rule ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def read_rule(line: str, ipsets: str | None = None, family: str = "inet") -> ReadRule:
    """Read a line ``-A CHAIN ...`` that is about packets of ``family``, "inet" or "inet6"."""
    words = _words(line)[2:]
    sets = None if ipsets is None else parse_ipsets(ipsets)
    rule = _Line()
    negated = False
    at = 0
    while at < len(words):
        option = words[at]
        at += 1
        if option == "!":
            negated = True
            continue
        count = _arity(option, words, at)
        values = words[at : at + count]
        at += count
        if option == "--match-set" and count == 2:
            condition = condition_of(sets, *values, negated=negated, family=family)
            rule = rule.plus(condition)
        else:
            rule = _read_option(rule, option, values, negated)
        negated = False
    if "rpfilter" in words:
        rule = rule.plus(Condition("reverse-path", frozenset({"same"}), "--invert" in words))
    if family == "inet6":
        rule = replace(rule, tests=tuple(_renamed(test, "{}6") for test in rule.tests))
    return ReadRule(
        line,
        rule.tests,
        rule.action,
        rule.target,
        tuple(dict.fromkeys(rule.unread)),
        rule.mark,
        rule.untracks,
        rule.connection_mark,
        rule.restores_mark,
        rule.source,
        rule.zones,
    )


def _words(line: str) -> list[str]:
    if '"' not in line and "'" not in line and "\\" not in line:
        return line.split()
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _arity(option: str, words: Sequence[str], at: int) -> int:
    """Return how many words belong to ``option``: as far as the next one that looks like an option."""
    if option in ("--tcp-flags", "--match-set"):
        return min(2, len(words) - at)
    count = 0
    while at + count < len(words) and not words[at + count].startswith(("-", "!")):
        count += 1
    if option in ("--comment", "--log-prefix", "--nflog-prefix") and count == 0:
        return min(1, len(words) - at)  # text that begins with a dash
    return count


def _read_option(
    rule: _Line,
    option: str,
    values: Sequence[str],
    negated: bool,
) -> _Line:
    """Return a line with one option more."""
    value = values[0] if values else ""
    if option in ("-j", "-g", "--jump", "--goto"):
        return _with_target(rule, option, value)
    if rule.target and (read := _of_target(rule, option, value)) is not None:
        return read
    if option in ("-m", "--match"):
        rule = replace(rule, module=value)
        return rule if value in READABLE else rule.without(value)
    if option == "--mark":
        name = "connection-mark" if rule.module == "connmark" else "mark"
        return rule.plus(mark(name, value, negated))
    reader = OPTIONS.get(option)
    if reader is not None:
        try:
            return rule.plus(reader(values, negated))
        except (ValueError, IndexError, KeyError):
            return rule.without(option)
    if rule.target or rule.module in rule.unread or option in _KNOWN_OTHERWISE:
        return rule  # of the target, of a module that is not read, or nothing by itself
    return rule.without(option)


def _of_target(rule: _Line, option: str, value: str) -> _Line | None:
    """Return a line with an option of its target more; None where that option is none that counts."""
    if option == "--set-mss":
        small = value.isdecimal() and int(value) < SMALLEST_SEGMENT
        return replace(rule, action="drop").without(f"segments of {value} bytes") if small else rule
    if option.startswith(("--set-", "--and-", "--or-", "--xor-", "--save-", "--restore-")):
        return _with_mark(rule, option, value)
    if option == "--notrack":
        return replace(rule, untracks=True)
    if option.startswith("--zone"):
        return replace(rule, zones=value != "0")
    if keeps_hops(option, value):
        return replace(rule, action="pass", unread=())
    return replace(rule, source=source_of(value)) if option == "--to-source" else None


_KNOWN_OTHERWISE = frozenset({"--comment", "--loose", "--validmark", "--accept-local", "--invert"})
"""A note, and options of rpfilter, which ``read_rule`` takes together."""


def _with_target(rule: _Line, option: str, target: str) -> _Line:
    """Return a line with its target."""
    if target in TERMINAL:
        return replace(rule, action=TERMINAL[target], target=target)
    if target in HARMLESS:
        return replace(rule, target=target, untracks=rule.untracks or target == "NOTRACK")
    if target in BY_PROGRAM | REWRITES:
        return replace(rule, action="drop", target=target).without(f"target {target}")
    return replace(rule, action="goto" if option in ("-g", "--goto") else "jump", target=target)


def _with_mark(rule: _Line, option: str, value: str) -> _Line:
    """Return a line whose target gives packets or connections a mark."""
    if rule.target == "CONNMARK":
        if option == "--restore-mark":
            return replace(rule, mark=(0, None), restores_mark=True)
        return replace(rule, connection_mark=True)
    if rule.target != "MARK":
        return rule
    try:
        numbers = [int(word, 0) for word in value.split("/")]
    except ValueError:
        return replace(rule, mark=(0, None))
    number, mask = numbers[0], numbers[1] if len(numbers) > 1 else 2**32 - 1
    keep = 2**32 - 1
    changes = {
        "--set-xmark": (keep & ~mask, number),
        "--set-mark": (keep & ~(mask | number), number),
        "--and-mark": (number, 0),
        "--or-mark": (keep & ~number, number),
        "--xor-mark": (keep, number),
    }
    return replace(rule, mark=changes.get(option, (0, None)))
