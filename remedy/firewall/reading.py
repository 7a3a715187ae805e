"""From a rule as it was read to what it does with the packets of one flow.

Both readers (``iptables_rules``, ``nftables_rules``) make ``ReadRule``s, which say the same of every host;
here they are narrowed to the packets that are asked about. Most rules of a host are about other packets and
go at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from remedy.firewall.marks import NOT_GIVEN, asks_for_another
from remedy.firewall.packets import (
    EVERYTHING,
    OF_PARTS,
    Box,
    Condition,
    Either,
    Flow,
    Part,
    Test,
    ask,
)
from remedy.firewall.spans import ALL_ADDRESSES, ALL_PORTS, Spans, meet, merge
from remedy.firewall.traffic import Chain, Rule

MOST_ALTERNATIVES = 512
"""Of concatenated values that are about the packets of a flow; with more a rule is not read."""


@dataclass(frozen=True)
class ReadRule:
    """A rule as it was read.

    Args:
        words: the rule as its firewall shows it.
        tests: its conditions.
        action: as in ``Rule``.
        target: the chain of a jump or goto.
        unread: what in it nobody can answer, in a word or two each.
        mark: as in ``Rule``.
        untracks: as in ``Rule``; ``zones``, too.
        connection_mark: whether it gives connections a mark.
        restores_mark: whether the mark that it gives is that of the connection.
        source: the addresses of IPv4 that it gives packets as their source; () for none, or its interface's.
    """

    words: str
    tests: tuple[Test, ...] = ()
    action: str = "pass"
    target: str = ""
    unread: tuple[str, ...] = ()
    mark: tuple[int, int | None] | None = None
    untracks: bool = False
    connection_mark: bool = False
    restores_mark: bool = False
    source: Spans = ()
    zones: bool = False

    @property
    def matters(self) -> bool:
        """Whether it does anything to packets."""
        return self.action != "pass" or self.mark is not None or self.untracks or self.zones


@dataclass(frozen=True)
class _Narrowed:
    """What conditions say together: what they match, what the part has to answer, what cannot be answered."""

    box: Box = EVERYTHING
    checks: tuple[Condition, ...] = ()
    unread: tuple[str, ...] = ()


class LazyChains(Mapping[str, Chain]):
    """The chains of a table, each made when packets come to it: most chains of a host are never asked for."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Chain]) -> None:
        self._names = tuple(names)
        self._make = make
        self._made: dict[str, Chain] = {}

    def __getitem__(self, name: str) -> Chain:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def bounds_of(parts: Iterable[Part]) -> Box:
    """Return a box that holds all packets of some parts."""
    known = list(parts)
    return Box(
        merge(span for part in known for span in part.peers),
        merge(span for part in known for span in part.sports),
        merge(span for part in known for span in part.dports),
    )


def narrow(rules: Iterable[ReadRule], flow: Flow, bounds: Box, policy: str) -> Chain:
    """Return the chain of the rules that can match packets of a flow within ``bounds``."""
    return Chain(
        tuple(r for rule in rules if rule.matters for r in _rules(rule, flow, bounds)), policy
    )


def _rules(rule: ReadRule, flow: Flow, bounds: Box) -> Iterator[Rule]:
    """Yield a rule for each combination of alternatives that can match."""
    plain = [test for test in rule.tests if isinstance(test, Condition)]
    base = _narrowed(plain, flow, bounds, drops=rule.action == "drop")
    if base is None:
        return
    choices: list[list[_Narrowed]] = []
    unless: list[Box] = []
    unread = [*rule.unread, *base.unread]
    for test in rule.tests:
        if isinstance(test, Either):
            options = [_narrowed(each, flow, bounds) for each in test.alternatives]
            known = [option for option in options if option is not None]
            if len(known) > MOST_ALTERNATIVES:
                unread.append("too many values")
            elif not test.negated:
                choices.append(known)
            elif reasons := _undecided(known):
                unread += reasons
            else:
                unless += [option.box for option in known]
    if prod(len(options) for options in choices) > MOST_ALTERNATIVES:
        choices = []
        unread.append("too many values")
    for combination in product(*choices):
        box = _common([base.box, *(option.box for option in combination)])
        if box is not None:
            yield _rule(rule, flow, box, (base, *combination), tuple(unless), unread)


def _undecided(options: Iterable[_Narrowed]) -> list[str]:
    """Return why it is not known what a negated set leaves."""
    known = list(options)
    if not any(option.unread or option.checks for option in known):
        return []
    return [word for option in known for word in option.unread] or ["a negated set"]


def _rule(
    rule: ReadRule,
    flow: Flow,
    box: Box,
    parts: Sequence[_Narrowed],
    unless: tuple[Box, ...],
    unread: Sequence[str],
) -> Rule:
    """Return what a rule does with the packets of a flow that one combination of alternatives matches."""
    reasons = [*unread, *(word for part in parts[1:] for word in part.unread)]
    disguises = _disguises(rule, flow)
    if disguises:
        reasons.append("another source address")
    return Rule(
        "drop" if disguises else rule.action,
        rule.target,
        box,
        certain=not reasons,
        words=rule.words,
        checks=tuple(condition for part in parts for condition in part.checks),
        unless=unless,
        mark=(0, 0) if rule.restores_mark and not flow.connection_marks else rule.mark,
        untracks=rule.untracks,
        zones=rule.zones,
        unread=tuple(dict.fromkeys(reasons)),
    )


def _disguises(rule: ReadRule, flow: Flow) -> bool:
    """Return whether peers get packets with another source than this host's, and may answer somebody else."""
    if not rule.source or flow.way == "in" or flow.ether != "ip" or flow.address is None:
        return False
    return rule.source != ((flow.address, flow.address),)


def _narrowed(
    conditions: Iterable[Condition], flow: Flow, bounds: Box, *, drops: bool = False
) -> _Narrowed | None:
    """Return what conditions say together of a flow; None where they match none of its packets."""
    numbers: list[Spans | None] = [None, None, None]
    checks: list[Condition] = []
    unread: list[str] = []
    for condition in conditions:
        if condition.field in OF_PARTS and condition.values is not None:
            if ask(condition, flow) is False:
                return None
            by_program = condition.field == "mark" and asks_for_another(condition, flow.marks_given)
            if by_program and drops and flow.way == "out":
                unread.append(NOT_GIVEN)
            else:
                checks.append(condition)
            continue
        answer = ask(condition, flow)
        if answer is False:
            return None
        if answer is None:
            unread.append(condition.field)
        elif answer is not True:
            dimension, values = answer
            current = numbers[dimension]
            common = values if current is None else meet(current, values)
            limit = bounds[dimension]
            if not common or (limit is not None and not meet(common, limit)):
                return None
            numbers[dimension] = common
    return _Narrowed(Box(*numbers), tuple(checks), tuple(unread))


def _common(boxes: Iterable[Box]) -> Box | None:
    """Return what is in all boxes; None where nothing is."""
    numbers: list[Spans | None] = [None, None, None]
    for box in boxes:
        for at, values in enumerate(box):
            current = numbers[at]
            if values is not None:
                numbers[at] = values if current is None else meet(current, values)
                if not numbers[at]:
                    return None
    return Box(*numbers)


_TCP = Condition("l4proto", frozenset({"tcp"}))


def hosts_and_ports(rules: Iterable[ReadRule]) -> tuple[Spans, Spans] | None:
    """Return which hosts some rules accept, on which ports; None where they say more than that, or nothing."""
    pairs = [_hosts_and_ports(rule) for rule in rules]
    known = [pair for pair in pairs if pair is not None]
    if not known or len(known) < len(pairs):
        return None
    return merge(span for pair in known for span in pair[0]), merge(
        span for pair in known for span in pair[1]
    )


def _hosts_and_ports(rule: ReadRule) -> tuple[Spans, Spans] | None:
    hosts, ports = ALL_ADDRESSES, ALL_PORTS
    for test in rule.tests:
        if test == _TCP:
            continue
        if not isinstance(test, Condition) or test.negated or not isinstance(test.values, tuple):
            return None
        if test.field in ("saddr", "daddr"):
            hosts = meet(hosts, test.values)
        elif test.field == "dport":
            ports = meet(ports, test.values)
        else:
            return None
    return (hosts, ports) if rule.action == "accept" and not rule.unread else None
