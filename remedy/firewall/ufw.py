"""ufw: rules ahead of the user's own, in /etc/ufw/user.rules and in the chain that ufw fills from it.

It is what `ufw prepend allow` does, for all peers at once: a rule appended after one that denies would do
nothing. Every rule of that file is a line "### tuple ###" and the line for iptables-restore that ufw makes of
it; `ufw status` shows them, and a later `ufw` command keeps them. ufw itself loads the file when it starts.
"""

from __future__ import annotations

import re

from remedy.firewall import iptables, spans
from remedy.firewall.iptables import Table, accepts, file_step, live_action, opening_of
from remedy.firewall.iptables_rules import has_chain, rules_of
from remedy.firewall.step import COMMENT, Note, Opening, Proposal, Step
from remedy.plan.change import CommandAction, FindingKind
from remedy.plan.files import blocker
from remedy.probe import HostState
from remedy.values import Unknown

CHAIN = "ufw-user-input"
RULES = "/etc/ufw/user.rules"

_MARK = f"in comment={COMMENT.encode().hex()}"
_OWN = re.compile(
    rb"### tuple ### [^\n]*" + re.escape(_MARK.encode()) + rb"[ \t]*\n((?:-A [^\n]*\n)*)\n?"
)
_START = re.compile(rb"(?m)^### RULES ###[ \t]*\n\n?")


def active(table: Table) -> bool:
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
    lines = b"".join(found[1] for found in _OWN.finditer(content)).decode().splitlines()
    opening = [opening_of([line]) for line in lines]
    return tuple(line for one in opening if one is not None for line in accepts(CHAIN, one))


def propose(host: HostState, table: Table, opening: Opening) -> Proposal:
    """Return how ufw comes to let exactly ``opening`` in, now and after a reload or a reboot."""
    file = host.file(RULES)
    if isinstance(file, Unknown):
        return Proposal(
            notes=(Note(FindingKind.UNKNOWN, f"{RULES} could not be read", (file.reason,)),)
        )
    content = edit_rules(file.content, opening)
    if content is None:
        title = f"{RULES} is not a file of rules as ufw writes it"
        return Proposal(
            notes=(Note(FindingKind.BLOCKED, title, fix="Look at it, or run: ufw reset"),)
        )
    old = live_lines(file.content)
    live = rules_of(table.text, CHAIN)
    wanted = accepts(CHAIN, opening)
    steps: list[Step] = []
    notes: list[Note] = []
    if content != file.content:
        stuck = blocker(file, "")
        if stuck is not None:
            return Proposal(notes=(Note(FindingKind.BLOCKED, stuck.title, fix=stuck.fix),))
        title = (
            "ufw: let the cluster's hosts in, ahead of the user's rules"
            if wanted
            else "ufw: drop remedy's rules"
        )
        steps.append(file_step(file, content, f"{title} ({RULES})"))
    if live[: len(wanted)] != wanted or any(line in old and line not in wanted for line in live):
        steps.append(
            Step("ufw: the same rules in force, without a reload", _live(table, old, wanted))
        )
    return Proposal(opening_of([x for x in live if x in old]), tuple(steps), tuple(notes))


def _live(table: Table, old: tuple[str, ...], wanted: tuple[str, ...]) -> CommandAction:
    gone = [line for line in rules_of(table.text, CHAIN) if line in old or line in wanted]
    lines = [f"-D {line.removeprefix('-A ')}" for line in gone]
    for place, line in enumerate(wanted, 1):
        lines.append(f"-I {CHAIN} {place} {line.removeprefix(f'-A {CHAIN} ')}")
    return live_action(table, (CHAIN,), "\n".join(["*filter", *lines, "COMMIT", ""]))
