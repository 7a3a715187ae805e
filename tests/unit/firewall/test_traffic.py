"""What chains of rules do with packets: each packet, one by one and all together."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import traffic
from remedy.firewall.packets import ESTABLISHED, EVERYTHING, NEW, UNTRACKED, Box, Condition, Part
from remedy.firewall.spans import Spans, merge
from remedy.firewall.traffic import DEEPEST, Chain, Judgement, Rule, judge

SOME = ((1, 3),)
ALL = Part(SOME, SOME, SOME)


def judged(
    *rules: Rule,
    policy: str = "accept",
    chains: Mapping[str, Chain] | None = None,
    part: Part = ALL,
    accepted: frozenset[str] = frozenset(),
) -> Judgement:
    return judge(
        {"base": Chain(rules, policy), **(chains or {})}, "base", [part], accepted=accepted
    )


def test_nothing_is_dropped_without_rules_or_packets() -> None:
    assert not judged().dropped
    for nothing in (ALL._replace(peers=()), ALL._replace(sports=()), ALL._replace(dports=())):
        assert not judged(policy="drop", part=nothing).dropped


def test_the_policy_drops_what_no_rule_has_accepted_and_says_its_chain() -> None:
    found = judged(Rule("accept", box=Box(dports=((2, 2),))), policy="drop").dropped
    assert found.peers == SOME
    assert found.ports == ((1, 1), (3, 3))
    assert found.words == ("chain base: policy drop",)


def test_of_an_answer_the_ports_of_the_service_are_where_it_comes_from() -> None:
    answer = Part(SOME, ((1, 1),), ((3, 3),), ESTABLISHED, reply=True)
    assert judged(policy="drop", part=answer).dropped.ports == ((1, 1),)


def test_each_rule_that_drops_is_named_once_and_in_order() -> None:
    first = Rule("drop", box=Box(((1, 1),), None, ((1, 1),)), words="one")
    second = Rule("drop", box=Box(((3, 3),)), words="two")
    found = judged(first, second, first).dropped
    assert (found.peers, found.ports, found.words) == (((1, 1), (3, 3)), SOME, ("one", "two"))


def test_what_a_rule_does_not_match_it_does_not_drop() -> None:
    rule = Rule("drop", unless=(Box(((1, 1),)), Box(((2, 3),), None, ((1, 2),))), words="rule")
    found = judged(rule).dropped
    assert (found.peers, found.ports) == (((2, 3),), ((3, 3),))


def test_an_uncertain_rule_that_drops_is_a_doubt_with_its_words() -> None:
    found = judged(Rule("drop", certain=False, words="rule", unread=("limit",)))
    assert not found.dropped
    ((doubt),) = found.doubts
    assert (doubt.words, doubt.unread, doubt.outcome) == ("rule", ("limit",), "")


def test_an_uncertain_jump_is_the_doubt_and_the_drop_behind_it_the_outcome() -> None:
    chains = {"a": Chain((Rule("drop", words="behind"),))}
    found = judged(Rule("jump", "a", certain=False, words="jump"), chains=chains)
    ((doubt),) = found.doubts
    assert (doubt.words, doubt.outcome) == ("jump", "behind")


def test_an_uncertain_rule_that_no_drop_follows_is_no_doubt() -> None:
    chains = {"a": Chain((Rule("accept"),))}
    for action in ("accept", "return", "jump", "goto", "pass"):
        assert judged(Rule(action, "a", certain=False, words="x"), chains=chains).doubts == ()
    about_others = Rule("drop", box=Box(((9, 9),)), certain=False, words="x")
    assert judged(about_others).doubts == ()


def test_an_uncertain_rule_that_accepts_does_not_hide_the_drop_behind_it() -> None:
    found = judged(Rule("accept", certain=False, words="x"), Rule("drop", words="last"))
    assert found.dropped.words == ("last",)
    assert found.doubts == ()


def test_an_uncertain_return_is_a_doubt_where_its_caller_drops() -> None:
    chains = {"a": Chain((Rule("return", certain=False, words="maybe"), Rule("accept")))}
    found = judged(Rule("jump", "a"), policy="drop", chains=chains)
    assert not found.dropped
    assert [(d.words, d.outcome) for d in found.doubts] == [("maybe", "chain base: policy drop")]


def test_an_accepted_rule_is_taken_to_match_nothing_and_no_other_is() -> None:
    rules = (Rule("drop", certain=False, words="known"), Rule("drop", certain=False, words="new"))
    found = judged(*rules, accepted=frozenset({"known"}))
    assert [doubt.words for doubt in found.doubts] == ["new"]
    certain = judged(Rule("drop", words="known"), accepted=frozenset({"known"}))
    assert certain.dropped, "what certainly drops cannot be accepted away"


def test_a_mark_is_that_of_the_rules_before() -> None:
    marked = Condition("mark", ((0x10, 0x10),), mask=0x10)
    drop = Rule("drop", checks=(marked,), words="drop")
    assert not judged(drop).dropped
    assert judged(Rule("pass", mark=(2**32 - 1 - 0x10, 0x10)), drop).dropped.words == ("drop",)
    away = Rule("pass", mark=(2**32 - 1 - 0x10, 0))
    assert not judged(Rule("pass", mark=(0, 0x10)), away, drop).dropped
    unknown = judged(Rule("pass", mark=(0, None)), drop)
    assert [doubt.words for doubt in unknown.doubts] == ["drop"]
    maybe = judged(Rule("pass", mark=(0, 0x10), certain=False, words="marks"), drop)
    assert [(d.words, d.outcome) for d in maybe.doubts] == [("marks", "drop")]
    assert not maybe.dropped


def test_what_is_untracked_has_no_state_and_leaves_the_chain_so() -> None:
    found = judged(Rule("accept", untracks=True))
    assert {part.state for part in found.passed} == {UNTRACKED}
    tracked = Condition("state", frozenset({"new", "established"}))
    again = judged(Rule("accept", checks=(tracked,)), policy="drop", part=found.passed[0])
    assert again.dropped


def test_packets_that_are_sent_elsewhere_are_a_doubt_on_fixed_ports_alone() -> None:
    rule = Rule("divert", box=Box(dports=((2, 2),)), words="redirect")
    for fixed, doubts in ((((2, 2),), ["redirect"]), (((3, 3),), [])):
        found = judge({"base": Chain((rule,), "accept")}, "base", [ALL], fixed=fixed)
        assert [doubt.words for doubt in found.doubts] == doubts


def test_after_a_jump_the_next_rule_goes_on_and_after_a_goto_it_does_not() -> None:
    chains = {"a": Chain((Rule("return"),))}
    after = Rule("drop", words="next")
    assert judged(Rule("jump", "a"), after, chains=chains).dropped.words == ("next",)
    assert not judged(Rule("goto", "a"), after, chains=chains).dropped


def test_a_chain_that_is_not_there_changes_nothing() -> None:
    assert judged(Rule("jump", "gone"), Rule("drop", words="next")).dropped.words == ("next",)


def test_chains_that_call_each_other_for_ever_come_to_an_end() -> None:
    itself = {"a": Chain((Rule("jump", "a"),) * 30)}
    assert not judged(Rule("jump", "a"), chains=itself).dropped
    deep = {f"c{n}": Chain((Rule("jump", f"c{n + 1}"),)) for n in range(DEEPEST - 1)}
    deep[f"c{DEEPEST - 1}"] = Chain((Rule("drop", words="deep"),))
    assert judged(Rule("jump", "c0"), chains=deep).dropped.words == ("deep",)


def test_chains_that_call_the_next_often_are_walked_once() -> None:
    wide = {f"c{n}": Chain((Rule("jump", f"c{n + 1}"),) * 50) for n in range(15)}
    wide["c15"] = Chain((Rule("drop", certain=False, words="last"),))
    found = judged(Rule("jump", "c0"), chains=wide)
    assert not found.exhausted
    assert [doubt.words for doubt in found.doubts] == ["last"]


def test_what_is_too_long_to_judge_is_said() -> None:
    pairs = [
        Rule("accept", box=Box(((2 * n, 2 * n),), None, ((2 * n, 2 * n),))) for n in range(3000)
    ]
    part = Part(((0, 9999),), SOME, ((0, 9999),))
    found = judged(*pairs, policy="drop", part=part)
    assert found.exhausted
    assert not found.dropped
    assert found.passed == (part,)
    assert traffic.MOST_STEPS < 3000**2


# --- one by one --------------------------------------------------------------------------------------------

parts = st.one_of(
    st.none(),
    st.lists(st.integers(1, 3).map(lambda n: (n, n)), min_size=1, max_size=2).map(merge),
)
boxes = st.builds(Box, parts, parts, parts)
checks = st.sampled_from(
    [
        (),
        (),
        (Condition("state", frozenset({NEW})),),
        (Condition("state", frozenset({UNTRACKED}), True),),
        (Condition("mark", ((1, 1),), mask=1),),
        (Condition("direction", frozenset({"reply"})),),
    ]
)
rules = st.builds(
    Rule,
    st.sampled_from(["accept", "drop", "jump", "goto", "return", "pass"]),
    st.sampled_from(["a", "b"]),
    boxes,
    st.sampled_from([True, True, True, False]),
    st.uuids().map(str),
    checks,
    st.lists(boxes.filter(lambda box: box != EVERYTHING), max_size=1).map(tuple),
    st.sampled_from([None, None, (0xFFFFFFFE, 1), (0xFFFFFFFE, 0)]),
    st.sampled_from([False, False, False, True]),
)
ends = rules.filter(lambda rule: rule.action not in ("jump", "goto"))
tables = st.fixed_dictionaries(
    {
        "base": st.builds(
            Chain, st.lists(rules, max_size=5).map(tuple), st.sampled_from(["accept", "drop"])
        ),
        # "a" may call "b", and the last chain calls none, so that a packet comes to an end.
        "a": st.builds(
            Chain,
            st.lists(
                rules.filter(lambda r: r.action not in ("jump", "goto") or r.target == "b"),
                max_size=4,
            ).map(tuple),
        ),
        "b": st.builds(Chain, st.lists(ends, max_size=3).map(tuple)),
    }
)
PACKETS = [
    Part(((p, p),), ((s, s),), ((d, d),), state, reply)
    for p in (1, 2)
    for s in (1, 2)
    for d in (1, 3)
    for state, reply in ((NEW, False), (ESTABLISHED, False), (ESTABLISHED, True))
]


def inside(part: Part, box: Box) -> bool:
    """Return whether one packet is in a box."""

    def among(spans: Spans | None, numbers: Spans) -> bool:
        return spans is None or any(low <= numbers[0][0] <= high for low, high in spans)

    return all(
        among(spans, numbers)
        for spans, numbers in zip(box, (part.peers, part.sports, part.dports), strict=True)
    )


def answered(rule: Rule, packet: Part) -> bool:
    """Return whether what a rule asks of a packet's state and mark is so."""
    for condition in rule.checks:
        assert condition.values is not None
        if condition.field == "mark":
            answer = ((packet.mark or 0) & 1) == 1
        elif condition.field == "state":
            answer = packet.state in condition.values
        else:
            answer = ("reply" if packet.reply else "original") in condition.values
        if answer is condition.negated:
            return False
    return True


def walk(
    chains: Mapping[str, Chain], name: str, packet: Part, *, both: bool
) -> set[tuple[str, Part]]:
    """Send one packet through a chain as the kernel does; return each way in which it can end.

    Args:
        chains: all chains.
        name: where it goes in.
        packet: the packet.
        both: whether an uncertain rule may match and may not; else it does not.
    """
    outcomes: set[tuple[str, Part]] = set()
    current = {packet}
    for rule in chains[name].rules:
        following: set[Part] = set()
        for item in current:
            matches = inside(item, rule.box) and not any(inside(item, box) for box in rule.unless)
            if not (matches and answered(rule, item)):
                following.add(item)
                continue
            if not rule.certain:
                following.add(item)
                if not both:
                    continue
            changed = item._replace(state=UNTRACKED) if rule.untracks else item
            if rule.mark is not None:
                keep, flip = rule.mark
                changed = changed._replace(mark=((changed.mark or 0) & keep) ^ (flip or 0))
            if rule.action == "pass":
                following.add(changed)
            elif rule.action in ("accept", "drop"):
                outcomes.add((rule.action, changed))
            elif rule.action == "return":
                outcomes.add(("", changed))
            else:
                for end, later in walk(chains, rule.target, changed, both=both):
                    if end == "" and rule.action == "jump":
                        following.add(later)
                    else:
                        outcomes.add((end, later))
        current = following
    return outcomes | {("", item) for item in current}


def ends_of(chains: Mapping[str, Chain], packet: Part, *, both: bool) -> set[str]:
    """Return whether a packet can be accepted, and whether it can be dropped."""
    return {end or chains["base"].policy for end, _ in walk(chains, "base", packet, both=both)}


@given(tables, st.lists(st.sampled_from(PACKETS), min_size=1, max_size=6, unique=True))
def test_sets_of_packets_end_as_each_packet_does(
    chains: dict[str, Chain], packets: list[Part]
) -> None:
    found = judge(chains, "base", packets)
    possible = {p: ends_of(chains, p, both=True) for p in packets}
    certain = {p: ends_of(chains, p, both=False) for p in packets}
    lost = [packet for packet in packets if "drop" in certain[packet]]
    # What is lost where no uncertain rule matches is said to be lost, and nothing else.
    assert bool(found.dropped) is bool(lost)
    assert found.dropped.peers == merge(span for packet in lost for span in packet.peers)
    assert found.dropped.ports == merge(span for packet in lost for span in packet.ports)
    # Never open where a packet may be lost, and never a doubt where none can.
    doubtful = [p for p in packets if "drop" in possible[p] and "drop" not in certain[p]]
    assert not doubtful or found.doubts or found.dropped
    if not any("drop" in ends for ends in possible.values()):
        assert found.doubts == ()


@given(tables, st.sampled_from(PACKETS))
def test_without_the_rules_that_are_in_doubt_there_is_none(
    chains: dict[str, Chain], packet: Part
) -> None:
    found = judge(chains, "base", [packet])
    accepted = frozenset(doubt.words for doubt in found.doubts)
    again = judge(chains, "base", [packet], accepted=accepted)
    assert not {doubt.words for doubt in again.doubts} & accepted
    assert bool(again.dropped) is bool(found.dropped)


def test_what_is_named_anyway_is_not_named_twice() -> None:
    """A rule that may have marked a packet says nothing where the next one may drop it in any case."""
    marks = Rule("pass", mark=(0, 1), certain=False, words="marks")
    for last in (Rule("drop", certain=False, words="last"), Rule("drop", words="last")):
        found = judged(marks, last)
        assert [doubt.words for doubt in found.doubts] == ["last"] * (not last.certain)
        assert found.dropped.words == ("last",) * last.certain
