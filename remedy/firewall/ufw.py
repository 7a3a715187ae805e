"""ufw: rules ahead of the user's own, in /etc/ufw/user.rules and in the chain that ufw fills from it.

It is what `ufw prepend allow` does, for all peers at once: a rule appended after one that denies would do
nothing. Every rule of that file is a line "### tuple ###" and the line for iptables-restore that ufw makes of
it; `ufw status` shows them, and a later `ufw` command keeps them. ufw itself loads the file when it starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from remedy.firewall import iptables, spans
from remedy.firewall.iptables import IptablesTable, accepts, live_command, side_of
from remedy.firewall.iptables_rules import has_chain, rules_of
from remedy.firewall.step import (
    COMMENT,
    Amendment,
    CommandStep,
    FileStep,
    Note,
    Opening,
    Side,
    Way,
    accepted,
    opening_of,
)
from remedy.plan.change import FindingKind
from remedy.plan.workbench import Command
from remedy.probe import HostState
from remedy.values import Unknown

CHAINS: Mapping[Way, str] = {"in": "ufw-user-input", "out": "ufw-user-output"}
RULES = "/etc/ufw/user.rules"

_COMMENT = f"comment={COMMENT.encode().hex()}"
_OWN = re.compile(
    rb"### tuple ### [^\n]* (?:in|out) "
    + re.escape(_COMMENT.encode())
    + rb"[ \t]*\n((?:-A [^\n]*\n)*)\n?"
)
_START = re.compile(rb"(?m)^### RULES ###[ \t]*\n\n?")

FOREIGN = Note(
    FindingKind.BLOCKED,
    f"{RULES} is not a file of rules as ufw writes it",
    fix="Check `ufw status verbose`, or run: ufw reset",
)
"""What is said where remedy's rules have no place in the file."""


def active(table: IptablesTable) -> bool:
    """Return whether ufw's rules are in force in this table."""
    return has_chain(table.text, CHAINS["in"])


def edit_rules(content: bytes, opening: Opening) -> bytes | None:
    """Return user.rules with remedy's rules for ``opening`` first; None when it is not such a file."""
    rest = _OWN.sub(b"", content)
    start = _START.search(rest)
    if start is None:
        return None
    return rest[: start.end()] + _blocks(opening).encode() + rest[start.end() :]


def _blocks(opening: Opening) -> str:
    blocks = []
    for side in opening.sides:
        lines = iter(accepts(CHAINS[side.way], side, explicit=False))
        for network in spans.networks(side.hosts):
            for ports in iptables.port_parts(side.ports):
                host = spans.address_text(network)
                ends = f"0.0.0.0/0 any {host}" if side.way == "in" else f"{host} any 0.0.0.0/0"
                head = f"### tuple ### allow tcp {ports} {ends} {side.way} {_COMMENT}"
                blocks.append(f"{head}\n{next(lines)}\n\n")
    return "".join(blocks)


def live_lines(content: bytes) -> tuple[str, ...]:
    """Return remedy's rules of a user.rules, as iptables-save prints them."""
    lines = b"".join(match[1] for match in _OWN.finditer(content)).decode().splitlines()
    sides = [(chain, side_of(way, [line])) for line in lines for way, chain in _of(line)]
    return tuple(line for chain, side in sides if side is not None for line in accepts(chain, side))


def _of(line: str) -> tuple[tuple[Way, str], ...]:
    """Return the direction and the chain of a rule of remedy's."""
    return tuple((way, name) for way, name in CHAINS.items() if line.startswith(f"-A {name} "))


def propose(host: HostState, table: IptablesTable, opening: Opening) -> Amendment:
    """Return how ufw comes to let exactly ``opening`` in, now and after a reload or a reboot."""
    file = host.file(RULES)
    if isinstance(file, Unknown):
        return Amendment(
            notes=(Note(FindingKind.UNKNOWN, f"could not read {RULES}", (file.reason,)),)
        )
    content = edit_rules(file.content, opening)
    if content is None:
        return Amendment(notes=(FOREIGN,))
    old = live_lines(file.content)
    steps: list[FileStep | CommandStep] = []
    if content != file.content:
        title = "ufw: drop remedy's rules"
        if opening.sources or opening.targets:
            title = "ufw: let the cluster's hosts in, ahead of the user's rules"
        if opening.targets:
            title = "ufw: let the cluster's hosts in and be reached, ahead of the user's rules"
        steps.append(FileStep(f"{title} ({RULES})", RULES, content))
    known = _present(table, old)
    wrong = [side for side in opening.sides if not _settled(table, old, side)]
    if wrong:
        title = "ufw: the same rules in force, without a reload"
        chains = " and ".join(CHAINS[side.way] for side in wrong)
        before = [s for s in (known.sides if known else ()) if s.way in {w.way for w in wrong}]
        does, undoes = (
            f"by one iptables-restore, first in {chains}: {accepted(sides)}; no other rule changes"
            for sides in (wrong, before)
        )
        live = _live(table, old, wrong)
        steps.append(CommandStep(title, {**live, "does": does, "undoes": undoes}))
    return Amendment(known, tuple(steps))


def _present(table: IptablesTable, old: tuple[str, ...]) -> Opening | None:
    """Return what remedy's rules in force let through; None where there are none."""
    sides = [
        side_of(way, [line for line in rules_of(table.text, chain) if line in old])
        for way, chain in CHAINS.items()
    ]
    known = [side for side in sides if side is not None]
    return opening_of(known) if known else None


def _settled(table: IptablesTable, old: tuple[str, ...], side: Side) -> bool:
    """Return whether the rules in force begin with one side of an opening, and have none of before."""
    live = rules_of(table.text, CHAINS[side.way])
    target = accepts(CHAINS[side.way], side)
    return live[: len(target)] == target and not any(
        line in old and line not in target for line in live
    )


def _live(table: IptablesTable, old: tuple[str, ...], sides: list[Side]) -> Command:
    lines = []
    for side in sides:
        chain, target = CHAINS[side.way], accepts(CHAINS[side.way], side)
        obsolete = [line for line in rules_of(table.text, chain) if line in old or line in target]
        lines += [f"-D {line.removeprefix('-A ')}" for line in obsolete]
        for place, line in enumerate(target, 1):
            lines.append(f"-I {chain} {place} {line.removeprefix(f'-A {chain} ')}")
    watched = [CHAINS[side.way] for side in sides]
    return live_command(table, watched, "\n".join(["*filter", *lines, "COMMIT", ""]))
