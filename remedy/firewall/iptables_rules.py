"""Reading rules of iptables, as iptables-save(8) prints them and as its files keep them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.firewall.step import Path
from remedy.firewall.traffic import Chain, Rule

_NEW_FLAGS = frozenset({"SYN"})
_TERMINAL = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "RETURN": "return"}
_HARMLESS = frozenset(
    {"LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "CT", "MARK", "CONNMARK", "TCPMSS", "NOTRACK"}
)
_ELSEWHERE = frozenset({"QUEUE", "NFQUEUE", "TPROXY", "SYNPROXY"})


@lru_cache(maxsize=256)
def filter_lines(text: str) -> tuple[str, ...]:
    """Return the lines of table ``filter``, without its name and COMMIT."""
    lines = []
    inside = False
    for line in text.splitlines():
        if line.startswith("*"):
            inside = line.strip() == "*filter"
        elif line.startswith("COMMIT"):
            inside = False
        elif inside:
            lines.append(line)
    return tuple(lines)


def rules_of(text: str, chain: str) -> tuple[str, ...]:
    """Return the rules of a chain of table ``filter``, as they are written."""
    start = f"-A {chain} "
    return tuple(line for line in filter_lines(text) if line.startswith(start))


def has_chain(text: str, chain: str) -> bool:
    """Return whether table ``filter`` has a chain of that name."""
    return any(line.startswith(f":{chain} ") for line in filter_lines(text))


@lru_cache(maxsize=256)
def chains(text: str, path: Path) -> MappingProxyType[str, Chain]:
    """Return the chains of table ``filter`` for a packet that comes by ``path``."""
    policies: dict[str, str] = {}
    rules: dict[str, list[Rule]] = {}
    for line in filter_lines(text):
        if line.startswith(":"):
            name, policy = line[1:].split()[:2]
            policies[name] = {"ACCEPT": "accept", "DROP": "drop"}.get(policy, "")
            rules.setdefault(name, [])
        elif line.startswith("-A "):
            rule = read_rule(line, path)
            if rule is not None:
                rules.setdefault(line.split(" ", 2)[1], []).append(rule)
    return MappingProxyType(
        {name: Chain(tuple(chain), policies.get(name, "")) for name, chain in rules.items()}
    )


def read_rule(line: str, path: Path) -> Rule | None:
    """Read a line ``-A CHAIN ...``; None when it cannot match a new TCP connection from a peer."""
    words = _words(line)[2:]
    rule: dict[str, object] = {"action": "pass", "words": line}
    certain = True
    sources: Spans | None = None
    ports: Spans | None = None
    negated = False
    at = 0
    while at < len(words):
        option = words[at]
        at += 1
        if option == "!":
            negated = True
            continue
        value = words[at] if at < len(words) and not words[at].startswith("-") else ""
        count = _arity(option, words, at)
        at += count
        if option in ("-j", "-g"):
            action, target = _action(option, value)
            certain = certain and action is not None
            rule |= {"action": action or "pass", "target": target}
        elif option in ("-s", "--source"):
            numbers = spans.of_networks(value.split(","))
            numbers = spans.minus(spans.ALL_ADDRESSES, numbers) if negated else numbers
            sources = numbers if sources is None else spans.meet(sources, numbers)
        elif option in ("--dport", "--dports", "--destination-port", "--destination-ports"):
            numbers = _ports(value)
            numbers = spans.minus(spans.ALL_PORTS, numbers) if negated else numbers
            ports = numbers if ports is None else spans.meet(ports, numbers)
        else:
            answer = _matches(option, value, words[at - count : at], path)
            if answer is None:
                certain = False
            elif answer is negated:
                return None
        negated = False
    return Rule(
        action=str(rule["action"]),
        target=str(rule.get("target", "")),
        sources=sources,
        ports=ports,
        certain=certain,
        words=line,
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
    if option == "--tcp-flags":
        return 2
    count = 0
    while at + count < len(words) and not words[at + count].startswith(("-", "!")):
        count += 1
    if option in ("--comment", "--log-prefix", "--nflog-prefix") and count == 0:
        return 1  # text that begins with a dash
    return count


def _action(option: str, target: str) -> tuple[str | None, str]:
    if target in _TERMINAL:
        return _TERMINAL[target], ""
    if target in _HARMLESS:
        return "pass", ""
    if target in _ELSEWHERE:
        return None, ""
    return ("goto" if option == "-g" else "jump"), target


def _ports(text: str) -> Spans:
    ranges = []
    for part in text.split(","):
        low, colon, high = part.partition(":")
        ranges.append((int(low or 0), int(high or 65535) if colon else int(low)))
    return spans.merge(ranges)


def _matches(option: str, value: str, values: Sequence[str], path: Path) -> bool | None:
    """Return whether a condition holds for a new TCP connection that comes by ``path``; None: not known."""
    if option in ("-m", "--match", "--comment", "--reject-with") or option.startswith(
        ("--log-", "--nflog-", "--set-", "--save-", "--restore-", "--mask")
    ):
        return True
    if option in ("-p", "--protocol"):
        return value in ("tcp", "6", "all", "0")
    if option in ("-i", "--in-interface"):
        return None if path.interface is None else _interface(value, path.interface)
    if option in ("-o", "--out-interface"):
        return False
    if option in ("-d", "--destination"):
        if path.address is None:
            return None
        return bool(
            spans.meet(spans.of_networks(value.split(",")), spans.of_networks([path.address]))
        )
    if option in ("--ctstate", "--state"):
        return "NEW" in value.split(",")
    if option == "--dst-type":
        return value == "LOCAL"
    if option == "--syn":
        return True
    if option == "--tcp-flags" and len(values) == 2:
        looked_at = set(values[0].replace("ALL", "FIN,SYN,RST,PSH,ACK,URG").split(","))
        return looked_at & _NEW_FLAGS == set(values[1].replace("NONE", "").split(",")) - {""}
    if option == "--mark":
        return int(value.partition("/")[0], 0) == 0  # a new packet has no mark
    return None


def _interface(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("+") else name == pattern
