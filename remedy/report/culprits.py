"""The culprits of a verification as a few lines: those with one reason together, each host once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from remedy.sentences import NAMES, WIDTH, Sentence, as_one, in_a_line, in_groups
from remedy.text import clipped, counted, folded, limited
from remedy.verify.accusations import Accusation, Link, accusations, places
from remedy.verify.hosts import hosts_of_step
from remedy.verify.verdict import NOT_TESTED, Culprit, Verdict

LINES = 12
"""For all culprits together, their hosts and what was seen of them; a line more for those that have no room."""
FACTS = 7
GROUPS = 6
LINKS = 2
"""Groups of dead links below the culprits; where there are none, they are all that there is to see."""
CLOSER = "--explain"
TRIED = "tried: "
"""Before an attempt on a link, which names both of its ends."""
_LIMIT = re.compile(r"--limit ('[^']*'|\S+)")


@dataclass(frozen=True)
class Fact:
    """What was seen of hosts.

    Args:
        text: the fact; of an attempt on a link it names both ends.
        hosts: of which it was seen, none of an attempt.
    """

    text: str
    hosts: tuple[str, ...]

    def line(self, of: Iterable[str]) -> str:
        """Return it as a line below hosts, which are named again where it is not of all of them."""
        is_of_all = not self.hosts or set(self.hosts) == set(of)
        return in_a_line("" if is_of_all else folded(self.hosts, NAMES), self.text)


def culprit_lines(verdict: Verdict, covering: str = "") -> Iterator[Text]:
    """Yield the culprits, what was seen of them, and what to do.

    Args:
        verdict: with culprits, the gravest first.
        covering: a command that is shown elsewhere and does for all hosts what these steps would; "" for none.
    """
    groups = accused_of(verdict)
    for group in groups[:GROUPS]:
        if not _is_headline(group, groups, verdict):
            words = clipped(group.sentence, WIDTH)
            line = Text("  ").append(words[: len(group.name)], style="bold red")
            yield line.append(words[len(group.name) :], style="default")
        yield from _below(group, _lines_each(groups))
    if rest := groups[GROUPS:]:
        hosts = folded(host for group in rest if not group.links for host in group.hosts)
        links = sum(len(group.links) for group in rest)
        names = ", ".join(filter(None, [hosts, counted(links, "link") if links else ""]))
        reasons = counted(len(rest), "more reason")
        yield Text(f"  {names or 'the fleet'}: {reasons} (--json has each)", style="dim")
    for step in steps(verdict.culprits, covering):
        yield Text(f"      {step}", style="cyan")


def accused_of(verdict: Verdict) -> list[Accusation]:
    """Return the culprits of a verdict by reason, each fact of them once."""
    return accusations(once(verdict.culprits), (entry.host for entry in verdict.outcomes))


def _is_headline(group: Accusation, groups: Sequence[Accusation], verdict: Verdict) -> bool:
    """Whether the first line of a group stands in the headline."""
    if verdict.possible:
        return len(groups) == 1
    return group.reason.text in headline(verdict)


def headline(verdict: Verdict) -> str:
    """Return whom a verdict names, where the reasons stand below, or the one reason."""
    groups = accused_of(verdict)
    if not groups or not verdict.possible:
        return clipped(verdict.reason.partition(NOT_TESTED)[0], WIDTH)
    if len(groups) == 1:
        (group,) = groups
        return clipped(group.sentence, WIDTH)
    hosts = {host for group in groups if not group.links for host in group.hosts}
    links = [link for group in groups for link in group.links]
    number = len(hosts) + len(links)
    names = [counted(len(hosts), "host")] * bool(hosts) + [counted(len(links), "link")] * bool(
        links
    )
    verb = "is" if number == 1 else "are"
    words = f"{' and '.join(names)} {verb} named, for " if number else ""
    return f"{words}{counted(len(groups), 'reason')}"


def steps(culprits: Iterable[Culprit], covering: str = "") -> Iterator[str]:
    """Yield what to do next: a command is typed once for the hosts of several culprits.

    Args:
        culprits: each with its next step.
        covering: a command that is shown elsewhere; what it does for more hosts is not shown again.
    """
    hosts: dict[str, list[str]] = {}
    others: dict[str, None] = {}
    for culprit in culprits:
        if _is_for_all(culprit):
            step = _LIMIT.sub("", culprit.next_step)
            hosts.setdefault(step, []).extend(hosts_of_step(culprit.next_step))
        elif culprit.next_step and culprit.next_step != covering:
            others[culprit.next_step] = None
    for step, names in hosts.items():
        if not covering.startswith(step):
            yield f"{step.rstrip()} --limit {limited(names)}"
    # A close look is at a few hosts; who has many culprits begins with the first.
    yield from [*others][: 0 if covering.endswith(CLOSER) else 1]


def texts_shown(verdict: Verdict) -> frozenset[str]:
    """Return what ``culprit_lines`` shows of culprits, each with its host before it where it is of one."""
    groups = accused_of(verdict)
    most = _lines_each(groups)
    texts: set[str] = set()
    for group in groups[:GROUPS]:
        texts |= {group.reason.text, f"{group.name}: {group.reason.text}"}
        texts |= {culprit.reason for culprit in group.culprits[:1] if len(group.culprits) == 1}
        for fact in facts_of(group)[: max(0, most - len(_reasons(group)))]:
            texts |= {fact.text.removeprefix(TRIED), *(f"{h}: {fact.text}" for h in fact.hosts)}
    return frozenset(texts)


def _lines_each(groups: Sequence[Accusation]) -> int:
    """Return how many lines each group has below its first."""
    return max(1, min(FACTS, LINES // max(1, len(groups[:GROUPS])) - 1))


def _reasons(group: Accusation) -> list[str]:
    """Return further reasons of the hosts of a group."""
    also = (
        in_a_line(
            "" if set(reason.hosts) == set(group.hosts) else folded(reason.hosts, NAMES),
            reason.text,
        )
        for reason in group.also.values()
    )
    return [f"also: {words}" for words in also]


def _below(group: Accusation, most: int) -> Iterator[Text]:
    """Yield what stands below the first line of a group, and how much is left out."""
    reasons = _reasons(group)
    facts = [fact.line(group.hosts) for fact in facts_of(group)]
    shown = [(line, "default") for line in reasons] + [(line, "dim") for line in facts]
    more = f"  (and {len(shown) - most} more: --json)" if len(shown) > most else ""
    for number, (line, style) in enumerate(shown[:most], 1):
        yield Text(f"      {line}{more if number == most else ''}", style=style)


def _is_for_all(culprit: Culprit) -> bool:
    """Whether the next step is a command that can be typed once for the hosts of several culprits."""
    return bool(_LIMIT.search(culprit.next_step)) and not culprit.next_step.endswith(CLOSER)


def once(culprits: Iterable[Culprit]) -> tuple[Culprit, ...]:
    """Return culprits with each fact once: that of a host with the host, and not with its links as well."""
    every = tuple(culprits)
    known: set[tuple[str, str]] = set()
    kept: dict[int, tuple[str, ...]] = {}
    for place, culprit in sorted(enumerate(every), key=lambda item: len(item[1].hosts) > 1):
        facts = {fact: _identity(fact, culprit) for fact in culprit.facts}
        kept[place] = tuple(fact for fact, sentence in facts.items() if sentence not in known)
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


def facts_of(group: Accusation) -> list[Fact]:
    """Return what was seen of hosts, what is alike together: that of few hosts first, attempts last."""
    names = group.reason.names
    sentences: list[Sentence] = []
    shared: dict[str, tuple[str, ...]] = {}
    for culprit in sorted(group.culprits, key=lambda culprit: len(culprit.hosts)):
        for fact in culprit.facts:
            host, text = ("", fact) if fact.startswith(TRIED) else _of_host(fact, culprit)
            if host or fact.startswith(TRIED):
                sentences.append(Sentence.of(host, text, names))
            else:
                shared[text] = culprit.hosts
    of_hosts: list[Fact] = []
    attempts: list[Fact] = []
    for alike in in_groups(sentences):
        if alike[0].text.startswith(TRIED):
            # Each attempt is an example of one.
            attempts.append(Fact(alike[0].text, ()))
            continue
        for several in _one_each(alike):
            of_hosts.append(Fact(as_one(several), tuple(sentence.host for sentence in several)))
    texts = {fact.text for fact in of_hosts}
    of_hosts += [Fact(text, hosts) for text, hosts in shared.items() if text not in texts]
    return [*sorted(of_hosts, key=lambda fact: len(fact.hosts)), *attempts]


def _one_each(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    """Return sentences in groups with no host twice: what a host has two of is not one."""
    rounds: list[list[Sentence]] = []
    counts: Counter[str] = Counter()
    for sentence in dict.fromkeys(sentences):
        number = counts[sentence.host]
        counts[sentence.host] += 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(sentence)
    return rounds


def link_lines(verdict: Verdict) -> Iterator[Text]:
    """Yield the dead links that the culprits do not name as they are, those with one outcome together."""
    shown = [
        (place, outcome) for outcome, links in _unnamed(verdict).items() for place in places(links)
    ]
    most = LINKS if verdict.culprits else LINES
    for place, outcome in shown[:most]:
        yield Text(f"  {place}: ").append(outcome, style="red")
    if len(shown) > most:
        more = counted(len(shown) - most, "more group")
        yield Text(f"  and {more} of dead links (--json)", style="dim")


def _unnamed(verdict: Verdict) -> Mapping[str, list[Link]]:
    """Return dead links by outcome, but for those that a culprit is, and those to or from all hosts."""
    named = {culprit.hosts for culprit in verdict.culprits if culprit.is_link}
    hosts = {host for link in verdict.dead_links for host in (link.source, link.target)}
    hosts |= {entry.host for entry in verdict.outcomes} - set(verdict.absent)
    by_outcome: dict[str, dict[Link, None]] = {}
    for link in verdict.dead_links:
        by_outcome.setdefault(link.outcome, {})[link.source, link.target] = None
    unnamed = {}
    for outcome, links in by_outcome.items():
        into, out = Counter(target for _, target in links), Counter(source for source, _ in links)
        unnamed[outcome] = [
            (source, target)
            for source, target in links
            if (source, target) not in named and len(hosts) - 1 not in (into[target], out[source])
        ]
    return unnamed
