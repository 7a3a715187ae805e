"""Failed ways explained by the fewest hosts and pairs, and outliers."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.allreduce.slow import outliers
from remedy.verify.reach.explain import cover_links, explain
from remedy.verify.verdict import DeadLink

HOSTS = tuple("abcdefgh")
TRIED = frozenset(permutations(HOSTS, 2))


def covers(failed: set[tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [cover[:3] for cover in cover_links(failed, len(HOSTS) - 1)]


def test_a_host_that_nobody_reaches_is_one_cause() -> None:
    assert covers({(s, "c") for s in HOSTS if s != "c"}) == [("in", "c", "")]


def test_a_host_that_reaches_nobody_is_one_cause() -> None:
    assert covers({("c", t) for t in HOSTS if t != "c"}) == [("out", "c", "")]


def test_a_dead_host_does_not_drag_its_peers_along() -> None:
    failed = {way for way in TRIED if "c" in way}
    assert covers(failed) == [("out", "c", ""), ("in", "c", "")] or covers(failed) == [
        ("in", "c", ""),
        ("out", "c", ""),
    ]


def test_one_way_is_one_way() -> None:
    assert covers({("a", "b")}) == [("link", "a", "b")]
    assert covers({("a", "b"), ("b", "a")}) == [("link", "a", "b"), ("link", "b", "a")]


def test_a_host_and_a_way_are_two_causes() -> None:
    failed = {(s, "c") for s in HOSTS if s != "c"} | {("a", "b")}
    assert covers(failed) == [("in", "c", ""), ("link", "a", "b")]


@given(st.sets(st.sampled_from(sorted(TRIED))))
def test_every_failed_way_is_explained_once(failed: set[tuple[str, str]]) -> None:
    causes = cover_links(failed, len(HOSTS) - 1)
    ways = [way for cause in causes for way in cause.links]
    assert sorted(ways) == sorted(failed)


def test_outliers_are_far_below_the_median() -> None:
    rates = {f"gpu{n}": 46.0 + n % 3 for n in range(12)} | {"slow": 20.0}
    assert list(outliers(rates)) == ["slow"]


def test_a_slow_one_is_seen_among_few_that_are_far_apart() -> None:
    # As six hosts on two busy processors were measured, the fourth with a link of 100 Mbit/s.
    rates = dict(enumerate([0.592, 1.364, 0.584, 0.0168, 0.815, 0.704]))
    assert list(outliers(rates)) == [3]
    del rates[3]
    assert outliers(rates | {3: 0.4}) == {}
    assert list(outliers(rates | {3: 0.0})) == [3]


def test_noise_and_small_groups_have_no_outliers() -> None:
    assert outliers({"a": 1.0, "b": 9.0, "c": 9.0}) == {}
    assert outliers({f"h{n}": 40.0 + n for n in range(8)}) == {}
    assert outliers({}) == {}


def test_a_host_whose_answer_is_missing_is_named_with_the_reason() -> None:
    """Its links were not tested; what is known is why."""
    reason = "c (10.0.0.3:22): stuck in the stage 'output'"
    links = [
        DeadLink(source="c", target=target, port=0, outcome="not tested", detail=reason)
        for target in HOSTS
        if target != "c"
    ]
    (end,) = explain(links, len(HOSTS) - 1)
    assert end.message(7) == f"c: its connections to the other 7 hosts were not tested: {reason}"
    (other,) = explain([links[0], links[1].model_copy(update={"detail": "else"}), *links[2:]], 7)
    assert other.message(7).endswith("were not tested")
