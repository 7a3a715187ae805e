"""nftables without a manager: one rule of remedy's own at the head of each chain that drops packets of peers.

A table of remedy's own would open nothing: a packet has to pass every base chain (nft(8), "accept" is final in
its own chain only). The rule names all peers in one set. For the next boot it stands in a file of its own that
the service's file includes after the chain is defined; the ruleset in force is never saved, since it holds what
Docker and others put there.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from remedy.bounds import fits
from remedy.firewall import spans
from remedy.firewall.nftables_rules import place, read_rule
from remedy.firewall.reading import hosts_and_ports
from remedy.firewall.step import (
    COMMENT,
    Amendment,
    CommandStep,
    FileStep,
    Note,
    Opening,
    Side,
    accepted,
    opening_of,
)
from remedy.plan.change import CommandAction, FindingKind, command
from remedy.plan.workbench import Command
from remedy.probe import File, HostState, NftChain, NftRule, NftRuleset
from remedy.text import is_number
from remedy.values import Unknown

INCLUDED = "/etc/nftables.d/remedy.nft"
MAIN_FILES = ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf")
"""What nftables.service loads, on Debian and on the Red Hat family."""

_HEAD = "# Written by remedy: lets the cluster's hosts in. It is included after the chains that it names.\n"
OUTGOING = frozenset({"output", "postrouting", "egress"})
"""Hooks of packets that leave the host."""

_INCLUDE = f'include "{INCLUDED}"'


# --- writing -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def rule_text(side: Side) -> str:
    """Return remedy's rule; its comment tells which hosts and ports it stands for."""
    return (
        f"ip {_ADDRESS[side.way]} {{ {', '.join(spans.address_ranges(side.hosts))} }} "
        f"tcp dport {{ {', '.join(spans.port_texts(side.ports, '-'))} }} "
        f'accept comment "{COMMENT} {side.digest}"'
    )


_ADDRESS = {"in": "saddr", "out": "daddr"}


def side_of(chain: NftChain, opening: Opening) -> Side:
    """Return what of an opening a base chain has to hold, by its hook."""
    return opening.outgoing if chain.hook in OUTGOING else opening.incoming


def own_rules(chain: NftChain) -> tuple[NftRule, ...]:
    """Return remedy's rules in a chain."""
    return tuple(rule for rule in chain.rules if rule.comment.split(" ")[0] == COMMENT)


def present(chain: NftChain) -> Side | None:
    """Return what remedy's rules in a chain let through; None when there are none."""
    read = [part for rule in own_rules(chain) for part in read_rule(rule, {})]
    known = hosts_and_ports(read)
    return None if known is None else Side("out" if chain.hook in OUTGOING else "in", *known)


def _live(chain: NftChain, old: Side, new: Side) -> Command:
    place = (chain.family, chain.table, chain.name)
    return {
        "observe": f"{command(['nft', 'list', 'chain', *place])} 2>/dev/null | "
        f"sed -n 's/.*comment \"{COMMENT} \\([0-9a-f]*\\)\".*/\\1/p'",
        "before": "\n".join(_digests(chain)),
        "after": new.digest if new.hosts else "",
        "do": _replace(place, new),
        "undo": _replace(place, old),
    }


def _digests(chain: NftChain) -> list[str]:
    """Return what remedy's rules in a chain say they stand for."""
    return [rule.comment.partition(" ")[2] for rule in own_rules(chain)]


def observed(ruleset: NftRuleset, action: CommandAction) -> str:
    """Return what ``observe`` of a step of this module prints where the kernel has ``ruleset``."""
    place = tuple(shlex.split(action.observe)[3:6])
    chains = (c for c in ruleset.chains if (c.family, c.table, c.name) == place)
    return "\n".join(digest for chain in chains for digest in _digests(chain))


def _replace(place: tuple[str, str, str], side: Side) -> str:
    """Return sh text that puts the rule for ``side`` in the place of remedy's rules, in one transaction."""
    where = shlex.join(place)
    lines = [f"insert rule {' '.join(place)} {rule_text(side)}"] if side.hosts else []
    return (
        f"new={shlex.quote(''.join(f'{line}' for line in lines))}; "
        f"old=$(nft -a list chain {where} | "
        f'sed -n \'s/.*comment "{COMMENT}[ "].*# handle \\([0-9]*\\)$/'
        f"delete rule {' '.join(place)} handle \\1/p') && "
        'printf \'%s\\n\' "$old" "$new" | nft -f -'
    )


def after_live(ruleset: NftRuleset, action: CommandAction) -> NftRuleset:
    """Return the ruleset after a step of this module."""
    new = shlex.split(action.do)[0].removeprefix("new=").removesuffix(";")
    place = tuple(shlex.split(action.observe)[3:6])
    rule: tuple[NftRule, ...] = ()
    if new:
        match = _RULE.search(new)
        if match is None:
            return ruleset
        rule = (
            NftRule(
                0,
                match[4],
                expression(items(match[2].split(", ")), items(match[3].split(", ")), match[1]),
            ),
        )
    return ruleset.model_copy(
        update={
            "chains": tuple(
                chain._replace(
                    rules=(*rule, *(r for r in chain.rules if r not in own_rules(chain)))
                )
                if (chain.family, chain.table, chain.name) == place
                else chain
                for chain in ruleset.chains
            )
        }
    )


_RULE = re.compile(r"ip ([sd]addr) \{ (.*?) \} tcp dport \{ (.*?) \} accept comment \"(.*)\"")


def expression(hosts: Any, ports: Any, address: str = "saddr") -> str:
    """Return the expression of a rule that accepts, from the right sides of its matches."""

    def match(protocol: str, name: str, right: Any) -> dict[str, Any]:
        left = {"payload": {"protocol": protocol, "field": name}}
        return {"match": {"op": "==", "left": left, "right": right}}

    return json.dumps([match("ip", address, hosts), match("tcp", "dport", ports), {"accept": None}])


def items(texts: Iterable[str]) -> dict[str, Any]:
    """Return the right side that names single values and ranges, written with a dash."""
    parts = [[_value(word) for word in text.split("-")] for text in texts]
    return {"set": [part[0] if len(part) == 1 else {"range": part} for part in parts]}


def _value(word: str) -> int | str:
    return int(word) if is_number(word) else word


# --- proposing ---------------------------------------------------------------------------------------------


def propose(chain: NftChain, opening: Opening) -> Amendment:
    """Return how a base chain comes to let its side of ``opening`` through, as long as the host runs."""
    current = own_rules(chain)
    known = present(chain)
    side = side_of(chain, opening)
    target = [side.digest] if side.hosts else []
    exact = known == side if target else not current
    now = None if known is None else opening_of([known])
    if _digests(chain) == target and exact:
        return Amendment(now)
    name = f"nftables chain {place(chain)}"
    title = f"{name}: take remedy's rule out"
    if target:
        whom = "in" if side.way == "in" else "be reached"
        title = f"{name}: let the cluster's hosts {whom}, first of all rules"
    before = known or Side(side.way)
    does, undoes = (
        f"by one transaction of nft: {accepted([s])}; no other rule changes" for s in (side, before)
    )
    live = _live(chain, before, side)
    step = CommandStep(title, {**live, "does": does, "undoes": undoes})
    return Amendment(now, (step,))


def propose_saved(host: HostState, chains: Iterable[NftChain], opening: Opening) -> Amendment:
    """Return how the same rules come to be loaded at boot.

    Args:
        chains: those whose rules are to be loaded; a chain that no file defines gets none: a file that names
            a chain which is not there would keep the whole ruleset from being loaded.
        opening: what they let in.
    """
    every = list(chains)
    files = [host.file(path) for path in MAIN_FILES]
    main = next((file for file in files if isinstance(file, File) and file.exists), None)
    defined = [chain for chain in every if main is not None and _defines(host, main, chain)]
    content = _saved_rules(defined, opening)
    included = host.file(INCLUDED)
    notes = [_undefined([c for c in every if c not in defined], main, files)]
    steps: list[FileStep] = []
    if isinstance(included, File):
        steps = [*_written(included, content), *_included(main, content)]
    elif content:
        title = f"could not read {INCLUDED}"
        notes.append(Note(FindingKind.UNKNOWN, title, (included.reason,)))
    return Amendment(None, tuple(steps), tuple(note for note in notes if note is not None))


def _saved_rules(chains: Sequence[NftChain], opening: Opening) -> bytes:
    """Return the file with the rules of remedy, b"" where there are none."""
    sides = [(chain, side_of(chain, opening)) for chain in chains]
    lines = [f"insert rule {place(c)} {rule_text(side)}\n" for c, side in sides if side.hosts]
    return (_HEAD + "".join(lines)).encode() if lines else b""


def _written(included: File, content: bytes) -> Iterator[FileStep]:
    """Yield the step that gives the file with remedy's rules its content, where it has another."""
    if content and included.content != content:
        yield FileStep(f"write the same rules into {INCLUDED}", INCLUDED, content)
    elif not content and included.content not in (b"", _HEAD.encode()):
        yield FileStep(f"empty {INCLUDED}", INCLUDED, _HEAD.encode())


def _included(main: File | None, content: bytes) -> Iterator[FileStep]:
    """Yield the step that includes remedy's rules in the service's file, where it does not yet."""
    if not content or main is None or _INCLUDE in _text(main):
        return
    end = b"" if main.content.endswith(b"\n") or not main.content else b"\n"
    title = f"include it at the end of {main.path}, which is loaded at boot"
    yield FileStep(title, main.path, main.content + end + f"{_INCLUDE}\n".encode())


def _undefined(
    chains: Sequence[NftChain], main: File | None, files: Sequence[File | Unknown]
) -> Note | None:
    """Return the note about chains that no file defines, None where each is defined."""
    unread = [file for file in files if isinstance(file, Unknown)]
    if not chains:
        return None
    if main is None and unread:
        title = "could not read what nftables loads at boot"
        return Note(FindingKind.UNKNOWN, title, (unread[0].reason,))
    names = [place(chain) for chain in chains]
    return Note(
        FindingKind.REPORT,
        "nothing known loads these nftables rules at boot, so remedy's rule lasts until the next boot",
        tuple(f"chain {name} is not in {' or '.join(MAIN_FILES)}" for name in names),
        fix="After a reboot run `remedy check` again, or add the rule to what loads the others.",
    )


def _text(file: File) -> str:
    return file.content.decode("utf-8", "replace")


def _defines(host: HostState, main: File, chain: NftChain) -> bool:
    """Return whether the service's file, or one that it includes, defines a chain."""
    texts = [_text(main)]
    for pattern in filter(None, map(_included_by, texts[0].splitlines())):
        folder = pattern.rpartition("/")[0]
        texts += [
            _text(file)
            for file in host.files_in(folder or "/etc")
            if isinstance(file, File)
            and file.exists
            and file.path != INCLUDED
            and fits(file.path, pattern)
        ]
    place = (chain.family, chain.table, chain.name)
    return any(place in _chains_of(text) for text in texts)


def _included_by(line: str) -> str:
    """Return the pattern of files that a line includes, "" for none."""
    words = line.split('"')
    return words[1] if len(words) > 2 and words[0].strip() == "include" else ""


@lru_cache(maxsize=64)
def _chains_of(text: str) -> frozenset[tuple[str, str, str]]:
    """Return the chains that a file defines, by family, table and name."""
    names = set()
    table: tuple[str, str] | None = None
    depth = 0
    words: list[str] = []
    for word in _WORD.findall(text):
        if word[0] == "#":
            continue
        if word == "{":
            if depth == 0 and words[:1] == ["table"]:
                table = (words[1], words[2]) if len(words) > 2 else ("ip", words[-1])
            elif depth == 1 and table and words[:1] == ["chain"] and len(words) > 1:
                names.add((*table, words[1]))
            depth += 1
        elif word == "}":
            depth = max(0, depth - 1)
        if word in ("{", "}", ";", "\n"):
            words = []
        elif len(words) < 4:
            words.append(word)
    return frozenset(names)


# A statement of nft ends with its line or at a semicolon; a brace may stand right beside a word.
_WORD = re.compile(r'#[^\n]*|"[^"\n]*"|[{};\n]|[^\s{};#"]+|"')
