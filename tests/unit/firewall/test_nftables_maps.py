"""Verdict maps of nftables: a rule for each entry that can match."""

from __future__ import annotations

from typing import Any

from remedy.firewall import spans
from remedy.firewall.packets import check
from tests.unit.firewall.nftables_bench import (
    BLIND,
    DADDR,
    DPORT,
    FIRST,
    SADDR,
    STATE,
    field,
    match,
    meta,
    one,
    read,
)


def vmap(key: object, *entries: object, data: object = None) -> dict[str, Any]:
    return {"vmap": {"key": key, "data": data or {"set": list(entries)}}}


def test_a_verdict_map_is_a_rule_for_each_entry_that_can_match() -> None:
    found = read(
        match(DPORT, {"range": [1, 100]}),
        vmap(
            DPORT,
            [22, {"accept": None}],
            [{"range": [90, 200]}, {"jump": {"target": "own"}}],
            [80, {"reject": None}],
            [81, {"continue": None}],
            [300, {"drop": None}],
        ),
    )
    assert [(r.action, r.target, r.box.dports, r.certain) for r in found] == [
        ("accept", "", ((22, 22),), True),
        ("jump", "own", ((90, 100),), True),
        ("drop", "", ((80, 80),), True),
    ]


def test_a_verdict_map_of_sources_of_states_and_of_pairs() -> None:
    by_source = one(vmap(SADDR, ["10.0.0.2", {"goto": {"target": "x"}}]))
    assert (by_source.action, by_source.target) == ("goto", "x")
    assert by_source.box.peers == spans.of_networks(["10.0.0.2"])
    states = read(vmap(STATE, ["established", {"accept": None}], ["new", {"drop": None}]))
    assert [[check(c, FIRST) for c in rule.checks] for rule in states] == [[False], [True]]
    assert one(vmap(meta("iifname"), ["eth0", {"accept": None}]), flow=BLIND).certain is False
    services = vmap(
        {"concat": [DADDR, meta("l4proto"), field("th", "dport")]},
        [{"concat": ["10.96.0.1", "tcp", 443]}, {"drop": None}],
        [{"concat": ["10.0.0.1", "tcp", 30001]}, {"drop": None}],
    )
    assert [rule.box.dports for rule in read(services)] == [((30001, 30001),)]


def test_a_verdict_map_by_name_is_looked_up_and_what_is_odd_in_it_is_a_doubt() -> None:
    found = read(vmap(DPORT, data="@ports"))
    assert [(rule.action, rule.box.dports) for rule in found] == [
        ("accept", ((22, 22),)),
        ("drop", ((23, 23),)),
    ]
    assert [r.certain for r in read(vmap(DPORT, data="@unheard"))] == [False]
    assert [r.certain for r in read(vmap(DPORT, "odd", [1, 2, 3]))] == [False, False]
    assert one({"limit": {"rate": 1}}, vmap(DPORT, [22, {"drop": None}])).certain is False
    random = one(vmap({"numgen": {"mode": "random", "mod": 2}}, [0, {"drop": None}]))
    assert random.certain is False
