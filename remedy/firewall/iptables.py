"""iptables, in nftables or in the kernel's old tables: chains of remedy's own, first in INPUT and OUTPUT.

What iptables-save(8) prints is both what is read and what is written: a change is a text for
``iptables-restore --noflush``, which the kernel takes whole or not at all. The same format is what
netfilter-persistent (/etc/iptables/rules.v4) and iptables-services (/etc/sysconfig/iptables) load at boot; only
remedy's lines are put into those files, so that rules of Docker that are in force are never saved with them.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from remedy.firewall import spans
from remedy.firewall.iptables_rules import filter_lines, has_chain, read_rule, rules_of
from remedy.firewall.reading import hosts_and_ports
from remedy.firewall.spans import Spans
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
from remedy.plan.change import CommandAction, FindingKind, command
from remedy.plan.workbench import Command
from remedy.probe import HostState
from remedy.values import Unknown


@dataclass(frozen=True)
class OwnChain:
    """A chain of remedy's own: the base chain that calls it, its name, and the option that names hosts."""

    base: str
    name: str
    host: str

    @property
    def jump(self) -> str:
        """The rule that calls it, as iptables-save prints it."""
        return f"-A {self.base} -p tcp -m comment --comment {COMMENT} -j {self.name}"


INCOMING = OwnChain("INPUT", "REMEDY-PEERS", "-s")
OUTGOING = OwnChain("OUTPUT", "REMEDY-PEERS-OUT", "-d")
_CHAINS: Mapping[Way, OwnChain] = {"in": INCOMING, "out": OUTGOING}
SAVED = ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables")
"""What is loaded at boot: by netfilter-persistent on Debian, by iptables-services on the Red Hat family."""

NAMES = ("iptables", "iptables (legacy tables)")
"""What the user knows the two kinds of tables as: those in nftables, and the kernel's old ones."""

PORT_SLOTS = 15
"""Ports in one multiport match, a range counting two (iptables-extensions(8))."""


@dataclass(frozen=True)
class IptablesTable:
    """The filter table of iptables.

    Args:
        variant: "nft" for rules in nftables, "legacy" for the kernel's old tables.
        text: what iptables-save prints of all tables, without comments and counters.
    """

    variant: str
    text: str

    @property
    def name(self) -> str:
        """What the user knows it as."""
        return NAMES[0] if self.variant == "nft" else NAMES[1]

    def tool(self, suffix: str) -> str:
        """Return sh text for the tool that talks to these tables, whatever iptables itself is a link to."""
        first, second = f"iptables-{self.variant}{suffix}", f"iptables{suffix}"
        return f'"$(command -v {first} || command -v {second})"'


# --- writing -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def accepts(chain: str, side: Side, *, explicit: bool = True) -> tuple[str, ...]:
    """Return the rules that let one side of an opening through, as iptables-save prints them.

    ``explicit`` false: as ufw writes them.
    """
    option = _CHAINS[side.way].host
    lines = []
    for network in spans.networks(side.hosts):
        host = str(network) if explicit else spans.address_text(network)
        for part in port_parts(side.ports):
            single = "-m tcp --dport" if explicit else "--dport"
            several = "," in part or ":" in part
            match = f"-m multiport --dports {part}" if several else f"{single} {part}"
            where = f"{option} {host} -p tcp {match}"
            if not explicit:
                # A single port behind the address of a host that is connected to; else ports are first.
                is_last = side.way == "out" and match == f"{single} {part}"
                pair = (f"{option} {host}", match) if is_last else (match, f"{option} {host}")
                where = f"-p tcp {' '.join(pair)}"
            line = f"-A {chain} {where} -j ACCEPT"
            lines.append(line.replace(f" {option} 0.0.0.0/0", ""))
    return tuple(lines)


def port_parts(ports: Spans) -> tuple[str, ...]:
    """Return lists of ports, each short enough for one multiport match."""
    parts: list[list[str]] = [[]]
    used = 0
    for low, high in ports:
        slots = 1 if low == high else 2
        if used + slots > PORT_SLOTS:
            parts.append([])
            used = 0
        parts[-1].append(str(low) if low == high else f"{low}:{high}")
        used += slots
    return tuple(",".join(part) for part in parts if part)


def side_of(way: Way, lines: Iterable[str]) -> Side | None:
    """Return what rules of remedy's own let through; None when there are none, or they are not its own."""
    known = hosts_and_ports(read_rule(line) for line in lines)
    return None if known is None else Side(way, *known)


def restore_text(text: str, opening: Opening) -> str:
    """Return what turns a table's text, by ``iptables-restore --noflush``, into one that holds ``opening``."""
    lines = ["*filter"]
    for side in opening.sides:
        chain = _CHAINS[side.way]
        rules = accepts(chain.name, side)
        called = rules_of(text, chain.base)
        jumps = sum(line == chain.jump for line in called)
        if rules or has_chain(text, chain.name):
            lines += [f":{chain.name} - [0:0]", *rules]
        if not (rules and called[:1] == (chain.jump,) and jumps == 1):
            jump = chain.jump.removeprefix("-A ")
            lines += [f"-D {jump}"] * jumps
            rest = jump.removeprefix(f"{chain.base} ")
            lines += [f"-I {chain.base} 1 {rest}"] if rules else []
        if not rules:
            lines += [f"-X {chain.name}"] if has_chain(text, chain.name) else []
    return "\n".join([*lines, "COMMIT", ""])


def apply_restore(text: str, restore: str) -> str:
    """Return what iptables-save prints after ``restore`` was given to ``iptables-restore --noflush``.

    Only what remedy itself writes is understood.
    """
    lines = list(filter_lines(text))
    for line in restore.splitlines():
        word, _, rest = line.partition(" ")
        if word.startswith(":"):
            lines = [x for x in lines if not x.startswith(f"-A {word[1:]} ")]
            if not any(x.startswith(f"{word} ") for x in lines):
                last = max((i for i, x in enumerate(lines) if x.startswith(":")), default=-1)
                lines.insert(last + 1, f"{word} -")
        elif word == "-A":
            lines.append(line)
        elif word == "-D":
            lines.remove(f"-A {rest}")
        elif word == "-I":
            chain, place, rule = rest.split(" ", 2)
            starts = [i for i, x in enumerate(lines) if x.startswith(f"-A {chain} ")]
            at = (starts[0] if starts else len(lines)) + int(place) - 1
            lines.insert(at, f"-A {chain} {rule}")
        elif word == "-X":
            lines = [x for x in lines if not x.startswith(f":{rest} ")]
    return _with_filter(text, lines)


def _with_filter(text: str, lines: Sequence[str]) -> str:
    """Return a saved text with other lines in its table ``filter``."""
    body = "".join(f"{line}\n" for line in lines)
    match = re.search(r"(?ms)^\*filter\n.*?^COMMIT\n", text)
    block = f"*filter\n{body}COMMIT\n"
    return text + block if match is None else text[: match.start()] + block + text[match.end() :]


def live_command(table: IptablesTable, watched: Sequence[str], restore: str) -> Command:
    """Return the command that gives ``restore`` to the kernel, between two looks at the chains ``watched``."""
    after = apply_restore(table.text, restore)
    back = _way_back(table.text, after, watched)
    show = "; ".join(f"{table.tool('')} -w 10 -S {shlex.quote(chain)}" for chain in watched)
    return {
        "observe": f"{{ {show}; }} 2>/dev/null | grep '^-A' | sha256sum | cut -c1-64",
        "before": _fingerprint(table.text, watched),
        "after": _fingerprint(after, watched),
        "do": _restore(table, restore),
        "undo": _restore(table, back),
    }


def observed(text: str, action: CommandAction) -> str:
    """Return what ``observe`` of a ``live_command`` prints where iptables-save prints ``text``."""
    return _fingerprint(text, re.findall(r" -w 10 -S ([\w-]+)", action.observe))


def restore_of(action: CommandAction) -> str:
    """Return the text that ``live_command`` put into a command."""
    return shlex.split(action.do)[2]


def _restore(table: IptablesTable, text: str) -> str:
    return f"{command(['printf', '%s', text])} | {table.tool('-restore')} --noflush -w 10"


def _way_back(before: str, after: str, watched: Sequence[str]) -> str:
    """Return the restore text that makes the chains ``watched`` of ``after`` what they are in ``before``.

    Other chains are not named in it, so rules that others add meanwhile stay.
    """
    names = {chain.name for chain in _CHAINS.values()}
    lines = ["*filter"]
    for chain in reversed(watched):  # the own chain first: the other one calls it
        old, new = rules_of(before, chain), rules_of(after, chain)
        if chain in names and has_chain(before, chain):
            lines += [f":{chain} - [0:0]", *old]
        elif chain not in names:
            same = SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks()
            old_places = {i for block in same for i in range(block.a, block.a + block.size)}
            new_places = {i for block in same for i in range(block.b, block.b + block.size)}
            lines += [
                f"-D {x.removeprefix('-A ')}" for i, x in enumerate(new) if i not in old_places
            ]
            for place, line in enumerate(old):
                if place not in new_places:
                    lines.append(f"-I {chain} {place + 1} {line.removeprefix(f'-A {chain} ')}")
    for chain in watched:
        if chain in names and has_chain(after, chain) and not has_chain(before, chain):
            lines += [f":{chain} - [0:0]", f"-X {chain}"]
    return "\n".join([*lines, "COMMIT", ""])


def _fingerprint(text: str, watched: Sequence[str]) -> str:
    lines = [line for chain in watched for line in rules_of(text, chain)]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


# --- proposing ---------------------------------------------------------------------------------------------


def present(table: IptablesTable) -> Opening | None:
    """Return what remedy's own chains in force let through; None where there are none."""
    sides = []
    for way, chain in _CHAINS.items():
        if chain.jump in rules_of(table.text, chain.base) or has_chain(table.text, chain.name):
            sides.append(side_of(way, rules_of(table.text, chain.name)) or Side(way))
    return opening_of(sides) if sides else None


def _settled(text: str, side: Side) -> bool:
    """Return whether a table holds one side of an opening, and nothing more of remedy's."""
    chain = _CHAINS[side.way]
    called = chain.jump in rules_of(text, chain.base)
    target = accepts(chain.name, side)
    if not target:
        return not has_chain(text, chain.name) and not called
    return rules_of(text, chain.name) == target and called


def propose(host: HostState, table: IptablesTable, opening: Opening) -> Amendment:
    """Return how a table comes to let exactly ``opening`` through, now and after a reboot."""
    steps, notes = _saved_steps(host, table, opening)
    known = present(table)
    if not all(_settled(table.text, side) for side in opening.sides):
        both = opening.targets or has_chain(table.text, OUTGOING.name)
        chains = (INCOMING, OUTGOING) if both else (INCOMING,)
        watched = [name for chain in chains for name in (chain.base, chain.name)]
        live = live_command(table, watched, restore_text(table.text, opening))
        does, undoes = (
            f"by one iptables-restore: {accepted(sides)}; no other rule changes"
            for sides in (opening.sides, known.sides if known else ())
        )
        words: Command = {**live, "does": does, "undoes": undoes}
        steps.append(CommandStep(_title(table, opening), words))
    return Amendment(known, tuple(steps), tuple(notes), independent=True)


def _title(table: IptablesTable, opening: Opening) -> str:
    chains = {"in": f"in by a chain {INCOMING.name}, called first in {INCOMING.base}"}
    chains["out"] = f"be reached by a chain {OUTGOING.name}, called first in {OUTGOING.base}"
    titles = [chains[side.way] for side in opening.sides if side.hosts]
    if not titles:
        return f"take remedy's rules out of {table.name}"
    return f"{table.name}: let the cluster's hosts {', and '.join(titles)}"


def _saved_steps(
    host: HostState, table: IptablesTable, opening: Opening
) -> tuple[list[FileStep | CommandStep], list[Note]]:
    steps: list[FileStep | CommandStep] = []
    notes: list[Note] = []
    is_saved = False
    for path in SAVED:
        file = host.file(path)
        if isinstance(file, Unknown):
            notes.append(Note(FindingKind.UNKNOWN, f"could not read {path}", (file.reason,)))
            is_saved = True
        elif file.exists:
            is_saved = True
            content = edit_saved(file.content, opening)
            if content != file.content:
                title = f"write the same rules into {path}, which is loaded at boot"
                steps.append(FileStep(title, path, content))
    if not is_saved and (opening.sources or opening.targets):
        notes.append(
            Note(
                FindingKind.REPORT,
                f"what loads the rules of {table.name} at boot is not known, so remedy's are only in force",
                (f"none of {', '.join(SAVED)} is there",),
                fix="After a reboot run `remedy check` again, or add the rules to what loads the others.",
            )
        )
    return steps, notes


_NAMES = "|".join(re.escape(chain.name) for chain in _CHAINS.values())
_BASES = "|".join(chain.base for chain in _CHAINS.values())
_OWN_LINES = re.compile(
    rf"(?m)^(?::(?:{_NAMES}) .*|-A (?:{_NAMES}) .*|-[AI] (?:{_BASES}) .*-j (?:{_NAMES})[ \t]*)\r?\n".encode()
)


def edit_saved(content: bytes, opening: Opening) -> bytes:
    """Return a file of saved rules in which remedy's lines hold ``opening``; every other byte stays.

    A chain is declared right after the table's name and filled right before the first rule, so that its
    call is the first rule of its base chain. A file without a filter table drops nothing and stays as it is.
    """
    text = content.decode("utf-8", "backslashreplace")
    # Also where the tool that saves the rules has put remedy's lines elsewhere since.
    if _holds(text, opening):
        return content
    rest = _OWN_LINES.sub(b"", content)
    table = re.search(rb"(?m)^\*filter[ \t]*\r?\n", rest)
    sides = [side for side in opening.sides if accepts(_CHAINS[side.way].name, side)]
    if not sides or table is None:
        return rest
    first = re.compile(rb"(?m)^(?:\[\d+:\d+\] )?-|^COMMIT").search(rest, table.end())
    if first is None:
        return rest
    chains = [(_CHAINS[side.way], side) for side in sides]
    head = "".join(f":{chain.name} - [0:0]\n" for chain, _ in chains).encode()
    rules = "".join(
        f"{line}\n" for chain, side in chains for line in (chain.jump, *accepts(chain.name, side))
    ).encode()
    return (
        rest[: table.end()]
        + head
        + rest[table.end() : first.start()]
        + rules
        + rest[first.start() :]
    )


def _holds(text: str, opening: Opening) -> bool:
    """Return whether saved rules hold exactly an opening, each call first in its base chain."""
    if not (opening.sources or opening.targets):
        return False
    for side in opening.sides:
        chain = _CHAINS[side.way]
        expected = accepts(chain.name, side)
        if rules_of(text, chain.name) != expected:
            return False
        if expected and rules_of(text, chain.base)[:1] != (chain.jump,):
            return False
        if not expected and (
            has_chain(text, chain.name) or chain.jump in rules_of(text, chain.base)
        ):
            return False
    return True
