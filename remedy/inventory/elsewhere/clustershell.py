"""ClusterShell's groups: groups.conf with what it names, or one file of groups, by ClusterShell itself.

A file of groups is YAML (``SOURCE: {GROUP: NODES}``) or has a line ``GROUP: NODES`` each. A groups.conf may run
programs of its own, as ``nodeset`` does on each call.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupSource, GroupSourceQueryFailed

from remedy.errors import UsageError
from remedy.inventory.elsewhere.listing import MOST_HOSTS, Collector, terms, text_shown
from remedy.inventory.elsewhere.program import printed
from remedy.text import BracketError, clipped, size, visible
from remedy.yaml_text import YamlError, parse_yaml

SECONDS = 60
"""How long the programs of a groups.conf may take."""

# A line of a group, and one that nodeset -LL prints, where a group may be empty.
_GROUP = re.compile(r"([A-Za-z0-9_.-]+):[ \t]*([^\r\n]*)")
_PRINTED = re.compile(r"@(?:([^:\s]+):)?(\S+) (\S*)")
_DEFAULT = "default"

Sources = Mapping[str, Mapping[str, str]]


class _Source(GroupSource):  # type: ignore[misc]
    """Groups of a source, in which a group that is not there is an error and not empty."""

    def resolv_map(self, group: str) -> str:
        """Return the nodes of a group."""
        if group not in self.groups:
            raise GroupSourceQueryFailed(f"there is no group {group}", self)
        return str(self.groups[group])


def read_clustershell(collector: Collector, text: str, path: Path | None) -> None:
    """Read groups, and take the hosts of all of them."""
    if any(line.strip().lower() == "[main]" for line in text.split("\n")):
        if path is None:
            raise UsageError(
                "standard input has no folder for what a groups.conf names",
                next_step="Give its path: remedy init --from clustershell /etc/clustershell/groups.conf",
            )
        sources = _sources_of_conf(collector, path)
    else:
        sources = _sources(collector, text)
    first, *others = [_Source(name, dict(groups)) for name, groups in sources.items()]
    resolver = GroupResolver(first)
    for source in others:
        resolver.add_source(source)
    times = Counter(group for groups in sources.values() for group in groups)
    for source_name, groups in sources.items():
        for group, nodes in groups.items():
            where = f"@{text_shown(f'{source_name}:{group}')}"
            try:
                _check_size(nodes)
                names = NodeSet(nodes, resolver=resolver)
                members = [collector.add(where, name) for name in names]
            except (NodeSetException, RecursionError, BracketError) as error:
                is_circle = "recursion" in str(error)
                reason = (
                    "it is a member of itself" if is_circle else clipped(visible(str(error)), 200)
                )
                collector.drop(where, reason)
                continue
            name = group
            if times[group] > 1:
                name = f"{source_name}_{group}"
                collector.note(
                    f"{where} ({text_shown(name)})", "several sources have a group of this name"
                )
            collector.add_to_group(name, [member for member in members if member])


def _sources(collector: Collector, text: str) -> Sources:
    """Return the groups of a file, by source."""
    lines = {
        number: line.rstrip()
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    flat = {number: match for number, line in lines.items() if (match := _GROUP.fullmatch(line))}
    groups = _joined(flat.values())
    if lines and len(flat) == len(lines):
        return {_DEFAULT: groups}
    try:
        document = parse_yaml(text)
    except YamlError as error:
        if any(match[2] for match in flat.values()):
            for number in lines.keys() - flat.keys():
                collector.drop(f"line {number}: {text_shown(lines[number])}", "no GROUP: NODES")
            return {_DEFAULT: groups}
        raise _unreadable(f"no YAML: {clipped(visible(str(error)), 200)}") from error
    if not isinstance(document, dict) or not all(isinstance(v, dict) for v in document.values()):
        raise _unreadable("expected SOURCE: {GROUP: NODES}, or lines GROUP: NODES")
    _check_names(document)
    return {
        str(source): {str(group): ",".join(_texts(nodes)) for group, nodes in groups.items()}
        for source, groups in document.items()
    } or {_DEFAULT: {}}


def _joined(lines: Iterable[re.Match[str]]) -> dict[str, str]:
    """Return the nodes of each group; all lines of a group are one, as for a program that prints them."""
    groups: dict[str, str] = {}
    for match in lines:
        nodes = "" if match[2].startswith("#") else match[2].split(" #")[0].strip()
        groups[match[1]] = ",".join(filter(None, (groups.get(match[1], ""), nodes)))
    return groups


def _check_names(document: Mapping[Any, Mapping[Any, Any]]) -> None:
    """Refuse names of which YAML makes other values, such as yes, 10 and null; so does ClusterShell."""
    for name in (n for source, groups in document.items() for n in (source, *groups)):
        if not isinstance(name, str):
            shown = text_shown(str(name))
            raise _unreadable(f"YAML reads a name as {shown}, which is no text; write it in quotes")


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of nested lists, which may hold one another many times."""
    waiting = [value]
    for _ in range(MOST_HOSTS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        elif item is not None:
            yield str(item)
    raise _unreadable(f"a group has more than {MOST_HOSTS} parts")


def _sources_of_conf(collector: Collector, path: Path) -> Sources:
    """Return all groups that ``nodeset`` knows by a groups.conf."""
    command = [
        sys.executable,
        "-m",
        "ClusterShell.CLI.Nodeset",
        f"--groupsconf={path.resolve()}",
        "-LL",
    ]
    result = printed(command, SECONDS)
    if result.code != 0:
        raise _unreadable(clipped(visible(result.err.strip()), 300))
    sources: dict[str, dict[str, str]] = {}
    for line in result.out.split("\n"):
        if match := _PRINTED.fullmatch(line):
            sources.setdefault(match[1] or _DEFAULT, {})[match[2]] = match[3]
        elif line.strip():
            collector.drop(text_shown(line), "no group as nodeset -LL prints one")
    for line in filter(None, result.err.split("\n")):
        collector.note("nodeset", clipped(visible(line), 200))
    return sources or {_DEFAULT: {}}


def _check_size(nodes: str) -> None:
    """Refuse more names than any cluster has, before they are made."""
    if sum(map(size, terms(nodes))) > MOST_HOSTS:
        raise BracketError(f"it stands for more than {MOST_HOSTS} names")


def _unreadable(reason: str) -> UsageError:
    return UsageError(
        f"these groups cannot be read: {reason}",
        next_step="Give groups.conf, or a file of groups; nodeset -LL shows what ClusterShell reads.",
    )
