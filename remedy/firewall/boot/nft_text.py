"""A configuration of nftables (nft(8)), read as the rules that it makes, without asking nft.

``nft -c -f`` would load the kernel's modules. What is read here is what the judge of rules in force reads too:
the expressions of libnftables-json(5). A statement that is not understood becomes ``{"unread": TEXT}``, which
makes its rule one of which it is not known whether it matches; a file that cannot be taken apart raises
``NotReadError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from remedy.firewall.boot.nft_rule import NotReadError, Token, expression
from remedy.probe import NftChain, NftRule, NftRuleset, NftSet

FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
DEEPEST = 8
"""Files that include one another; nft allows 16."""

_PRIORITIES = {
    "raw": -300,
    "mangle": -150,
    "dstnat": -100,
    "filter": 0,
    "security": 50,
    "srcnat": 100,
}
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<line>[\n;])|(?P<brace>[{}])
    |"(?P<quoted>[^"\n]*)"|(?P<mark>[=!<>]=|[=<>&|^,()])|(?P<word>[^\s{};,"=!<>&|^()#]+|!)""",
    re.VERBOSE,
)

Include = Callable[[str], Sequence[str]]
"""Returns the texts of the files that a pattern names; raises ``NotReadError`` where they are not known."""


@dataclass
class _Chain:
    hook: str = ""
    priority: int = 0
    policy: str = ""
    rules: list[NftRule] = field(default_factory=list)


@dataclass
class _Config:
    places: dict[tuple[str, str], None] = field(default_factory=dict)
    chains: dict[tuple[str, str, str], _Chain] = field(default_factory=dict)
    sets: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    variables: dict[str, list[Token]] = field(default_factory=dict)


def read_config(text: str, include: Include) -> NftRuleset:
    """Return the ruleset that `nft -f` makes of a file, in a kernel without rules.

    Args:
        text: of the file.
        include: gives what it includes.

    Raises:
        NotReadError: it cannot be taken apart.
    """
    config = _Config()
    _File(config, include, 0).read(text)
    return NftRuleset(
        tables=tuple(config.places),
        chains=tuple(
            NftChain(*place, chain.hook, chain.priority, chain.policy, tuple(chain.rules))
            for place, chain in config.chains.items()
        ),
        sets=tuple(
            NftSet(*place, json.dumps({"name": place[2], **definition}))
            for place, definition in config.sets.items()
        ),
    )


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text; a line that ends inside braces of a set is no end of a statement."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotReadError(f"there is no sense in {text[at : at + 20]!r}")
        kind = str(match.lastgroup)
        if kind not in ("space", "comment"):
            word = match[kind]
            tokens.append(Token(";" if kind == "line" else word, is_text=kind == "quoted"))
        at = match.end()
    return tokens


class _File:
    """One file: its statements, in order.

    Args:
        config: what they make.
        include: gives what it includes.
        depth: how many files include it.
    """

    def __init__(self, config: _Config, include: Include, depth: int) -> None:
        self.config = config
        self.include = include
        self.depth = depth
        self.tokens: list[Token] = []
        self.at = 0

    def read(self, text: str) -> None:
        """Read a text to its end."""
        self.tokens, self.at = tokens_of(text), 0
        while self.at < len(self.tokens):
            if self._peek() == ";":
                self.at += 1
            else:
                self._command()

    # ---- tokens

    def _peek(self) -> str:
        return str(self.tokens[self.at]) if self.at < len(self.tokens) else ";"

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise NotReadError("it ends in the middle")
        self.at += 1
        return self.tokens[self.at - 1]

    def _statement(self) -> list[Token]:
        """Return the tokens up to the end of the statement, variables replaced."""
        words: list[Token] = []
        depth = 0
        while self.at < len(self.tokens):
            word = self.tokens[self.at]
            if depth == 0 and not word.is_text and word in (";", "}"):
                break
            self.at += 1
            if not word.is_text:
                depth += {"{": 1, "}": -1}.get(str(word), 0)
            if word.is_text or word != ";":  # a line may end inside a set
                words += self._value(word)
        return words

    def _value(self, word: Token) -> list[Token]:
        if word.is_text or not word.startswith("$"):
            return [word]
        if word[1:] not in self.config.variables:
            raise NotReadError(f"{word} is defined nowhere")
        return self.config.variables[word[1:]]

    def _braced(self) -> Iterator[None]:
        """Go through a block: once for each statement in it."""
        if self._next() != "{":
            raise NotReadError(f"a block is missing before {self._peek()!r}")
        while self._peek() != "}":
            if self._peek() == ";":
                self._next()
            else:
                yield
        self._next()

    def _skip_block(self) -> None:
        for _ in self._braced():
            self._statement_or_block()

    def _statement_or_block(self) -> None:
        while self._peek() not in (";", "}"):
            if self._peek() == "{":
                self._skip_block()
                return
            self._next()

    # ---- commands

    def _command(self) -> None:
        verb = str(self._next())
        if verb == "include":
            self._include(str(self._next()))
        elif verb in ("define", "redefine"):
            name = str(self._next())
            if self._next() != "=":
                raise NotReadError(f"define {name} has no value")
            self.config.variables[name] = self._statement()
        elif verb == "table":
            self._table()
        elif verb in ("flush", "delete", "destroy", "reset"):
            self._take_away(verb, [str(word) for word in self._statement()])
        elif verb in ("add", "create", "insert", "replace"):
            self._add(verb)
        elif verb in ("list", "monitor", "describe", "undefine"):
            self._statement()
        else:
            raise NotReadError(f"{verb!r} is no command of nft that is known here")

    def _include(self, pattern: str) -> None:
        if self.depth >= DEEPEST:
            raise NotReadError("files include one another without end")
        for text in self.include(pattern):
            _File(self.config, self.include, self.depth + 1).read(text)

    def _place(self) -> tuple[str, str]:
        family = str(self._next()) if self._peek() in FAMILIES else "ip"
        return family, str(self._next())

    def _table(self) -> None:
        place = self._place()
        self.config.places[place] = None
        if self._peek() != "{":
            return
        for _ in self._braced():
            word = str(self._next())
            if word == "chain":
                self._chain((*place, str(self._next())))
            elif word in ("set", "map"):
                self._set((*place, str(self._next())))
            elif word == "include":
                raise NotReadError("it includes a file inside a table")
            else:  # counters, helpers, flow tables, flags: nothing that a packet is lost by
                self._statement_or_block()

    def _chain(self, place: tuple[str, str, str]) -> None:
        chain = self.config.chains.setdefault(place, _Chain())
        for _ in self._braced():
            self._chain_line(chain, self._statement())

    def _chain_line(self, chain: _Chain, words: Sequence[Token]) -> None:
        if not words or words[0] in ("comment", "devices"):
            return
        if words[0] == "type":
            chain.hook = _after(words, "hook")
            chain.priority = _priority(words)
            chain.policy = chain.policy or "accept"
        elif words[0] == "policy":
            chain.policy = str(words[1])
        else:
            chain.rules.append(_rule(words))

    def _set(self, place: tuple[str, str, str]) -> None:
        definition: dict[str, Any] = {"elem": []}
        for _ in self._braced():
            words = self._statement()
            if words[:2] == ["elements", "="]:
                definition["elem"] = elements(words[2:])
            elif words and words[0] in ("type", "typeof"):
                definition["type"] = " ".join(words[1:])
            elif words[:1] == ["flags"] and {"dynamic", "timeout"} & set(words):
                definition["flags"] = ["dynamic"]
        self.config.sets[place] = definition

    def _take_away(self, verb: str, words: Sequence[str]) -> None:
        kind = words[0] if words else ""
        rest = list(words[1:])
        family = rest.pop(0) if rest and rest[0] in FAMILIES else "ip"
        if kind == "ruleset":
            self.config.places.clear()
            self.config.chains.clear()
            self.config.sets.clear()
        elif kind == "table" and rest and verb != "flush":
            place = (family, rest[0])
            self.config.places.pop(place, None)
            self.config.chains = {k: v for k, v in self.config.chains.items() if k[:2] != place}
            self.config.sets = {k: v for k, v in self.config.sets.items() if k[:2] != place}
        elif kind in ("table", "chain") and rest:
            for key, chain in self.config.chains.items():
                if key[: 1 + len(rest)] == (family, *rest):
                    chain.rules.clear()
        elif kind == "set" and len(rest) > 1:
            self.config.sets.pop((family, rest[0], rest[1]), None)
        else:
            raise NotReadError(f"`{verb} {' '.join(words)}` is not followed here")

    def _add(self, verb: str) -> None:
        kind = str(self._next())
        if kind == "table":
            self._table()
            return
        if kind not in ("chain", "rule", "set", "map", "element"):
            self._statement_or_block()
            return
        place = (*self._place(), str(self._next()))
        if kind == "chain":
            self.config.chains.setdefault(place, _Chain())
            if self._peek() == "{":
                self._chain(place)
        elif kind in ("set", "map"):
            self._set(place)
        elif kind == "element":
            known = self.config.sets.setdefault(place, {"elem": []})
            known["elem"] = [*known["elem"], *elements(self._statement())]
        elif verb == "replace" or self._peek() in ("handle", "index", "position"):
            raise NotReadError("it puts a rule at a place that is counted")
        else:
            rules = self.config.chains.setdefault(place, _Chain()).rules
            rules.insert(0 if verb == "insert" else len(rules), _rule(self._statement()))


def _after(words: Sequence[Token], key: str) -> str:
    return str(words[words.index(Token(key)) + 1]) if key in words[:-1] else ""


def _priority(words: Sequence[Token]) -> int:
    text = " ".join(words[words.index(Token("priority")) + 1 :]) if "priority" in words else "0"
    match = re.match(
        r"(?:(raw|mangle|dstnat|filter|security|srcnat|out)\b)?\s*([+-]?)\s*(\d*)", text
    )
    assert match is not None
    number = int(match[3] or 0) * (-1 if match[2] == "-" else 1)
    return _PRIORITIES.get(match[1] or "", 0) + number


def _rule(words: Sequence[Token]) -> NftRule:
    comment = _after(words, "comment")
    return NftRule(0, comment, json.dumps(expression(words)))


def elements(words: Sequence[Token]) -> list[Any]:
    """Return the elements of a set, of its tokens with the braces."""
    parsed = expression([Token("ip"), Token("saddr"), *words])
    right = parsed[0].get("match", {}).get("right") if parsed else None
    if not isinstance(right, dict) or "set" not in right:
        return [{"unread": " ".join(words)[:80]}] if words else []
    members: list[Any] = right["set"]
    return members
