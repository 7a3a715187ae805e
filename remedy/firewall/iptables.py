"""iptables, in nftables or in the kernel's old tables: a chain of remedy's own, called first of all in INPUT.

What iptables-save(8) prints is both what is read and what is written: a change is a text for
``iptables-restore --noflush``, which the kernel takes whole or not at all. The same format is what
netfilter-persistent (/etc/iptables/rules.v4) and iptables-services (/etc/sysconfig/iptables) load at boot; only
remedy's lines are put into those files, so that rules of Docker that are in force are never saved with them.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from remedy.firewall import spans
from remedy.firewall.iptables_rules import filter_lines, has_chain, read_rule, rules_of
from remedy.firewall.spans import Spans
from remedy.firewall.step import (
    COMMENT,
    Amendment,
    CommandStep,
    FileStep,
    Note,
    Opening,
    Path,
)
from remedy.plan.change import CommandAction, FindingKind, command
from remedy.plan.workbench import Command
from remedy.probe import HostState
from remedy.values import Unknown

OWN = "REMEDY-PEERS"
BASE = "INPUT"
JUMP = f"-A {BASE} -p tcp -m comment --comment {COMMENT} -j {OWN}"
SAVED = ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables")
"""What is loaded at boot: by netfilter-persistent on Debian, by iptables-services on the Red Hat family."""

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
        return "iptables" if self.variant == "nft" else "iptables (legacy tables)"

    def tool(self, suffix: str) -> str:
        """Return sh text for the tool that talks to these tables, whatever iptables itself is a link to."""
        first, second = f"iptables-{self.variant}{suffix}", f"iptables{suffix}"
        return f'"$(command -v {first} || command -v {second})"'


# --- writing -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def accepts(chain: str, opening: Opening, *, explicit: bool = True) -> tuple[str, ...]:
    """Return the rules that let an opening in, as iptables-save prints them.

    ``explicit`` false: as ufw writes them.
    """
    lines = []
    for network in spans.networks(opening.sources):
        source = str(network) if explicit else spans.address_text(network)
        for part in port_parts(opening.ports):
            single = "-m tcp --dport" if explicit else "--dport"
            several = "," in part or ":" in part
            match = f"-m multiport --dports {part}" if several else f"{single} {part}"
            where = f"-s {source} -p tcp {match}" if explicit else f"-p tcp {match} -s {source}"
            lines.append(f"-A {chain} {where} -j ACCEPT".replace(" -s 0.0.0.0/0", ""))
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


def opening_of(lines: Iterable[str]) -> Opening | None:
    """Return what rules of remedy's own let in; None when there are none, or they are not as it writes them."""
    rules = [read_rule(line, Path()) for line in lines]
    if not rules or any(r is None or r.action != "accept" or not r.certain for r in rules):
        return None
    known = [rule for rule in rules if rule is not None]
    sources = spans.merge(x for r in known for x in (r.sources or spans.ALL_ADDRESSES))
    ports = spans.merge(x for r in known for x in (r.ports or spans.ALL_PORTS))
    return Opening(sources, ports)


def restore_text(text: str, opening: Opening) -> str:
    """Return what turns a table's text, by ``iptables-restore --noflush``, into one that holds ``opening``."""
    rules = accepts(OWN, opening)
    jumps = sum(line == JUMP for line in rules_of(text, BASE))
    first = rules_of(text, BASE)[:1] == (JUMP,)
    lines = ["*filter"]
    if rules or has_chain(text, OWN):
        lines += [f":{OWN} - [0:0]", *rules]
    if not (rules and first and jumps == 1):
        lines += [f"-D {JUMP.removeprefix('-A ')}"] * jumps
        lines += [f"-I {BASE} 1 {JUMP.removeprefix(f'-A {BASE} ')}"] if rules else []
    if not rules:
        lines += [f"-X {OWN}"] if has_chain(text, OWN) else []
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
    lines = ["*filter"]
    for chain in reversed(watched):  # the own chain first: the other one calls it
        old, new = rules_of(before, chain), rules_of(after, chain)
        if chain == OWN and has_chain(before, OWN):
            lines += [f":{OWN} - [0:0]", *old]
        elif chain != OWN:
            same = SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks()
            old_places = {i for block in same for i in range(block.a, block.a + block.size)}
            new_places = {i for block in same for i in range(block.b, block.b + block.size)}
            lines += [
                f"-D {x.removeprefix('-A ')}" for i, x in enumerate(new) if i not in old_places
            ]
            for place, line in enumerate(old):
                if place not in new_places:
                    lines.append(f"-I {chain} {place + 1} {line.removeprefix(f'-A {chain} ')}")
    if OWN in watched and has_chain(after, OWN) and not has_chain(before, OWN):
        lines += [f":{OWN} - [0:0]", f"-X {OWN}"]
    return "\n".join([*lines, "COMMIT", ""])


def _fingerprint(text: str, watched: Sequence[str]) -> str:
    lines = [line for chain in watched for line in rules_of(text, chain)]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


# --- proposing ---------------------------------------------------------------------------------------------


def propose(host: HostState, table: IptablesTable, opening: Opening) -> Amendment:
    """Return how INPUT of a table comes to let exactly ``opening`` in, now and after a reboot."""
    current = rules_of(table.text, OWN)
    called = JUMP in rules_of(table.text, BASE)
    present = (opening_of(current) or Opening()) if called or has_chain(table.text, OWN) else None
    target = accepts(OWN, opening)
    settled = current == target and (
        called if target else not has_chain(table.text, OWN) and not called
    )
    steps, notes = _saved_steps(host, table, opening)
    if not settled:
        live = live_command(table, (BASE, OWN), restore_text(table.text, opening))
        steps.append(CommandStep(_title(table, opening), live))
    return Amendment(present, tuple(steps), tuple(notes), independent=True)


def _title(table: IptablesTable, opening: Opening) -> str:
    if not opening.sources:
        return f"take remedy's chain {OWN} out of {table.name}"
    return f"{table.name}: let the cluster's hosts in by a chain {OWN}, called first in {BASE}"


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
    if not is_saved and opening.sources:
        notes.append(
            Note(
                FindingKind.REPORT,
                f"what loads the rules of {table.name} at boot is not known, so remedy's are only in force",
                (f"none of {', '.join(SAVED)} is there",),
                fix="After a reboot run `remedy check` again, or add the rules to what loads the others.",
            )
        )
    return steps, notes


_OWN_LINES = re.compile(
    rb"(?m)^(?::"
    + OWN.encode()
    + rb" .*|-A "
    + OWN.encode()
    + rb" .*|-[AI] INPUT .*-j "
    + OWN.encode()
    + rb"[ \t]*)\r?\n"
)


def edit_saved(content: bytes, opening: Opening) -> bytes:
    """Return a file of saved rules in which remedy's lines hold ``opening``; every other byte stays.

    The chain is declared right after the table's name and filled right before the first rule, so that the
    call is the first rule of INPUT. A file without a filter table keeps nobody out and stays as it is.
    """
    expected = accepts(OWN, opening)
    text = content.decode("utf-8", "backslashreplace")
    # Also where the tool that saves the rules has put remedy's lines elsewhere since.
    if expected and rules_of(text, OWN) == expected and rules_of(text, BASE)[:1] == (JUMP,):
        return content
    rest = _OWN_LINES.sub(b"", content)
    table = re.search(rb"(?m)^\*filter[ \t]*\r?\n", rest)
    if not expected or table is None:
        return rest
    first = re.compile(rb"(?m)^(?:\[\d+:\d+\] )?-|^COMMIT").search(rest, table.end())
    if first is None:
        return rest
    head = f":{OWN} - [0:0]\n".encode()
    rules = "".join(f"{line}\n" for line in (JUMP, *expected)).encode()
    return (
        rest[: table.end()]
        + head
        + rest[table.end() : first.start()]
        + rules
        + rest[first.start() :]
    )
