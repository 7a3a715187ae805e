"""One rule of nftables as it is written, as the statements that libnftables-json(5) has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remedy.firewall.nftables_values import OtherFormError
from remedy.text import is_number


class NotReadError(Exception):
    """A configuration cannot be read here; the text says why."""


class Token(str):
    """A word of a configuration; ``is_text`` where it stood in quotes."""

    __slots__ = ("is_text",)
    is_text: bool

    def __new__(cls, text: str, *, is_text: bool = False) -> Token:
        """Return the word."""
        token = super().__new__(cls, text)
        token.is_text = is_text
        return token


_PAYLOADS = {
    "ip": (
        "saddr",
        "daddr",
        "protocol",
        "version",
        "ttl",
        "dscp",
        "id",
        "length",
        "frag-off",
        "checksum",
    ),
    "ip6": ("saddr", "daddr", "nexthdr", "hoplimit", "dscp", "flowlabel", "length"),
    "tcp": ("dport", "sport", "flags", "sequence", "ackseq", "window", "doff"),
    "udp": ("dport", "sport", "length"),
    "th": ("dport", "sport"),
    "sctp": ("dport", "sport"),
    "dccp": ("dport", "sport", "type"),
    "udplite": ("dport", "sport"),
    "icmp": ("type", "code", "id", "sequence", "mtu", "gateway"),
    "icmpv6": ("type", "code", "id", "sequence", "mtu"),
    "ether": ("saddr", "daddr", "type"),
    "arp": ("operation", "htype", "ptype", "saddr", "daddr"),
    "vlan": ("id", "type"),
}
_META = (
    *(
        "iif",
        "oif",
        "iifname",
        "oifname",
        "iiftype",
        "oiftype",
        "mark",
        "l4proto",
        "nfproto",
        "protocol",
    ),
    *("pkttype", "skuid", "skgid", "cpu", "length", "priority", "cgroup", "iifgroup", "oifgroup"),
)
_BARE_META = ("iif", "oif", "iifname", "oifname", "mark", "pkttype", "skuid", "skgid")
_OPERATORS = {
    "==": "==",
    "eq": "==",
    "!=": "!=",
    "ne": "!=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
}
_VERDICTS = ("accept", "drop", "continue", "return")
_SERVICES = {
    "ssh": 22, "domain": 53, "http": 80, "https": 443, "ntp": 123, "nfs": 2049, "sunrpc": 111, "smtp": 25,
    "bootps": 67, "bootpc": 68, "snmp": 161, "ldap": 389, "mysql": 3306, "postgresql": 5432,
}  # fmt: skip


def expression(words: Sequence[Token]) -> list[dict[str, Any]]:
    """Return the statements of a rule.

    Args:
        words: the rule, without its table and chain.
    """
    statements: list[dict[str, Any]] = []
    rule = _RuleWords(list(words))
    while rule.more():
        begin = rule.at
        try:
            statement = _statement(rule)
        except (ValueError, IndexError):
            statement = None
        if statement is None:
            statements.append({"unread": " ".join(words[begin:])[:120]})
            statements += _ending(words[begin:])
            return statements
        if statement:
            statements.append(statement)
    return statements


def _ending(words: Sequence[Token]) -> list[dict[str, Any]]:
    """Return the verdict among words that are not understood."""
    for at, word in enumerate(words):
        if word.is_text:
            continue
        if word in (*_VERDICTS, "reject"):
            return [{str(word): None}]
        if word in ("jump", "goto") and at + 1 < len(words):
            return [{str(word): {"target": str(words[at + 1])}}]
    return []


class _RuleWords:
    """The words of a rule, read from left to right."""

    def __init__(self, words: list[Token]) -> None:
        self.words = words
        self.at = 0

    def more(self) -> bool:
        """Return whether there are words left."""
        return self.at < len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """Return a word that is still to come, "" after the last."""
        at = self.at + ahead
        return self.words[at] if at < len(self.words) else ""

    def next(self) -> Token:
        """Return the next word.

        Raises:
            IndexError: there is none.
        """
        self.at += 1
        return self.words[self.at - 1]


def _statement(rule: _RuleWords) -> dict[str, Any] | None:
    """Read one statement; {} for one that changes nothing for a packet, None for one that is not known."""
    word = rule.next()
    if word in _VERDICTS:
        return {str(word): None}
    if word == "reject":
        if rule.peek() == "with":
            rule.at += 4 if rule.peek(2) == "type" else 3
        return {"reject": None}
    if word in ("jump", "goto"):
        return {str(word): {"target": str(rule.next())}}
    if word == "counter":
        while rule.peek() in ("packets", "bytes", "name"):
            rule.at += 2
        return {"counter": None}
    if word == "log":
        while rule.peek() in ("prefix", "level", "group", "snaplen", "queue-threshold", "flags"):
            rule.at += 2
        return {"log": None}
    if word == "comment":
        rule.next()
        return {}
    if word == "notrack":
        return {"notrack": None}
    if word in ("masquerade", "snat", "dnat", "redirect", "queue", "limit"):
        text = " ".join([word, *rule.words[rule.at :]])
        rule.at = len(rule.words) if word != "limit" else _behind_limit(rule)
        return {str(word): {"text": text[:120]}}
    left = _left(word, rule)
    if left is None:
        return None
    if left == _FLAGS and rule.peek() == "&":
        return _masked(left, rule)
    return _match(left, rule)


_FLAGS = {"payload": {"protocol": "tcp", "field": "flags"}}


def _behind_limit(rule: _RuleWords) -> int:
    """Return where a limit ends: `rate [over] N/TIME [burst N UNIT]`."""
    at = rule.at + (3 if rule.peek(1) == "over" else 2)
    words = [*rule.words[at : at + 3], "", "", ""]
    if words[0] in ("bytes/second", "kbytes/second", "mbytes/second"):
        at, words = at + 1, [*words[1:], ""]
    return at + 3 if words[0] == "burst" else at


def _masked(left: dict[str, Any], rule: _RuleWords) -> dict[str, Any] | None:
    """Read `& (fin | syn) == syn` behind the flags of TCP."""
    rule.next()
    mask = _flags(rule)
    if rule.peek() not in ("==", "!="):
        return None
    operator = str(rule.next())
    right: Any = _flags(rule)
    right = right[0] if len(right) == 1 else right
    return {"match": {"op": operator, "left": {"&": [left, mask]}, "right": right}}


def _flags(rule: _RuleWords) -> list[Any]:
    """Read flags with bars between them, with or without parentheses."""
    in_parentheses = rule.peek() == "("
    rule.at += in_parentheses
    flags: list[Any] = [_value(rule)]
    while rule.peek() == "|":
        rule.next()
        flags.append(_value(rule))
    if in_parentheses and rule.next() != ")":
        raise OtherFormError
    return flags


def _left(word: Token, rule: _RuleWords) -> dict[str, Any] | None:
    """Read what a match looks at."""
    if word in _PAYLOADS and rule.peek() in _PAYLOADS[word]:
        return {"payload": {"protocol": str(word), "field": str(rule.next())}}
    if word == "meta" and rule.peek() in _META:
        return {"meta": {"key": str(rule.next())}}
    if word in _BARE_META:
        return {"meta": {"key": str(word)}}
    if word == "ct" and rule.peek() in ("state", "status", "mark", "direction"):
        return {"ct": {"key": str(rule.next())}}
    if word == "fib":
        flags = [str(rule.next())]
        while rule.peek() == ".":
            rule.next()
            flags.append(str(rule.next()))
        return {"fib": {"result": str(rule.next()), "flags": flags}}
    return None


def _match(left: dict[str, Any], rule: _RuleWords) -> dict[str, Any] | None:
    """Read what stands behind that: an operator and values, a verdict map, or a new value for it."""
    if rule.peek() in ("set", "&", "and", "|", ".", "^"):
        if rule.peek() != "set":
            return None
        rule.next()
        return {"mangle": {"key": left, "value": _value(rule)}}
    if rule.peek() == "vmap":
        rule.next()
        if rule.peek().startswith("@"):
            return {"vmap": {"key": left, "data": str(rule.next())}}
        return {"vmap": {"key": left, "data": {"set": _verdicts(rule)}}}
    operator = "=="
    if rule.peek() in _OPERATORS:
        operator = _OPERATORS[rule.next()]
    if rule.peek() == "{":
        right: Any = {"set": _set(rule)}
    else:
        values = [_value(rule)]
        while rule.peek() == ",":
            rule.next()
            values.append(_value(rule))
        right = values[0] if len(values) == 1 else values
    if "ct" in left and operator == "==":
        operator = "in"
    if rule.peek() in ("&", "|", "/", "and", "or"):
        return None
    return {"match": {"op": operator, "left": left, "right": right}}


def _set(rule: _RuleWords) -> list[Any]:
    """Read values in braces."""
    values = []
    rule.next()
    while rule.peek() != "}":
        if rule.peek() == ",":
            rule.next()
            continue
        values.append(_value(rule))
        while rule.peek() in ("timeout", "expires", "comment", "counter"):
            rule.at += 1 if rule.peek() == "counter" else 2
        if rule.peek() == ".":
            raise OtherFormError  # values that belong together
    rule.next()
    return values


def _verdicts(rule: _RuleWords) -> list[Any]:
    """Read the entries of a verdict map."""
    entries: list[Any] = []
    if rule.next() != "{":
        raise OtherFormError
    while rule.peek() != "}":
        if rule.peek() == ",":
            rule.next()
            continue
        key = _key(rule)
        action = rule.next()
        target = {"target": str(rule.next())} if action in ("jump", "goto") else None
        entries.append([key, {str(action): target}])
    rule.next()
    return entries


def _key(rule: _RuleWords) -> Any:
    """Read the key of an entry, which a colon ends; the colon may be part of the word."""
    word = rule.peek()
    if word.endswith(":") and word != ":":
        rule.words[rule.at] = Token(word[:-1])
        return _value(rule)
    value = _value(rule)
    if rule.next() != ":":
        raise OtherFormError
    return value


def _value(rule: _RuleWords) -> Any:
    """Read a value: a number, a name, an address, a prefix, a range or a set of its own name."""
    word = rule.next()
    if word.is_text:
        return str(word)
    if word in ("{", "}", "(", ")", "!", "=", ","):
        raise OtherFormError
    if word.startswith("@") or word == "*":
        return str(word)
    address, slash, length = word.partition("/")
    if slash:
        return {"prefix": {"addr": address, "len": int(length)}}
    low, _, high = word.partition("-")
    if _is_number(low) and _is_number(high):
        return {"range": [_single(low), _single(high)]}
    return _single(word)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or ":" in text or text in _SERVICES


def _single(text: str) -> Any:
    if is_number(text):
        return int(text)
    if text.startswith("0x"):
        return int(text, 16)
    return _SERVICES.get(text, str(text))
