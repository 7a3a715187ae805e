"""ufw: rules ahead of the user's own, in /etc/ufw/user.rules and in the chain that ufw fills from it.

It is what `ufw prepend allow` does, for all peers at once: a rule appended after one that denies would do
nothing. Every rule of that file is a line "### tuple ###" and the line for iptables-restore that ufw makes of
it; `ufw status` shows them, and a later `ufw` command keeps them. ufw itself loads the file when it starts.
"""

from __future__ import annotations

import re

from remedy.firewall import iptables, spans
from remedy.firewall.iptables import IptablesTable, accepts, live_command, opening_of
from remedy.firewall.iptables_rules import has_chain, rules_of
from remedy.firewall.step import COMMENT, Amendment, CommandStep, FileStep, Note, Opening
from remedy.plan.change import FindingKind
from remedy.plan.workbench import Command
from remedy.probe import HostState
from remedy.values import Unknown

CHAIN = "ufw-user-input"
RULES = "/etc/ufw/user.rules"

_MARK = f"in comment={COMMENT.encode().hex()}"
_OWN = re.compile(
    rb"### tuple ### [^\n]*" + re.escape(_MARK.encode()) + rb"[ \t]*\n((?:-A [^\n]*\n)*)\n?"
)
_START = re.compile(rb"(?m)^### RULES ###[ \t]*\n\n?")


def active(table: IptablesTable) -> bool:
    """Return whether ufw's rules are in force in this table."""
    return has_chain(table.text, CHAIN)


def edit_rules(content: bytes, opening: Opening) -> bytes | None:
    """Return user.rules with remedy's rules for ``opening`` first; None when it is not such a file."""
    rest = _OWN.sub(b"", content)
    start = _START.search(rest)
    if start is None:
        return None
    return rest[: start.end()] + _blocks(opening).encode() + rest[start.end() :]


def _blocks(opening: Opening) -> str:
    blocks = []
    lines = iter(accepts(CHAIN, opening, explicit=False))
    for network in spans.networks(opening.sources):
        for ports in iptables.port_parts(opening.ports):
            source = spans.address_text(network)
            blocks.append(
                f"### tuple ### allow tcp {ports} 0.0.0.0/0 any {source} {_MARK}\n{next(lines)}\n\n"
            )
    return "".join(blocks)


def live_lines(content: bytes) -> tuple[str, ...]:
    """Return remedy's rules of a user.rules, as iptables-save prints them."""
    lines = b"".join(match[1] for match in _OWN.finditer(content)).decode().splitlines()
    opening = [opening_of([line]) for line in lines]
    return tuple(line for part in opening if part is not None for line in accepts(CHAIN, part))


def propose(host: HostState, table: IptablesTable, opening: Opening) -> Amendment:
    """Return how ufw comes to let exactly ``opening`` in, now and after a reload or a reboot."""
    file = host.file(RULES)
    if isinstance(file, Unknown):
        return Amendment(
            notes=(Note(FindingKind.UNKNOWN, f"could not read {RULES}", (file.reason,)),)
        )
    content = edit_rules(file.content, opening)
    if content is None:
        title = f"{RULES} is not a file of rules as ufw writes it"
        return Amendment(
            notes=(
                Note(
                    FindingKind.BLOCKED, title, fix="Check `ufw status verbose`, or run: ufw reset"
                ),
            )
        )
    old = live_lines(file.content)
    live = rules_of(table.text, CHAIN)
    target = accepts(CHAIN, opening)
    steps: list[FileStep | CommandStep] = []
    if content != file.content:
        title = "ufw: drop remedy's rules"
        if target:
            title = "ufw: let the cluster's hosts in, ahead of the user's rules"
        steps.append(FileStep(f"{title} ({RULES})", RULES, content))
    if live[: len(target)] != target or any(line in old and line not in target for line in live):
        title = "ufw: the same rules in force, without a reload"
        steps.append(CommandStep(title, _live(table, old, target)))
    return Amendment(opening_of([line for line in live if line in old]), tuple(steps))


def _live(table: IptablesTable, old: tuple[str, ...], target: tuple[str, ...]) -> Command:
    obsolete = [line for line in rules_of(table.text, CHAIN) if line in old or line in target]
    lines = [f"-D {line.removeprefix('-A ')}" for line in obsolete]
    for place, line in enumerate(target, 1):
        lines.append(f"-I {CHAIN} {place} {line.removeprefix(f'-A {CHAIN} ')}")
    return live_command(table, (CHAIN,), "\n".join(["*filter", *lines, "COMMIT", ""]))
