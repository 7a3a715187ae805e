"""nftables: what rules do, the rule at the head of a chain, and any rules of others."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import nftables, spans
from remedy.firewall.step import Opening
from remedy.plan import CommandAction
from remedy.probe import NftChain, NftRule, NftRuleset
from tests.unit.build import fleet
from tests.unit.firewall.firewall_bench import (
    ESTABLISHED,
    FIREWALLD,
    NFT_CONF,
    OPENED_PEERS,
    OPENING,
    SSH,
    file,
    fleet_of,
    is_dropped,
    judgements,
    match,
    nft,
    plan_of,
    saved,
    settled,
    walled,
)


@pytest.mark.parametrize(
    ("rules", "policy", "open_"),
    [
        ([], "accept", True),
        ([], "drop", False),
        ([ESTABLISHED, SSH], "drop", False),
        ([[match("saddr", {"prefix": {"addr": "10.0.0.0", "len": 24}}, "ip"), {"accept": None}]], "drop", True),
        ([[match("saddr", "10.0.0.2", "ip", "!="), {"drop": None}]], "accept", False),
        ([[match("saddr", {"set": ["10.0.0.2", {"range": ["10.0.0.3", "10.0.0.9"]}]}, "ip"), {"accept": None}]],
         "drop", True),
        ([[match("saddr", "@unheard", "ip"), {"accept": None}]], "drop", False),
        ([[{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "eth*"}}, {"accept": None}]],
         "drop", True),
        ([[{"vmap": {"key": {"ct": {"key": "state"}},
                     "data": {"set": [["invalid", {"drop": None}], ["new", {"accept": None}]]}}}]],
         "drop", False),
        ([[match("nexthdr", 6, "ip6"), {"drop": None}]], "accept", True),
        ([[{"limit": {"rate": 3}}, {"drop": None}]], "accept", True),
        ([[{"counter": None}, {"log": None}, {"reject": None}]], "accept", False),
    ],
)  # fmt: skip
def test_what_rules_of_nftables_do(rules: list[object], policy: str, open_: bool) -> None:
    assert is_dropped(judgements(nft=nft(*rules, policy=policy))) is not open_


def nft_change(ruleset: NftRuleset) -> CommandAction:
    plan = plan_of(fleet_of(walled("a", "10.0.0.1", nft=ruleset), walled("b", "10.0.0.2")))
    (change,) = plan.for_host("a")
    assert isinstance(change.action, CommandAction)
    return change.action


def test_the_rule_of_remedy_goes_to_the_head_of_the_chain_in_one_transaction() -> None:
    action = nft_change(nft(SSH))
    assert action.do.startswith(
        "new='insert rule inet filter input ip saddr { 10.0.0.1-10.0.0.2 } tcp dport {"
    )
    assert "accept comment" in action.do
    assert "delete rule inet filter input handle" in action.do
    assert action.do.count("nft -f -") == 1
    assert "nft list chain inet filter input" in action.observe
    digest = action.after
    assert f"remedy {digest}" in action.do
    assert (action.before, len(digest)) == ("", 12)
    assert digest not in action.undo


def test_a_rule_of_another_opening_is_put_in_its_place_and_comes_back() -> None:
    old = Opening(spans.of_networks(["10.0.0.9"]), ((1, 1),))
    expression = json.dumps([match("saddr", "10.0.0.9", "ip"), match("dport", 1), {"accept": None}])
    ruleset = nft(SSH)
    own = NftRule(9, f"remedy {old.incoming.digest}", expression)
    (chain,) = ruleset.chains
    held = ruleset.model_copy(update={"chains": (chain._replace(rules=(own, *chain.rules)),)})
    action = nft_change(held)
    assert action.before == old.incoming.digest
    assert old.incoming.digest in action.undo
    assert "10.0.0.9" in action.undo
    other = NftRule(9, "remedyish", expression)
    foreign = chain._replace(rules=(other,))
    assert nftables.own_rules(foreign) == ()
    assert nftables.own_rules(chain._replace(rules=(own, other))) == (own,)


def test_a_chain_that_keeps_nobody_out_is_left_alone() -> None:
    plan = plan_of(
        fleet_of(walled("a", "10.0.0.1", nft=nft(policy="accept")), walled("b", "10.0.0.2"))
    )
    assert (plan.changes, plan.findings) == ((), ())


def test_tables_of_iptables_are_not_looked_at_twice() -> None:
    drop = NftChain("ip", "filter", "INPUT", "input", 0, "drop", ())
    ruleset = NftRuleset(tables=(), chains=(drop,), sets=())
    plan = plan_of(
        fleet_of(walled("a", "10.0.0.1", nft=ruleset, iptables=saved()), walled("b", "10.0.0.2"))
    )
    assert [c.title.partition(":")[0] for c in plan.for_host("a")] == ["iptables"]
    alone = plan_of(fleet_of(walled("a", "10.0.0.1", nft=ruleset), walled("b", "10.0.0.2")))
    assert [c.title.partition(":")[0] for c in alone.for_host("a")] == [
        "nftables chain ip filter INPUT"
    ]


def test_only_the_chain_of_firewalld_that_packets_come_in_by_is_judged() -> None:
    early = NftChain("inet", "firewalld", "raw_PREROUTING", "prerouting", -290, "drop", ())
    ruleset = FIREWALLD.model_copy(update={"chains": (*FIREWALLD.chains, early)})
    plan = plan_of(
        fleet_of(
            walled("a", "10.0.0.1", nft=ruleset, firewalld="public\n"), walled("b", "10.0.0.2")
        )
    )
    assert len(plan.for_host("a")) == 1
    assert len([f for f in plan.findings if f.host == "a"]) == 1


@given(
    st.lists(
        st.sampled_from(
            [ESTABLISHED, SSH, [{"drop": None}], [match("dport", 40000), {"drop": None}]]
        ),
        max_size=4,
    ),
    st.sampled_from(["accept", "drop"]),
    st.booleans(),
)
def test_any_rules_of_nftables_converge_and_come_back(
    rules: list[object], policy: str, kept: bool
) -> None:
    files = [file("/etc/nftables.conf", NFT_CONF)] if kept else []
    settled(
        fleet(
            walled("a", "10.0.0.1", files=files, nft=nft(*rules, policy=policy)),
            walled("b", "10.0.0.2"),
        )
    )


def test_digests_are_those_of_the_texts() -> None:
    text = f"{','.join(spans.address_ranges(OPENED_PEERS))} {','.join(spans.port_texts(OPENING.ports, '-'))}"
    assert OPENING.incoming.digest == hashlib.sha256(text.encode()).hexdigest()[:12]
