"""A slurm.conf with what it includes, read as Slurm does (src/common/parse_config.c, read_config.c).

Keys in any case, blanks around ``=``, values in quotes, a line that a backslash continues, a comment from ``#``
on even within quotes, Include relative to the folder of slurm.conf with ``%c`` for the cluster's name. Its node
names need not be host names: NodeHostname is. What Slurm refuses, such as an unknown key, is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from remedy.files import read_regular
from remedy.inventory.elsewhere.listing import LARGEST, Collector, text_shown
from remedy.inventory.elsewhere.slurm_keys import FOLLOWING, OF_NODES, SETTINGS
from remedy.inventory.elsewhere.slurm_nodes import add_nodes

# More files than any site has; Slurm itself ends when it has no more to open.
_MOST_FILES = 500
# Of a text with more unknown keys, which is no slurm.conf, no nearest ones are looked for.
_MOST_UNKNOWN = 40
_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_OF_NODES = {key.lower() for key in OF_NODES}
# A node's own: in NodeName=DEFAULT Slurm refuses them.
_NO_DEFAULT = ("nodehostname", "nodeaddr", "bcastaddr")


class Conf:
    """A slurm.conf and what it includes.

    Args:
        path: of the slurm.conf; None for standard input.
    """

    def __init__(self, collector: Collector, path: Path | None) -> None:
        self._collector = collector
        self._top = path
        self._cluster = ""
        self._default_state = ""
        self._files = 0
        self._unknown = 0
        self._nodes: set[str] = set()

    def read(self, text: str, files: tuple[Path, ...] = ()) -> None:
        """Take the nodes of a text.

        Args:
            files: that it is in: of those that include one another the last; none for the slurm.conf itself.
        """
        file = f"{files[-1].name} " if files else ""
        lines = list(_lines(text))
        is_list = not files and not any(_PAIR.match(line) for _, line in lines)
        for number, line in lines:
            where = f"{file}line {number}"
            include = _INCLUDE.match(line)
            if include is not None:
                self._include(where, include[1], files)
                self._note_rest(where, line[include.end() :])
            elif _PAIR.match(line) is not None:
                self._setting(where, line)
            elif line.strip():
                self._bare(where, line.strip(), is_list=is_list)

    def _include(self, where: str, name: str, files: tuple[Path, ...]) -> None:
        shown = f"{where}: {text_shown(name)}"
        if "%c" in name and not self._cluster:
            self._collector.drop(shown, "ClusterName does not come before this Include")
            return
        target = Path(name.replace("%c", self._cluster.lower()))
        if self._top is None and not target.is_absolute():
            self._collector.drop(
                shown, "standard input has no folder for this Include; give the path of slurm.conf"
            )
            return
        if "*" in name:
            self._collector.drop(shown, "Slurm reads no * in an Include")
            return
        above = [*files, *([self._top] if self._top is not None else [])]
        target = (self._top.parent if self._top is not None else Path()) / target
        self._files += 1
        is_circle = target.resolve() in [file.resolve() for file in above]
        if is_circle or self._files > _MOST_FILES:
            reason = (
                "the Include is of the file that it is in, or of one above"
                if is_circle
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
        self.read(content.decode("utf-8-sig", errors="replace"), (*files, target))

    def _bare(self, where: str, line: str, *, is_list: bool) -> None:
        """Read a line that is no setting: in a text without any it is a list, as `sinfo -h -o %N` prints it."""
        if is_list:
            add_nodes(self._collector, where, line, {})
        else:
            self._collector.drop(f"{where}: {text_shown(line)}", "is no setting")

    def _setting(self, where: str, line: str) -> None:
        """Read a line that begins with a key."""
        pairs, rest = _pairs(line)
        (key, first), *more = pairs
        if key.lower() not in _LOWER:
            hint = (
                "belongs behind NodeName; a line goes on where it ends with a backslash"
                if key.lower() in _OF_NODES
                else f"no key of slurm.conf{self._meant(key, SETTINGS)}"
            )
            self._collector.drop(f"{where}: {text_shown(line.strip())}", hint)
            return
        following = FOLLOWING.get(key.lower(), frozenset[str]())
        known = {name.lower() for name in following}
        for name, value in more:
            if name.lower() not in known:
                self._collector.note(
                    f"{where}: {text_shown(f'{name}={value}')}",
                    f"not used, no key behind {key}{self._meant(name, following)}",
                )
        self._note_rest(where, rest)
        if key.lower() == "clustername":
            self._cluster = first
        elif key.lower() == "nodename":
            self._node(where, first, more)
        elif key.lower() == "frontendname":
            self._collector.drop(f"{where}: {text_shown(first)}", "a front end, and no node")

    def _node(self, where: str, names: str, more: list[tuple[str, str]]) -> None:
        values: dict[str, str] = {}
        for key, value in more:
            if values.get(key.lower(), value) != value:
                self._collector.note(
                    f"{where}: {key}", "there twice, of which Slurm takes the last"
                )
            values[key.lower()] = value
        if names.upper() == "DEFAULT":
            self._default_state = values.get("state", self._default_state)
            for key, value in more:
                if key.lower() in _NO_DEFAULT:
                    self._collector.note(
                        f"{where}: {key}={text_shown(value)}",
                        "not used, Slurm refuses it for NodeName=DEFAULT",
                    )
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
        for node in add_nodes(self._collector, where, names, values):
            if node in self._nodes:
                self._collector.note(text_shown(node), "there twice, which Slurm refuses")
            self._nodes.add(node)

    def _note_rest(self, where: str, rest: str) -> None:
        """Note what is behind the settings of a line and is none."""
        if rest.strip():
            self._collector.note(
                f"{where}: {text_shown(rest.strip())}", "not used, no setting of the form KEY=VALUE"
            )

    def _meant(self, key: str, known: frozenset[str]) -> str:
        """Return a question for the nearest known key; "" where there is none."""
        self._unknown += 1
        if self._unknown > _MOST_UNKNOWN:
            return ""
        by_lower = {name.lower(): name for name in known}
        near = get_close_matches(key.lower()[:_LONGEST], by_lower, n=1)
        return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


_LOWER = {key.lower() for key in SETTINGS}
_LONGEST = max(map(len, SETTINGS)) * 2


def _pairs(line: str) -> tuple[list[tuple[str, str]], str]:
    """Return the settings at the beginning of a line, and what is behind them."""
    pairs = []
    at = 0
    while (pair := _PAIR.match(line, at)) is not None:
        pairs.append((pair[1], pair[2] if pair[2] is not None else pair[3]))
        at = pair.end()
    return pairs, line[at:]


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
