"""Nodes of Slurm: slurm.conf, and what ``scontrol show nodes`` and ``sinfo`` print.

slurm.conf is read as Slurm does (src/common/parse_config.c, read_config.c): keys in any case, blanks around
``=``, values in quotes, a line that a backslash continues, a comment from ``#`` on even within quotes, Include
relative to the file that has it with ``%c`` for the cluster's name. Its node names need not be host names:
NodeHostname is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from remedy.files import read_regular
from remedy.inventory.elsewhere.listing import LARGEST, Collector, hosts_of, text_shown
from remedy.text import BracketError

# More files than any site has; Slurm itself ends when it has no more to open.
_MOST_FILES = 500
_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
# `scontrol show nodes` begins each node so; a slurm.conf has no CPUAlloc.
_SHOWN_NODE = re.compile(r"^NodeName=\S+ .*?(?:CoresPerSocket=\d+ +\n? *CPUAlloc=)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|\s)(NodeName|NodeAddr|NodeHostName|State)=(\S+)")
# Columns of sinfo with names of hosts: of %N (and %n), and the address of %o.
_NAMES, _ADDRESS, _STATE = ("NODELIST", "HOSTNAMES"), "NODE_ADDR", "STATE"
_ABSENT = re.compile(r"FUTURE|POWERED_DOWN|FUTR")


def read_slurm(collector: Collector, text: str, path: Path | None) -> None:
    """Read slurm.conf, or what scontrol or sinfo printed; whichever it is shows in the text."""
    lines = text.split("\n")
    header = next((n for n, line in enumerate(lines[:5]) if _is_header(line.split())), None)
    if _SHOWN_NODE.search(text):
        _read_shown(collector, text)
    elif header is not None:
        _read_table(collector, lines[header].split(), lines[header + 1 :], header + 2)
    else:
        _Conf(collector).read(text, path, ())


class _Conf:
    """A slurm.conf and what it includes."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._cluster = ""
        self._default_state = ""
        self._files = 0

    def read(self, text: str, path: Path | None, parents: tuple[Path, ...]) -> None:
        file = f"{path.name} " if path is not None and parents else ""
        lines = list(_lines(text))
        is_list = not parents and not any(_PAIR.match(line) for _, line in lines)
        for number, line in lines:
            where = f"{file}line {number}"
            include = _INCLUDE.match(line)
            pair = _PAIR.match(line)
            if include is not None:
                self._include(where, include[1], path, parents)
            elif pair is None and line.strip():
                self._bare(where, line.strip(), is_list=is_list)
            elif pair is None:
                continue
            elif pair[1].lower() == "clustername":
                self._cluster = _value(pair)
            elif pair[1].lower() == "nodename":
                self._node(where, line)

    def _include(self, where: str, name: str, path: Path | None, parents: tuple[Path, ...]) -> None:
        shown = f"{where}: {text_shown(name)}"
        if "%c" in name and not self._cluster:
            self._collector.drop(shown, "ClusterName does not come before this Include")
            return
        target = Path(name.replace("%c", self._cluster))
        if path is None and not target.is_absolute():
            self._collector.drop(
                shown, "standard input has no folder for this Include; give the path of slurm.conf"
            )
            return
        target = (path.parent if path is not None else Path()) / target
        chain = (*parents, *([path.resolve()] if path is not None else []))
        self._files += 1
        if target.resolve() in chain or self._files > _MOST_FILES:
            reason = (
                "the Include is of the file that it is in, or of one above"
                if target.resolve() in chain
                else f"more than {_MOST_FILES} files are included"
            )
            self._collector.drop(shown, reason)
            return
        try:
            content = read_regular(target, LARGEST)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no path"
            self._collector.drop(shown, f"this Include cannot be read: {reason}")
            return
        self.read(content.decode("utf-8-sig", errors="replace"), target, chain)

    def _bare(self, where: str, line: str, *, is_list: bool) -> None:
        """Read a line that is no setting: in a text without any it is a list, as `sinfo -h -o %N` prints it."""
        if is_list:
            _add_all(self._collector, where, line, {})
        else:
            self._collector.drop(f"{where}: {text_shown(line)}", "is no setting")

    def _node(self, where: str, line: str) -> None:
        values: dict[str, str] = {}
        at = 0
        while (pair := _PAIR.match(line, at)) is not None:
            values.setdefault(pair[1].lower(), _value(pair))
            at = pair.end()
        names = values["nodename"]
        if names.upper() == "DEFAULT":
            self._default_state = values.get("state", self._default_state)
            return
        if names.upper() == "ALL":
            self._collector.drop(where, "NodeName=ALL is reserved")
            return
        state = values.setdefault("state", self._default_state)
        if state.upper() == "CLOUD":
            reason = (
                "State=CLOUD, there on demand only; scontrol show nodes -o shows which are there"
            )
            self._collector.note(text_shown(names), reason)
        _add_all(self._collector, where, names, values)


def _add_all(collector: Collector, where: str, names: str, values: Mapping[str, str]) -> None:
    """Take the nodes of one line.

    Args:
        values: of its keys in lower case.
    """
    if _ABSENT.search(values.get("state", "").upper()):
        collector.drop(text_shown(names), f"State={text_shown(values['state'])}, not there yet")
        return
    try:
        nodes = hosts_of(names)
        hosts = hosts_of(values.get("nodehostname", "")) or nodes
    except BracketError as error:
        collector.drop(f"{where}: {error}", "cannot be read")
        return
    try:
        addresses = _addresses(values.get("nodeaddr", ""))
    except BracketError as error:
        collector.note(f"{where}: {error}", "not a NodeAddr, so it is not used")
        addresses = []
    if len(hosts) != len(nodes):
        collector.note(
            f"{where}: {text_shown(names)}",
            "several nodes on one host, which is taken once",
        )
        nodes = hosts
    if addresses and len(addresses) != len(nodes):
        collector.note(
            f"{where}: {text_shown(names)}",
            "not as many NodeAddr as nodes, so they are not used",
        )
        addresses = []
    for number, host in enumerate(hosts):
        collector.add(where, host, ssh_hostname=addresses[number] if addresses else None)


def _addresses(text: str) -> list[str]:
    """Return addresses of a list; those of IPv6 have colons, and are in no ranges."""
    return text.split(",") if ":" in text else hosts_of(text)


def _read_shown(collector: Collector, text: str) -> None:
    """Read `scontrol show nodes`, a node a line (-o) or a paragraph."""
    number = 1
    for paragraph in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        # What an administrator wrote (Reason, Comment, Extra) comes behind these: the first of each counts.
        values: dict[str, str] = {}
        for key, value in _FIELD.findall(paragraph):
            values.setdefault(key.lower(), value)
        if "nodename" in values:
            _add_all(collector, f"line {number}", values["nodename"], values)
        number += paragraph.count("\n")


def _is_header(words: list[str]) -> bool:
    return sum(word in words for word in _NAMES) == 1 and all(w.upper() == w for w in words)


def _read_table(collector: Collector, header: list[str], lines: list[str], first: int) -> None:
    """Read what sinfo prints below its header; of its columns only the reason may hold blanks."""
    for number, line in enumerate(lines, first):
        words = line.split()
        if _is_header(words):
            header = words  # of the next cluster (sinfo -M), or printed again (sinfo -i)
            continue
        # A partition without nodes has no word there. A line that begins with one may lack a reason at its end.
        if len(words) < len(header) and (header[0] not in _NAMES or not line[:1].strip()):
            continue

        def cell(*names: str, words: list[str] = words, header: list[str] = header) -> str:
            column = next((n for n, word in enumerate(header) if word in names), None)
            if column is None or column >= len(words):
                return ""
            # A reason has blanks: what is behind it is counted from the end.
            return words[column - len(header) if "REASON" in header[:column] else column]

        state = cell(_STATE)
        values = {
            "nodeaddr": cell(_ADDRESS),
            "state": "POWERED_DOWN" if state[-1:] == "~" else state,
        }
        _add_all(collector, f"line {number}", cell(*_NAMES), values)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with the number of its first, without comments, continued ones as one."""
    parts: list[str] = []
    start = 1
    for number, raw in enumerate(text.split("\n"), 1):
        line = _without_comment(raw)
        stripped = line.rstrip()
        is_continued = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        parts.append(stripped[:-1] if is_continued else line)
        if not is_continued:
            yield start, _without_escapes("".join(parts))
            parts, start = [], number + 1
    if parts:
        yield start, _without_escapes("".join(parts))


def _without_comment(line: str) -> str:
    at = line.find("#")
    while at != -1:
        before = at
        while before > 0 and line[before - 1] == "\\":
            before -= 1
        if (at - before) % 2 == 0:
            return line[:at]
        at = line.find("#", at + 1)
    return line


def _without_escapes(line: str) -> str:
    return re.sub(r"\\(.?)", r"\1", line) if "\\" in line else line


def _value(pair: re.Match[str]) -> str:
    return pair[2] if pair[2] is not None else pair[3]
