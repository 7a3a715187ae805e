"""A configuration of nftables: its chains, sets, variables and included files, and what takes them away."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from remedy.firewall.boot.nft_rule import NotReadError
from remedy.firewall.boot.nft_text import DEEPEST, read_config
from remedy.probe import NftChain, NftRuleset


def nothing(pattern: str) -> Sequence[str]:
    raise NotReadError(pattern)


def read(text: str, **files: str) -> NftRuleset:
    return read_config(text, lambda name: [files[name]])


def verdicts(chain: NftChain) -> list[str]:
    return [next(iter(json.loads(rule.expression)[-1])) for rule in chain.rules]


def shape(ruleset: NftRuleset) -> dict[str, list[str]]:
    """Return how the rules of each chain end."""
    return {f"{c.family} {c.table} {c.name}": verdicts(c) for c in ruleset.chains}


def sets(ruleset: NftRuleset) -> dict[str, dict[str, Any]]:
    return {f"{s.family} {s.table} {s.name}": json.loads(s.definition) for s in ruleset.sets}


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("priority 7", 7),
        ("priority -7", -7),
        ("priority raw", -300),
        ("priority mangle", -150),
        ("priority dstnat", -100),
        ("priority filter", 0),
        ("priority security", 50),
        ("priority srcnat", 100),
        ("priority filter + 5", 5),
        ("priority raw - 5", -305),
        ("priority mangle+10", -140),
        ("", 0),
    ],
)
@pytest.mark.parametrize("hook", ["input", "output"])
def test_a_base_chain_has_its_hook_and_priority(text: str, priority: int, hook: str) -> None:
    (chain,) = read(f"table ip t {{ chain c {{ type filter hook {hook} {text}; }} }}").chains
    assert (chain.hook, chain.priority, chain.policy) == (hook, priority, "accept")


@pytest.mark.parametrize(
    ("body", "policy"),
    [
        ("type filter hook input priority 0; policy drop;", "drop"),
        ("policy drop; type filter hook input priority 0;", "drop"),
        ('comment "mine"; type filter hook input priority 0; devices = { eth0 };', "accept"),
        ("", ""),
    ],
)
def test_the_policy_of_a_chain(body: str, policy: str) -> None:
    (chain,) = read(f"table ip t {{ chain c {{ {body} }} }}").chains
    assert (chain.policy, chain.rules) == (policy, ())


@pytest.mark.parametrize("family", ["ip", "ip6", "inet", "arp", "bridge", "netdev"])
def test_a_table_has_a_family(family: str) -> None:
    ruleset = read(f"table {family} t {{ chain c {{ drop; }} }}")
    assert ruleset.tables == ((family, "t"),)
    assert shape(ruleset) == {f"{family} t c": ["drop"]}


def test_a_table_without_a_family_is_of_ipv4() -> None:
    assert read("table t").tables == (("ip", "t"),)


@pytest.mark.parametrize(
    "other",
    [
        "counter web { packets 0 bytes 0; }",
        "flowtable f { hook ingress priority 0; devices = { eth0, eth1 }; }",
        "ct helper ftp { type \"ftp\" protocol tcp; }",
        "flags dormant;",
        "limit slow { rate 5/second; }",
    ],
)  # fmt: skip
def test_what_loses_no_packet_is_passed_over(other: str) -> None:
    ruleset = read(
        f"table ip t {{ {other}\n chain c {{ drop; }}\n {other}\n chain d {{ accept; }} }}"
    )
    assert shape(ruleset) == {"ip t c": ["drop"], "ip t d": ["accept"]}


def test_a_comment_of_a_rule_is_kept() -> None:
    (chain,) = read('table ip t { chain c { drop comment "why"; accept; } }').chains
    assert [rule.comment for rule in chain.rules] == ["why", ""]


SET = "table ip t {{ set s {{ {} }} }}"


@pytest.mark.parametrize(
    ("body", "definition"),
    [
        ("", {}),
        ("type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 };",
         {"type": "ipv4_addr", "elem": ["10.0.0.1", "10.0.0.2"]}),
        ("typeof ip saddr; elements = { 10.0.0.1 };", {"type": "ip saddr", "elem": ["10.0.0.1"]}),
        ("type ipv4_addr; flags interval;", {"type": "ipv4_addr"}),
        ("type ipv4_addr; flags dynamic;", {"type": "ipv4_addr", "flags": ["dynamic"]}),
        ("type ipv4_addr; flags interval, timeout;", {"type": "ipv4_addr", "flags": ["dynamic"]}),
        ("elements = { 10.0.0.1 . 22 };", {"elem": [{"unread": "{ 10.0.0.1 . 22 }"}]}),
        ("elements = 7;", {"elem": [{"unread": "7"}]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["set", "map"])
def test_a_set_has_its_elements(body: str, definition: dict[str, object], kind: str) -> None:
    expected = {"name": "s", "elem": [], **definition}
    for text in (f"table ip t {{ {kind} s {{ {body} }} }}", f"add {kind} ip t s {{ {body} }}"):
        assert sets(read(text)) == {"ip t s": expected}


def test_elements_that_cannot_be_read_are_shown_in_part() -> None:
    ((element),) = sets(read(SET.format(f"elements = {{ a . {'b' * 500} }}")))["ip t s"]["elem"]
    assert len(element["unread"]) == 80


TWO = """\
table ip t {
  set s { elements = { 1 } }
  chain c { drop; }
  chain d { accept; }
}
table inet u {
  set s { elements = { 2 } }
  chain c { reject; }
}
"""
ALL = {"ip t c": ["drop"], "ip t d": ["accept"], "inet u c": ["reject"]}


@pytest.mark.parametrize(
    ("command", "chains", "kept"),
    [
        ("flush ruleset", {}, ""),
        ("flush table t", {"ip t c": [], "ip t d": [], "inet u c": ["reject"]}, "ip t s, inet u s"),
        ("flush table inet u", {**ALL, "inet u c": []}, "ip t s, inet u s"),
        ("flush chain t c", {**ALL, "ip t c": []}, "ip t s, inet u s"),
        ("flush chain inet t c", ALL, "ip t s, inet u s"),
        ("delete table t", {"inet u c": ["reject"]}, "inet u s"),
        ("destroy table inet u", {"ip t c": ["drop"], "ip t d": ["accept"]}, "ip t s"),
        ("delete set inet u s", ALL, "ip t s"),
        ("delete set t s", ALL, "inet u s"),
        ("list ruleset", ALL, "ip t s, inet u s"),
        ("monitor ruleset", ALL, "ip t s, inet u s"),
        ("describe tcp dport", ALL, "ip t s, inet u s"),
        ("add counter ip t web { packets 0 bytes 0 }", ALL, "ip t s, inet u s"),
        ("add quota ip t q", ALL, "ip t s, inet u s"),
        ("add table ip t", ALL, "ip t s, inet u s"),
        ("create chain ip t c", ALL, "ip t s, inet u s"),
        ("add rule ip t c accept", {**ALL, "ip t c": ["drop", "accept"]}, "ip t s, inet u s"),
        ("insert rule ip t c accept", {**ALL, "ip t c": ["accept", "drop"]}, "ip t s, inet u s"),
        ("add rule t new accept", {**ALL, "ip t new": ["accept"]}, "ip t s, inet u s"),
        ("add chain ip t e { accept; }", {**ALL, "ip t e": ["accept"]}, "ip t s, inet u s"),
        ("add chain ip t c { accept; }", {**ALL, "ip t c": ["drop", "accept"]}, "ip t s, inet u s"),
        ("create table ip t { chain e { drop; } }", {**ALL, "ip t e": ["drop"]}, "ip t s, inet u s"),
    ],
)  # fmt: skip
def test_a_command_changes_what_it_names(
    command: str, chains: dict[str, list[str]], kept: str
) -> None:
    ruleset = read(f"{TWO}{command}\n")
    assert shape(ruleset) == chains
    assert ", ".join(sets(ruleset)) == kept
    places = {" ".join(table) for table in ruleset.tables}
    assert places == {name.rpartition(" ")[0] for name in (*chains, *sets(ruleset))}


def test_elements_are_added_to_a_set() -> None:
    there = sets(read(f"{TWO}add element t s {{ 7, 8 }}\nadd element t new {{ 9 }}\n"))
    assert (there["ip t s"]["elem"], there["ip t new"]["elem"]) == ([1, 7, 8], [9])


@pytest.mark.parametrize("verb", ["define", "redefine"])
def test_a_variable_stands_for_its_value(verb: str) -> None:
    text = f"define A = 1\n{verb} A = {{ 22,\n 23 }}\ntable ip t {{ chain c {{ tcp dport $A drop\n }} }}"
    (rule,) = read(f"{text}\nundefine A\n").chains[0].rules
    assert json.loads(rule.expression)[0]["match"]["right"] == {"set": [22, 23]}


def test_quotes_make_a_text_of_what_looks_like_something_else() -> None:
    text = 'table ip t { chain c { iifname "$A" log prefix "{;}" drop\n accept } }'
    assert shape(read(text)) == {"ip t c": ["drop", "accept"]}


def test_lines_may_go_on_and_remarks_count_for_nothing() -> None:
    text = (
        "#!/usr/sbin/nft -f\ntable ip t { # {\n chain c {\n tcp dport \\\n 22 drop # accept\n }\n}"
    )
    assert shape(read(text)) == {"ip t c": ["drop"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('table ip t { chain c { log prefix "x', "there is no sense in '\"x'"),
        ("frobnicate", "'frobnicate' is no command of nft"),
        ("table", "it ends in the middle"),
        ("table ip t {", "it ends in the middle"),
        ("table ip t { chain c { drop", "it ends in the middle"),
        ("table ip t { chain c drop }", "a block is missing before"),
        ("table ip t { chain c { tcp dport $A drop\n} }", "$A is defined nowhere"),
        ("define A 22", "define A has no value"),
        ('table ip t { include "x" }', "it includes a file inside a table"),
        ("delete rule ip t c handle 3", "`delete rule ip t c handle 3` is not followed here"),
        ("flush map ip t m", "`flush map ip t m` is not followed here"),
        ("delete table", "`delete table` is not followed here"),
        ("delete set t", "`delete set t` is not followed here"),
        ("flush chain", "`flush chain` is not followed here"),
        ("reset", "`reset ` is not followed here"),
        ("reset counters", "`reset counters` is not followed here"),
        ("add rule ip t c handle 3 drop", "at a place that is counted"),
        ("add rule ip t c index 3 drop", "at a place that is counted"),
        ("insert rule ip t c position 3 drop", "at a place that is counted"),
        ("replace rule ip t c drop", "at a place that is counted"),
    ],
)
def test_what_cannot_be_followed_says_why(text: str, reason: str) -> None:
    with pytest.raises(NotReadError, match=re.escape(reason)):
        read_config(text, nothing)


def test_senseless_text_is_shown_in_part() -> None:
    with pytest.raises(NotReadError) as raised:
        read_config('"' + "x" * 500, nothing)
    assert len(str(raised.value)) < 50


@pytest.mark.parametrize(("files", "is_read"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_files_include_one_another_only_so_deep(files: int, is_read: bool) -> None:
    texts = {str(n): f'include "{n - 1}"\n' for n in range(1, files)}
    texts["0"] = "table ip t\n"
    text = f'include "{files - 1}"\n'
    if is_read:
        assert read(text, **texts).tables == (("ip", "t"),)
    else:
        with pytest.raises(NotReadError, match="include one another without end"):
            read(text, **texts)


def test_an_included_file_has_the_variables_of_the_other() -> None:
    text = 'define P = 22\ninclude "a"\nadd rule ip t c tcp dport $Q accept\n'
    included = "define Q = 23\ntable ip t { chain c { tcp dport $P drop; } }\n"
    assert shape(read(text, a=included)) == {"ip t c": ["drop", "accept"]}
