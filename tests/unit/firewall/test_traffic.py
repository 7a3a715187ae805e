"""What chains of rules do with new connections: each address and each port, one by one and all together."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall.spans import Spans, merge
from remedy.firewall.traffic import DEEPEST, Chain, Dropped, Rule, Traffic, dropped_by

ALL = Traffic(((1, 4),), ((1, 4),))
NAMES = ("base", "a", "b")


def dropped(
    *rules: Rule, policy: str = "accept", others: Mapping[str, Chain] | None = None
) -> Dropped:
    return dropped_by({"base": Chain(rules, policy), **(others or {})}, "base", ALL)


def test_nothing_is_kept_out_without_rules_or_traffic() -> None:
    assert not dropped()
    nobody, nowhere = Traffic((), ((1, 1),)), Traffic(((1, 1),), ())
    for traffic in (nobody, nowhere):
        assert dropped_by({"base": Chain((), "drop")}, "base", traffic) == Dropped()


def test_the_policy_keeps_out_what_no_rule_let_in_and_says_its_chain() -> None:
    found = dropped(Rule("accept", ports=((2, 3),)), policy="drop")
    assert found.sources == ((1, 4),)
    assert found.ports == ((1, 1), (4, 4))
    (words,) = found.words
    assert "base" in words
    assert "drop" in words


def test_each_rule_that_keeps_out_is_named_once_and_in_order() -> None:
    first = Rule("drop", sources=((1, 1),), ports=((1, 1),), words="one")
    second = Rule("drop", sources=((3, 4),), words="two")
    found = dropped(first, second, first)
    assert found == Dropped(((1, 1), (3, 4)), ((1, 4),), ("one", "two"))


def test_what_is_not_certain_neither_lets_in_nor_keeps_out() -> None:
    assert not dropped(Rule("drop", certain=False))
    assert dropped(Rule("accept", certain=False), Rule("drop", words="last")).words == ("last",)


def test_after_a_jump_the_next_rule_goes_on_and_after_a_goto_it_does_not() -> None:
    empty = Chain((Rule("return"),))
    assert dropped(Rule("jump", "a"), Rule("drop", words="next"), others={"a": empty}).words == (
        "next",
    )
    assert not dropped(Rule("goto", "a"), Rule("drop", words="next"), others={"a": empty})


def test_a_chain_that_is_not_there_changes_nothing() -> None:
    assert dropped(Rule("jump", "gone"), Rule("drop", words="next")).words == ("next",)


def test_chains_that_call_each_other_for_ever_come_to_an_end() -> None:
    assert not dropped(Rule("jump", "a"), others={"a": Chain((Rule("jump", "a"),))})
    deep = {f"c{n}": Chain((Rule("jump", f"c{n + 1}"),)) for n in range(DEEPEST - 1)}
    deep[f"c{DEEPEST - 1}"] = Chain((Rule("drop", words="deep"),))
    assert dropped(Rule("jump", "c0"), others=deep).words == ("deep",)


parts = st.one_of(
    st.none(),
    st.lists(st.integers(1, 4).map(lambda n: (n, n)), min_size=1, max_size=3).map(merge),
)
rules = st.builds(
    Rule,
    st.sampled_from(["accept", "drop", "jump", "goto", "return", "pass"]),
    st.sampled_from(["a", "b"]),
    parts,
    parts,
    st.sampled_from([True, True, True, False]),
    st.just("rule"),
)
tables = st.fixed_dictionaries(
    {
        "base": st.builds(Chain, st.lists(rules, max_size=5).map(tuple), st.sampled_from(["accept", "drop"])),
        "a": st.builds(Chain, st.lists(rules, max_size=4).map(tuple)),
        # The last chain calls none, so that a packet comes to an end.
        "b": st.builds(
            Chain, st.lists(rules.filter(lambda r: r.action not in ("jump", "goto")), max_size=4).map(tuple)
        ),
    }
)  # fmt: skip


def inside(number: int, spans: Spans | None) -> bool:
    return spans is None or any(low <= number <= high for low, high in spans)


def walk(chains: dict[str, Chain], name: str, source: int, port: int, depth: int = 0) -> str:
    """Send one packet through a chain as the kernel does; return "accept", "drop" or "", back to the caller."""
    for rule in chains[name].rules if depth <= 6 else ():
        if not rule.certain or not (inside(source, rule.sources) and inside(port, rule.ports)):
            continue
        if rule.action in ("accept", "drop"):
            return rule.action
        if rule.action == "return":
            break
        if rule.action in ("jump", "goto"):
            end = walk(chains, rule.target, source, port, depth + 1)
            if end:
                return end
            if rule.action == "goto":
                break
    return chains[name].policy


@given(tables)
def test_the_sets_that_are_kept_out_are_those_of_single_packets(chains: dict[str, Chain]) -> None:
    # "a" may call itself: such a loop the kernel does not take, so no table has it.
    if any(rule.target == "a" for rule in chains["a"].rules if rule.action in ("jump", "goto")):
        return
    lost = {
        (source, port)
        for source in range(1, 5)
        for port in range(1, 5)
        if walk(chains, "base", source, port) == "drop"
    }
    found = dropped_by(chains, "base", ALL)
    assert bool(found) is bool(lost)
    assert found.sources == merge((source, source) for source, _ in lost)
    assert found.ports == merge((port, port) for _, port in lost)
