"""The culprits of a verification as a few lines: those with one reason together, each host once.

A fleet in which much is wrong has a culprit for each host, with ports and an order of words of its own. What a
reader needs is which hosts have the same fault, what was seen of it, and one command for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from remedy.report.folding import blurred
from remedy.text import clipped, counted, fold, limited
from remedy.verify.verdict import Culprit, DeadLink

LINES = 16
"""For all culprits together, their hosts and what was seen of them; a line more for those that have no room."""
FACTS = 6
GROUPS = 6
WIDTH = 200
LINKS = 4
TRIED = "tried: "
"""Before an attempt on a link, which names both of its ends."""
# Ports that a system gave, and times: no two hosts have the same.
_PORTS = re.compile(r" on ports? [\d, .]*\d(, \.\.\.)?")
_NUMBER = re.compile(r"\b\d+(\.\d+)? s\b")
_CONNECTIONS = re.compile(
    r"((?:connections from|its connections to) .*? hosts?) ((?:are|get|find|carry|were) .*)"
)
_LIMIT = re.compile(r"--limit \S+")


@dataclass
class Reason:
    """A reason without the name of the host and the ports, which differ from host to host.

    Args:
        head: what it is about.
        ends: how connections end, of all hosts together.
        hosts: of which it holds.
    """

    head: str
    ends: list[str]
    hosts: list[str] = field(default_factory=list)

    def add(self, reason: Reason) -> None:
        """Take the same reason of other hosts."""
        self.ends += [end for end in reason.ends if end not in self.ends]
        self.hosts += [host for host in reason.hosts if host not in self.hosts]

    @property
    def text(self) -> str:
        """The whole sentence."""
        head = self.head if len(self.hosts) == 1 else re.sub(r"^its\b", "their", self.head)
        return " ".join(filter(None, [head, " and ".join(self.ends)]))


def reason_of(culprit: Culprit) -> Reason:
    """Return the reason of a culprit."""
    text = _PORTS.sub("", culprit.why)
    match = _CONNECTIONS.fullmatch(text)
    if match is None:
        return Reason(text, [], list(culprit.hosts))
    return Reason(match[1], match[2].split(" and "), list(culprit.hosts))


@dataclass
class CulpritGroup:
    """Culprits with one reason.

    Args:
        culprits: the first is the example.
        reason: which it is.
        also: further reasons for which hosts of it are named.
    """

    culprits: list[Culprit]
    reason: Reason
    also: dict[str, Reason] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its hosts, each once."""
        return tuple(dict.fromkeys(host for culprit in self.culprits for host in culprit.hosts))

    @property
    def name(self) -> str:
        """Who is named: hosts folded, or links."""
        links = [culprit.name for culprit in self.culprits if "->" in culprit.name]
        if links:
            more = f" and {len(links) - LINKS} more" if len(links) > LINKS else ""
            return ", ".join(links[:LINKS]) + more
        return fold(self.hosts) or self.culprits[0].name


def accusations(culprits: Iterable[Culprit]) -> list[CulpritGroup]:
    """Return culprits by reason; a host that is named already is only named as one of that reason as well."""
    groups: dict[tuple[str, bool], CulpritGroup] = {}
    owner: dict[str, CulpritGroup] = {}
    for culprit in culprits:
        reason, is_link = reason_of(culprit), "->" in culprit.name
        key = (_NUMBER.sub("", reason.head), is_link)
        known = [owner[host] for host in culprit.hosts if host in owner]
        if known and len(known) == len(culprit.hosts) and not is_link:
            group = known[0]
            group.culprits.append(culprit)
            group.also.setdefault(key[0], reason).add(reason)
            continue
        group = groups.setdefault(key, CulpritGroup([], reason))
        group.culprits.append(culprit)
        group.reason.add(reason)
        owner.update((host, group) for host in culprit.hosts if host not in owner)
    return list(groups.values())


def culprit_lines(culprits: Sequence[Culprit], covering: str = "") -> Iterator[Text]:
    """Yield the culprits, what was seen of them, and what to do.

    Args:
        culprits: of a verdict, the gravest first.
        covering: a command that is shown elsewhere and does for all hosts what these steps would; "" for none.
    """
    groups = accusations(once(culprits))
    for group in groups[:GROUPS]:
        yield from _accusation(group, _facts_shown(groups))
    if groups[GROUPS:]:
        rest = fold(dict.fromkeys(host for group in groups[GROUPS:] for host in group.hosts))
        reasons = counted(len(groups) - GROUPS, "more reason")
        yield Text(f"  {rest}: {reasons} (--json has each)", style="dim")
    steps: dict[str, list[str]] = {}
    for culprit in filter(_is_for_all, culprits):
        steps.setdefault(_LIMIT.sub("", culprit.next_step), []).extend(culprit.hosts)
    for step, hosts in steps.items():
        command = f"{step.rstrip()} --limit {limited(hosts)}"
        if not covering.endswith(f"--limit {limited(hosts)}"):
            yield Text(f"      {command}", style="cyan")


def texts_shown(culprits: Sequence[Culprit]) -> frozenset[str]:
    """Return what ``culprit_lines`` shows of culprits, each with its host before it where it is of one."""
    groups = accusations(once(culprits))
    most = _facts_shown(groups)
    texts = {group.culprits[0].reason for group in groups[:GROUPS] if len(group.culprits) == 1}
    texts |= {group.reason.text for group in groups[:GROUPS]}
    for group in groups[:GROUPS]:
        for text, hosts in [*_facts(group).items()][:most]:
            texts |= {text.removeprefix(TRIED), *(f"{host}: {text}" for host in hosts)}
    return frozenset(texts)


def _facts_shown(groups: Sequence[CulpritGroup]) -> int:
    """Return how many facts of each group are shown."""
    number = max(1, len(groups[:GROUPS]))
    return max(1, min(FACTS, (LINES - 2 * number) // number))


def _accusation(group: CulpritGroup, most: int) -> Iterator[Text]:
    first = group.culprits[0]
    text = first.why if len(group.culprits) == 1 else group.reason.text
    line = Text(f"  {group.name}: " if group.name else "  ", style="bold red")
    yield line.append(clipped(text, WIDTH), style="default")
    for reason in group.also.values():
        whose = "" if set(reason.hosts) == set(group.hosts) else f"{fold(reason.hosts)}: "
        yield Text(f"      also: {whose}{clipped(reason.text, WIDTH)}", style="default")
    facts = _facts(group)
    more = f"  (and {len(facts) - most} more: --json)" if len(facts) > most else ""
    for number, (text, hosts) in enumerate(list(facts.items())[:most], 1):
        whose = "" if set(hosts) == set(group.hosts) else f"{fold(hosts)}: "
        end = more if number == most else ""
        yield Text(f"      {whose}{clipped(text, WIDTH)}{end}", style="dim")
    if first.next_step and not _is_for_all(first):
        yield Text(f"      {first.next_step}", style="cyan")


def _is_for_all(culprit: Culprit) -> bool:
    """Whether the next step is a command that can be typed once for the hosts of several culprits."""
    return bool(_LIMIT.search(culprit.next_step)) and "--explain" not in culprit.next_step


def once(culprits: Iterable[Culprit]) -> tuple[Culprit, ...]:
    """Return culprits with each fact once: that of a host with the host, and not with its links as well."""
    every = tuple(culprits)
    known: set[tuple[str, str]] = set()
    kept: dict[int, tuple[str, ...]] = {}
    for place, culprit in sorted(enumerate(every), key=lambda item: len(item[1].hosts) > 1):
        facts = {fact: _identity(fact, culprit) for fact in culprit.facts}
        kept[place] = tuple(fact for fact, seen in facts.items() if seen not in known)
        known.update(facts.values())
    return tuple(
        culprit.model_copy(update={"facts": kept[place]}) for place, culprit in enumerate(every)
    )


def _identity(fact: str, culprit: Culprit) -> tuple[str, str]:
    """Return what is equal for one fact, whichever culprit has it: an attempt names its hosts itself."""
    return ("", fact) if fact.startswith(TRIED) else _of_host(fact, culprit)


def _of_host(fact: str, culprit: Culprit) -> tuple[str, str]:
    """Return of which host a fact is, and what; "" where it is of several."""
    for host in culprit.hosts:
        if fact.startswith(f"{host}: "):
            return host, fact[len(host) + 2 :]
    return (culprit.hosts[0] if len(culprit.hosts) == 1 else "", fact)


def _facts(group: CulpritGroup) -> Mapping[str, list[str]]:
    """Return what was seen of hosts, with the hosts; what was seen of few of them first, single links last.

    What was seen of several hosts together is not known to be of each; what a plan would do stands in the plan.
    """
    hosts: dict[str, list[str]] = {}
    examples: dict[str, str] = {}
    for culprit in sorted(group.culprits, key=lambda culprit: len(culprit.hosts)):
        facts = [_of_host(fact, culprit) for fact in culprit.facts]
        findings = {(host, text.partition(" (")[0]) for host, text in facts}
        for host, text in facts:
            if any(of == host and text.endswith(f": {finding}") for of, finding in findings):
                continue
            key = blurred(text, (host,)) if host else text
            if not host and text in hosts:
                continue
            names = hosts.setdefault(examples.setdefault(key, text), [])
            names += [name for name in ([host] if host else culprit.hosts) if name not in names]
    order = sorted(hosts, key=lambda fact: (fact.startswith(TRIED), len(hosts[fact])))
    return {fact: hosts[fact] for fact in order}


def link_lines(links: Sequence[DeadLink]) -> Iterator[Text]:
    """Yield the dead links, those with one outcome together: among which hosts, or from whom to whom."""
    places = [place for outcome in _ends(links) for place in _places(links, outcome)]
    for place, outcome in places[:LINKS]:
        yield Text(f"  {place}: ").append(outcome, style="red")
    if len(places) > LINKS:
        more = counted(len(places) - LINKS, "more group")
        yield Text(f"  and {more} of dead links (--json)", style="dim")


def _ends(links: Sequence[DeadLink]) -> list[str]:
    return list(dict.fromkeys(link.outcome for link in links))


def _places(links: Sequence[DeadLink], outcome: str) -> Iterator[tuple[str, str]]:
    """Yield where links end in one way: hosts that all fail to reach each other, then sources with targets."""
    sources: dict[str, set[str]] = {}
    for link in links:
        if link.outcome == outcome:
            sources.setdefault(link.target, set()).add(link.source)
    meshes: dict[frozenset[str], list[str]] = {}
    for target, names in sources.items():
        meshes.setdefault(frozenset({*names, target}), []).append(target)
    for hosts, targets in meshes.items():
        if len(hosts) > 2 and hosts == set(targets):
            yield f"among {fold(hosts)}", outcome
            for target in targets:
                del sources[target]
    rest: dict[frozenset[str], list[str]] = {}
    for target, names in sources.items():
        rest.setdefault(frozenset(names), []).append(target)
    for hosts, targets in rest.items():
        yield f"{fold(hosts)} -> {fold(targets)}", outcome
