"""Texts of iptables-save: each table by itself, its chains and their rules."""

from __future__ import annotations

from remedy.firewall import spans
from remedy.firewall.iptables_rules import (
    chains,
    filter_lines,
    has_chain,
    read_rule,
    rules_of,
)
from remedy.firewall.packets import EVERYTHING, Flow

IN = Flow("in", ("eth0",), spans.of_networks(["10.0.0.1"])[0][0], symmetric=True)


def test_a_rule_keeps_its_words_and_quoted_text_is_one_word() -> None:
    line = '-A INPUT -m comment --comment "! -p udp -j DROP" -s 10.0.0.2/32 -j ACCEPT'
    found = read_rule(line)
    assert (found.words, found.action) == (line, "accept")
    assert read_rule('-A INPUT -m comment --comment "torn -j DROP').action == "drop"


TEXT = """\
*nat
:PREROUTING ACCEPT
:INPUT ACCEPT
-A INPUT -p tcp --dport 1 -j ACCEPT
COMMIT
*raw
:PREROUTING ACCEPT
-A PREROUTING -j DROP
COMMIT
*filter
:INPUT DROP
:FORWARD ACCEPT
:own -
-A INPUT -j own
-A INPUT -j XUNHEARD
-A own -p udp -j DROP
-A own -p tcp --dport 2 -j RETURN
-A owner -j ACCEPT
COMMIT
-A INPUT -j lost
"""


def test_each_table_is_read_by_itself() -> None:
    assert rules_of(TEXT, "INPUT") == ("-A INPUT -j own", "-A INPUT -j XUNHEARD")
    assert rules_of(TEXT, "PREROUTING", "raw") == ("-A PREROUTING -j DROP",)
    assert rules_of(TEXT, "own") == ("-A own -p udp -j DROP", "-A own -p tcp --dport 2 -j RETURN")
    assert [line for line in filter_lines(TEXT) if line.startswith((":", "*", "C"))] == [
        ":INPUT DROP", ":FORWARD ACCEPT", ":own -",
    ]  # fmt: skip
    assert [has_chain(TEXT, name) for name in ("own", "PREROUTING", "ow", "owner")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_chains_have_their_policy_and_the_rules_that_can_match() -> None:
    found = chains(TEXT, "filter", IN, EVERYTHING)
    assert {name: found[name].policy for name in found} == {
        "INPUT": "drop", "FORWARD": "accept", "own": "", "owner": "",
    }  # fmt: skip
    assert [rule.action for rule in found["own"].rules] == ["return"]
    jump, unheard = found["INPUT"].rules
    assert (jump.action, jump.target) == ("jump", "own")
    assert (unheard.action, unheard.certain) == ("drop", False)
    (raw,) = chains(TEXT, "raw", IN, EVERYTHING)["PREROUTING"].rules
    assert raw.words == "-t raw -A PREROUTING -j DROP"
