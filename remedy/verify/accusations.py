"""Whom a verification names, folded: those with one reason together, each host once.

A fleet in which much is wrong has a culprit for each host, with ports and numbers of its own. What a reader
needs is which hosts have the same fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from remedy.sentences import NAMES, Sentence, as_one, host_names, in_groups
from remedy.text import clipped, counted, fold, folded, listed
from remedy.verify.verdict import ENDINGS, Culprit, LinkOutcome

LINKS = 4
"""Places of links that are named; more are counted."""
SUMMED_UP = 3
SUMMARY_WIDTH = 160
"""Characters of hosts, and of a reason, in a summary of several."""
# What hosts have alike that are named for their links, by ways that links end in.
_CONNECTIONS = {
    frozenset({"in"}): "connections from most other hosts fail",
    frozenset({"out"}): "connections to most other hosts fail",
    frozenset({"in", "out"}): "connections from and to most other hosts fail",
    frozenset({"link"}): "connections fail",
}
_NAMES = {
    "in": "most other hosts resolve their names wrongly",
    "out": "resolve the names of most other hosts wrongly",
    "link": "",
}
_PLURAL = {"resolves": "resolve", "works": "work", "is": "are", "has": "have", "does": "do"}
_VERB = re.compile(rf"(^|; )({'|'.join(_PLURAL)})\b")
_BY_WAY = {"in": "from others", "out": "to others"}
MOST = 6
"""Reasons; where there are more, hosts whose links end in different ways have one reason."""
Key = tuple[object, ...]
Link = tuple[str, str]


@dataclass
class Reason:
    """One reason, and the culprits that have it.

    Args:
        culprits: of hosts, or of links.
        names: of all hosts that a sentence may name.
        hosts: of which it is said here; of a culprit with several hosts these may be some of them.
    """

    names: frozenset[str]
    culprits: list[Culprit] = field(default_factory=list)
    hosts: dict[str, None] = field(default_factory=dict)

    def add(self, culprit: Culprit, hosts: Iterable[str]) -> None:
        """Take a culprit that has it."""
        if not self.culprits or self.culprits[-1] is not culprit:
            self.culprits.append(culprit)
        self.hosts |= dict.fromkeys(hosts)

    @property
    def text(self) -> str:
        """The reason, to be read after the hosts."""
        sentences = [self._sentence(culprit) for culprit in self.culprits]
        groups = in_groups(sentences)
        if len(groups) == 1:
            text = as_one(groups[0])
            several = len(self.culprits) > 1 and not self.culprits[0].is_link
            return _of_several(text) if several else text
        every = [ending for culprit in self.culprits for ending in culprit.endings]
        ways = {ending.way for ending in every if ending.outcome != "no name"}
        named = {ending.way for ending in every if ending.outcome == "no name"}
        ends = ", ".join(self._by_ending) if ways or "link" in named else ""
        connections = f"{_CONNECTIONS[frozenset(ways)]}: {ends}" if ways else ends
        return "; ".join(filter(None, [connections, *(_NAMES[way] for way in sorted(named))]))

    @property
    def _ends_differ(self) -> bool:
        """Whether links of its hosts end in ways that others' do not."""
        return len({_endings_of(culprit) for culprit in self.culprits}) > 1

    @property
    def _by_ending(self) -> Iterator[str]:
        """Yield how links end, with the hosts of each way where these are not all."""
        every = [(culprit, ending) for culprit in self.culprits for ending in culprit.endings]
        shown = [pair for pair in every if pair[1].outcome != "no name" or pair[1].way == "link"]
        several = len({ending.way for _, ending in shown}) > 1
        whose: dict[str, list[Culprit]] = {}
        for culprit, ending in shown:
            way = f"{_BY_WAY[ending.way]}: " if several and self._ends_differ else ""
            whose.setdefault(f"{way}{ENDINGS[ending.outcome]}", []).append(culprit)
        for words, culprits in whose.items():
            if not self._ends_differ:
                yield words
            elif culprits[0].is_link:
                yield f"{links_named(culprits)} {words}"
            else:
                hosts = (h for culprit in culprits for h in culprit.hosts if h in self.hosts)
                yield f"{folded(hosts, NAMES // 2)} {words}"

    def _sentence(self, culprit: Culprit) -> Sentence:
        return Sentence.of(culprit.hosts[0] if culprit.hosts else "", culprit.why, self.names)


@dataclass
class Accusation:
    """Hosts with one reason, or links; each host is in one accusation.

    Args:
        reason: which it is.
        links: that are named, in place of hosts.
        also: further reasons of some of these hosts.
    """

    reason: Reason
    links: dict[str, Culprit] = field(default_factory=dict)
    also: dict[Key, Reason] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its hosts, or those at the ends of its links."""
        return tuple(self.reason.hosts)

    @property
    def culprits(self) -> list[Culprit]:
        """All culprits of it."""
        every = [self.reason, *self.also.values()]
        return [culprit for reason in every for culprit in reason.culprits]

    @property
    def sentence(self) -> str:
        """The hosts and the reason."""
        first = self.reason.culprits[0]
        if len(self.reason.culprits) == 1 and first.name and first.reason.startswith(self.name):
            return first.reason
        return f"{self.name}: {self.reason.text}" if self.name else self.reason.text

    @property
    def name(self) -> str:
        """Who is named: hosts folded, or links."""
        return links_named(self.links.values()) if self.links else folded(self.hosts, NAMES)


def accusations(culprits: Iterable[Culprit], names: Iterable[str] = ()) -> list[Accusation]:
    """Return culprits by reason; of a host that is named already, further reasons stand with the first.

    Args:
        culprits: of a verdict, the gravest first.
        names: of the hosts that took part.
    """
    every = tuple(culprits)
    known = host_names((*names, *(host for culprit in every for host in culprit.hosts)))
    by_outcome = _accused(every, known, _key)
    return by_outcome if len(by_outcome) <= MOST else _accused(every, known, _coarse_key)


def _accused(
    culprits: Sequence[Culprit],
    known: frozenset[str],
    key_of: Callable[[Culprit, frozenset[str]], Key],
) -> list[Accusation]:
    """Return culprits that have one key together, each host once."""
    by_key: dict[Key, Accusation] = {}
    owner: dict[str, Accusation] = {}
    for culprit in culprits:
        key = key_of(culprit, known)
        owners = {id(owner[host]): owner[host] for host in culprit.hosts if host in owner}
        fresh = [host for host in culprit.hosts if host not in owner]
        if culprit.is_link or fresh or not culprit.hosts:
            accusation = by_key.setdefault(key, Accusation(Reason(known)))
            accusation.reason.add(culprit, culprit.hosts if culprit.is_link else fresh)
            if culprit.is_link:
                accusation.links[culprit.name] = culprit
                continue
            owner |= dict.fromkeys(fresh, accusation)
        for accusation in owners.values():
            own = [host for host in culprit.hosts if owner[host] is accusation]
            if accusation is by_key.get(key):
                accusation.reason.add(culprit, own)
            else:
                accusation.also.setdefault(key, Reason(known)).add(culprit, own)
    return list(by_key.values())


def _of_several(text: str) -> str:
    """Return what is said of one host as it is said of several."""
    text = _VERB.sub(lambda match: f"{match[1]}{_PLURAL[match[2]]}", text)
    return re.sub(r"\bits\b", "their", text.replace("its name ", "their names ")).replace(
        " it was ", " they were "
    )


def _coarse_key(culprit: Culprit, names: frozenset[str]) -> Key:
    """Return what culprits have alike of which connections the same way fail, however these end."""
    if culprit.endings:
        return tuple(sorted({(end.way, end.outcome == "no name") for end in culprit.endings}))
    return _key(culprit, names)


def _key(culprit: Culprit, names: frozenset[str]) -> Key:
    """Return what culprits have alike that are named for one reason."""
    if culprit.endings:
        return _endings_of(culprit)
    host = culprit.hosts[0] if culprit.hosts else ""
    return (culprit.is_link, Sentence.of(host, culprit.why, names).shape)


def _endings_of(culprit: Culprit) -> tuple[tuple[str, LinkOutcome], ...]:
    """Return in which ways its links end."""
    return tuple(sorted({(end.way, end.outcome) for end in culprit.endings}))


def links_named(links: Iterable[Culprit]) -> str:
    """Return links as folded hosts: among which, or from whom to whom; those both ways by name."""
    one_way: list[Link] = []
    every: list[str] = []
    for link in links:
        if " <-> " in link.name:
            every.append(link.name)
        else:
            one_way.append((link.hosts[0], link.hosts[1]))
    return listed([*places(one_way), *every], LINKS)


def places(links: Iterable[Link]) -> Iterator[str]:
    """Yield where links are: among hosts of which each has one to each, then from sources to targets."""
    sources: dict[str, set[str]] = {}
    for source, target in links:
        sources.setdefault(target, set()).add(source)
    meshes: dict[frozenset[str], list[str]] = {}
    for target, names in sources.items():
        meshes.setdefault(frozenset({*names, target}), []).append(target)
    for hosts, targets in meshes.items():
        if len(hosts) > 2 and hosts == set(targets):
            yield f"among {folded(sorted(hosts), NAMES)}"
            for target in targets:
                del sources[target]
    rest: dict[frozenset[str], list[str]] = {}
    for target, names in sources.items():
        rest.setdefault(frozenset(names), []).append(target)
    by_source: dict[str, list[str]] = {}
    for hosts, targets in rest.items():
        if len(hosts) == 1:
            by_source.setdefault(min(hosts), []).extend(targets)
        else:
            yield f"{folded(sorted(hosts), NAMES)} -> {folded(targets, NAMES)}"
    yield from (f"{source} -> {folded(targets, NAMES)}" for source, targets in by_source.items())


def names_of(culprits: Iterable[Culprit]) -> str:
    """Return whom culprits name, folded: hosts, then links; a name of something else as it is."""
    every = tuple(culprits)
    hosts = dict.fromkeys(h for culprit in every if not culprit.is_link for h in culprit.hosts)
    links = [culprit for culprit in every if culprit.is_link]
    parts = (folded(hosts, NAMES) if hosts else "", links_named(links))
    return ", ".join(filter(None, parts)) or clipped(fold(c.name for c in every), NAMES)


def summary(culprits: Iterable[Culprit]) -> str:
    """Sum up whom culprits name and why, in a sentence: the first three reasons."""
    groups = accusations(culprits)
    if len(groups) == 1 and len(groups[0].culprits) == 1:
        return groups[0].culprits[0].reason
    reasons = [
        sentence if len(sentence) <= SUMMARY_WIDTH else f"{sentence[:SUMMARY_WIDTH]}..."
        for sentence in (group.sentence for group in groups)
    ]
    more = f"; and {counted(len(reasons) - SUMMED_UP, 'more reason')}" * (len(reasons) > SUMMED_UP)
    return "; ".join(reasons[:SUMMED_UP]) + more
