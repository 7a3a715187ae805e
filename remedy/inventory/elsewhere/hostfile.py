"""Hostfiles: a host a line, of Open MPI, MPICH (Hydra, Intel MPI), DeepSpeed and batch systems.

=========================================  =================================================================
``gpu01 slots=8 max-slots=8``              Open MPI (prrte: src/util/hostfile), DeepSpeed (launcher/runner.py)
``ops@gpu01 port=2222``, ``username=ops``  Open MPI: how its ssh gets there
``^gpu07``, ``+n0``, ``+e``                Open MPI: a host to leave out; hosts by number, which have no name
``rank 0=gpu01 slot=0``                    Open MPI's rank file
``gpu01:8 user=ops binding=...``           MPICH (hydra: HYDU_process_mfile_token): 8 processes
``gpu[01-16] slots=8``                     ranges, as ClusterShell and Slurm write them
``[fe80::1%ib0]:22``                       an address with a port, as ssh(1) writes it in known_hosts
=========================================  =================================================================

Comments are ``#``, ``//`` and ``/* */``. How many processes a host takes is of no interest here.
"""

from __future__ import annotations

import re
from pathlib import Path

from remedy.errors import UsageError
from remedy.inventory.elsewhere.addresses import address_of
from remedy.inventory.elsewhere.listing import Collector, hosts_of, terms, text_shown
from remedy.inventory.elsewhere.source import shown_source
from remedy.text import BracketError, is_number, quoted

_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//)|#")
_BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)
_OPTION = re.compile(r"([A-Za-z][A-Za-z_-]*)\s*=\s*(\S*)")
_RANK = re.compile(r"rank\s+\d+\s*=\s*(\S+)", re.IGNORECASE)
# An address or a name in brackets, and the port behind it.
_BRACKETED = re.compile(r"\[([A-Za-z0-9.:%_-]*[A-Za-z.:][A-Za-z0-9.:%_-]*)\](?::([0-9]{1,5}))?")
# What ssh_config(5) has at the beginning of a line; none of it is a machine.
_SSH_CONFIG = re.compile(
    r"(host|hostname|match|user|port|identityfile|proxyjump|proxycommand|include)", re.IGNORECASE
)
# What an inventory of Ansible has and no hostfile: the variables of a group, its groups, those of a host.
_ANSIBLE = re.compile(
    r"^[ \t]*\[[^\]\n]{1,200}:(?:vars|children)\]|^[^#\n]*\sansible_[a-z_]+=", re.MULTILINE
)
_USER = ("user", "username", "user-name", "user_name")
# More than any host runs: whoever writes such a number behind a colon means a port.
_MOST_PROCESSES = 1023
# What says how many processes run there, and where: nothing that ssh needs.
_COUNTS = re.compile(
    r"(max[-_]?)?slots?([-_]max)?|cpus?|count|boards?|sockets?.*|cores?.*|binding", re.IGNORECASE
)


def read_hostfile(collector: Collector, text: str, path: Path | None) -> None:
    """Read a hostfile, a machine file, or a list of names.

    Raises:
        UsageError: it is an inventory of Ansible, whose groups and variables would be taken for hosts.
    """
    excluded: set[str] = set()
    entries: list[tuple[str, str, dict[str, str]]] = []
    _check_program(text, path)
    if "/*" in text:
        text = _BLOCK.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    for number, raw in enumerate(text.split("\n"), 1):
        comment = _COMMENT.search(raw)
        line = (raw[: comment.start()] if comment else raw).strip()
        if line.startswith("^"):
            excluded.update(_excluded(collector, f"line {number}", line))
        elif line:
            entries += _entries(collector, f"line {number}", line)
    named = {name for _, name, _ in entries}
    for name in sorted(excluded - named):
        collector.drop(f"^{text_shown(name)}", "excludes a host that no line names")
    for where, name, data in entries:
        if name in excluded:
            collector.drop(text_shown(name), "a line with ^ excludes it")
        else:
            collector.add(where, name, **data)


def _check_program(text: str, path: Path | None) -> None:
    """Refuse an inventory of Ansible: it has the same names a line, and other things that look like these."""
    if section := _ANSIBLE.search(text):
        line = text.count("\n", 0, section.start()) + 1
        shown = text_shown(section[0].strip())
        raise UsageError(
            f"{shown_source(path)}: an inventory of Ansible, and no hostfile: line {line} is {shown}",
            next_step=f"remedy init --from ansible {'-' if path is None else quoted(path)}",
        )


def _excluded(collector: Collector, where: str, line: str) -> list[str]:
    """Return the hosts that a line with ^ leaves out."""
    words = line[1:].split()
    if not words:
        collector.drop(f"{where}: ^", "excludes no host")
        return []
    try:
        place = words[0].rpartition("@")[2]
        return [place] if address_of(place) is not None else hosts_of(place)
    except BracketError as error:
        collector.drop_list(where, place, error)
        return []


def _entries(collector: Collector, where: str, line: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return the hosts of a line, with how they are reached."""
    rank = _RANK.match(line)
    word = rank[1] if rank else line.split(None, 1)[0]
    rest = "" if rank else line[len(word) :]
    shown = f"{where}: {text_shown(line)}"
    if reason := _no_host(word, rest):
        collector.drop(shown, reason)
        return []
    user, _, place = word.rpartition("@")
    data = {"ssh_user": user} if user else {}
    if (bracketed := _bracketed(place)) is not None:
        place, port = bracketed
        data |= {"ssh_port": port} if port else {}
    data |= _options(collector, where, rest)
    if _OPTION.sub("", rest).strip():
        collector.note(shown, "words behind the host that are no options; only the host is taken")
    try:
        names = [name for term in terms(place) for name in _hosts(collector, where, term)]
    except BracketError as error:
        collector.drop_list(where, place, error)
        return []
    if len({address_of(name) is None for name in names}) > 1:
        collector.note(shown, "names and addresses in one line, each of which becomes a host")
    return [(where, name, data) for name in names]


def _no_host(word: str, rest: str) -> str:
    """Return why a line names no host; "" where it does.

    Args:
        word: its first.
        rest: what is behind it.
    """
    if word[0] == "+":
        return "hosts by number, not by name"
    if word[0] == "[" and _bracketed(word) is None:
        return "a section of Ansible's inventory, or no name"
    if word[0] == "-" or "=" in word or rest.lstrip().startswith("="):
        return "an option, no host"
    if "://" in word:
        return "a URL, no host"
    if rest.strip() and _SSH_CONFIG.fullmatch(word) and "=" not in rest:
        return "a line of ssh_config, no host"
    return ""


def _options(collector: Collector, where: str, rest: str) -> dict[str, str]:
    """Return how the hosts of a line are reached, by the options behind them."""
    data = {}
    for key, value in _OPTION.findall(rest):
        if key.lower() in _USER:
            data["ssh_user"] = value.strip("\"'")
        elif key.lower() == "port":
            data["ssh_port"] = value
        elif not _COUNTS.fullmatch(key):
            collector.note(f"{where}: {text_shown(key)}", "an option that is not used")
    return data


def _bracketed(word: str) -> tuple[str, str] | None:
    """Return the address or name of ``[fe80::1]:22``, and its port; None for what is not written so."""
    match = _BRACKETED.fullmatch(word)
    if match is None or (match[2] is None and address_of(match[1]) is None):
        return None
    return match[1], match[2] or ""


def _hosts(collector: Collector, where: str, term: str) -> list[str]:
    """Return the names that a part of a word stands for, without the number of processes behind its colon."""
    if address_of(term) is not None:
        return [term]
    name, colon, count = term.partition(":")
    shown = f"{where}: :{text_shown(count)}"
    if ":" in count:
        reason = "neither an address nor a host with a number of processes"
        collector.drop(f"{where}: {text_shown(term)}", reason)
        return []
    if not name:
        collector.drop(f"{where}: {text_shown(term)}", "no host before the colon")
    elif colon and not count:
        collector.drop(
            f"{where}: {text_shown(term)}", "a key of YAML, or no name: nothing is behind its colon"
        )
        return []
    elif colon and not is_number(count):
        collector.note(shown, "no number of processes; only the host is taken")
    elif colon and int(count) > _MOST_PROCESSES:
        collector.note(shown, f"a number of processes; a port is port={count}")
    return hosts_of(name)
