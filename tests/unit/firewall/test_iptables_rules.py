"""Lines of iptables-save: which new connections of a peer a rule is about, and whether that is certain."""

from __future__ import annotations

import pytest

from remedy.firewall import spans
from remedy.firewall.iptables_rules import chains, filter_lines, has_chain, read_rule, rules_of
from remedy.firewall.step import Path
from remedy.firewall.traffic import Rule

WAY = Path("eth0", "10.0.0.1")
LAST = 2**32 - 1


def rule(conditions: str, path: Path = WAY) -> Rule | None:
    return read_rule(f"-A INPUT {conditions}", path)


def read(conditions: str, path: Path = WAY) -> Rule:
    found = rule(conditions, path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("target", "action", "chain"),
    [
        ("-j ACCEPT", "accept", ""),
        ("-j DROP", "drop", ""),
        ("-j REJECT --reject-with tcp-reset", "drop", ""),
        ("-j RETURN", "return", ""),
        ("-j own", "jump", "own"),
        ("-g own", "goto", "own"),
        ("-j LOG --log-prefix x --log-level 4", "pass", ""),
        ("-j NFLOG --nflog-group 2", "pass", ""),
        ("-j ULOG", "pass", ""),
        ("-j AUDIT --type accept", "pass", ""),
        ("-j TRACE", "pass", ""),
        ("-j CT --notrack", "pass", ""),
        ("-j MARK --set-xmark 0x1/0xffffffff", "pass", ""),
        ("-j CONNMARK --save-mark", "pass", ""),
        ("-j TCPMSS --clamp-mss-to-pmtu", "pass", ""),
        ("-j NOTRACK", "pass", ""),
        ("-p tcp", "pass", ""),
    ],
)
def test_what_a_rule_does_with_what_it_matches(target: str, action: str, chain: str) -> None:
    found = read(target)
    assert (found.action, found.target) == (action, chain)


@pytest.mark.parametrize(
    "target", ["QUEUE", "NFQUEUE --queue-num 1", "TPROXY --on-port 1", "SYNPROXY"]
)
def test_what_a_program_decides_is_not_certain(target: str) -> None:
    found = read(f"-p tcp -j {target}")
    assert (found.action, found.certain) == ("pass", False)


@pytest.mark.parametrize(
    "condition",
    [
        "-p tcp", "--protocol tcp", "-p 6", "-p all", "-p 0", "! -p udp",
        "-i eth0", "--in-interface eth0", "-i eth+", "-i +", "! -i lo", "! -o eth0",
        "-d 10.0.0.1/32", "--destination 10.0.0.0/24", "-d 10.9.0.0/16,10.0.0.0/16", "! -d 127.0.0.0/8",
        "-m conntrack --ctstate NEW", "-m state --state NEW,ESTABLISHED", "-m conntrack ! --ctstate INVALID",
        "-m addrtype --dst-type LOCAL", "-m addrtype ! --dst-type BROADCAST",
        "-p tcp --syn", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN", "--tcp-flags ALL SYN",
        "--tcp-flags FIN,ACK NONE", "! --tcp-flags ALL NONE",
        "-m mark --mark 0x0", "-m mark --mark 0/0xff", "-m mark ! --mark 1",
        "-m comment --comment hello", "-m comment --comment -dashes",
    ],
)  # fmt: skip
def test_conditions_that_hold_for_a_new_connection_leave_a_rule_certain(condition: str) -> None:
    found = read(f"{condition} -j ACCEPT")
    assert (found.action, found.certain, found.sources, found.ports) == ("accept", True, None, None)


@pytest.mark.parametrize(
    "condition",
    [
        "-p udp", "! -p tcp", "-p 17", "-i lo", "! -i eth0", "! -i eth+", "-i eth", "-o eth0",
        "--out-interface lo",
        "-d 10.0.0.2/32", "! -d 10.0.0.0/24", "--ctstate ESTABLISHED,RELATED", "! --ctstate NEW",
        "--state INVALID", "--dst-type BROADCAST", "! --dst-type LOCAL", "! --syn",
        "--tcp-flags SYN,ACK SYN,ACK", "--tcp-flags ALL NONE", "--tcp-flags FIN,ACK FIN",
        "--mark 0x8000/0x8000", "--mark 1", "! --mark 0",
    ],
)  # fmt: skip
def test_a_rule_that_no_new_connection_matches_is_none(condition: str) -> None:
    assert rule(f"{condition} -j DROP") is None


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ("-i eth0", Path(None, "10.0.0.1")),
        ("! -i eth0", Path(None, "10.0.0.1")),
        ("-d 10.0.0.1", Path("eth0", None)),
        ("-m limit --limit 3/min", WAY),
        ("-m recent --rcheck --name bad --rsource", WAY),
        ("-m set --match-set peers src", WAY),
        ("--dst-type LOCAL --limit-iface-in", WAY),
    ],
)
def test_what_the_rules_alone_cannot_decide_is_not_certain(condition: str, path: Path) -> None:
    assert read(f"{condition} -j ACCEPT", path).certain is False


def test_what_is_uncertain_stays_so_whatever_follows() -> None:
    assert read("-m limit --limit 3/min -p tcp --syn -j ACCEPT").certain is False


@pytest.mark.parametrize(
    ("condition", "sources"),
    [
        ("-s 10.0.0.2", ["10.0.0.2"]),
        ("--source 10.0.0.0/30", ["10.0.0.0/30"]),
        ("-s 10.0.0.2,10.0.0.9/32", ["10.0.0.2", "10.0.0.9"]),
        ("-s 10.0.0.0/29 -s 10.0.0.4/30", ["10.0.0.4/30"]),
    ],
)
def test_sources_are_those_that_every_condition_names(condition: str, sources: list[str]) -> None:
    assert read(f"{condition} -j ACCEPT").sources == spans.of_networks(sources)


def test_a_negated_source_is_every_other_one() -> None:
    assert read("! -s 0.0.0.0/1 -j DROP").sources == ((2**31, LAST),)
    # A negation is for the next condition only.
    assert read("! -s 0.0.0.0/1 -s 0.0.0.0/0 -p tcp -j DROP").sources == ((2**31, LAST),)


@pytest.mark.parametrize(
    ("condition", "ports"),
    [
        ("--dport 22", ((22, 22),)),
        ("--destination-port 22", ((22, 22),)),
        ("-m multiport --dports 80,443,8000:8010", ((80, 80), (443, 443), (8000, 8010))),
        ("--destination-ports 1:2,3", ((1, 3),)),
        ("--dport :1023", ((0, 1023),)),
        ("--dport 1024:", ((1024, 65535),)),
        ("! --dport 1:65535", ((0, 0),)),
        ("! --dport :22", ((23, 65535),)),
        ("--dport 10:20 --dports 15:30,40", ((15, 20),)),
    ],
)
def test_ports_are_those_that_every_condition_names(
    condition: str, ports: tuple[tuple[int, int], ...]
) -> None:
    assert read(f"-p tcp {condition} -j ACCEPT").ports == ports


def test_a_rule_keeps_its_words_and_quoted_text_is_one_word() -> None:
    line = '-A INPUT -m comment --comment "! -p udp -j DROP" -s 10.0.0.2/32 -j ACCEPT'
    found = read_rule(line, WAY)
    assert found is not None
    assert found.words == line
    assert (found.action, found.sources) == ("accept", spans.of_networks(["10.0.0.2"]))
    torn = read_rule('-A INPUT -m comment --comment "torn -j DROP', WAY)
    assert torn is not None
    assert torn.action == "drop"


TEXT = """\
*nat
:PREROUTING ACCEPT
:INPUT ACCEPT
-A INPUT -p tcp --dport 1 -j ACCEPT
COMMIT
*filter
:INPUT DROP
:FORWARD ACCEPT
:own -
-A INPUT -j own
-A own -p udp -j DROP
-A own -p tcp --dport 2 -j RETURN
-A owner -j ACCEPT
COMMIT
-A INPUT -j lost
"""


def test_only_the_table_filter_is_read() -> None:
    assert rules_of(TEXT, "INPUT") == ("-A INPUT -j own",)
    assert rules_of(TEXT, "own") == ("-A own -p udp -j DROP", "-A own -p tcp --dport 2 -j RETURN")
    assert [line for line in filter_lines(TEXT) if line.startswith((":", "*", "C"))] == [
        ":INPUT DROP", ":FORWARD ACCEPT", ":own -",
    ]  # fmt: skip
    assert [has_chain(TEXT, name) for name in ("own", "PREROUTING", "ow", "owner")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_chains_have_their_policy_and_the_rules_that_can_match() -> None:
    found = chains(TEXT, WAY)
    assert {name: chain.policy for name, chain in found.items()} == {
        "INPUT": "drop", "FORWARD": "accept", "own": "", "owner": "",
    }  # fmt: skip
    assert [rule.action for rule in found["own"].rules] == ["return"]
    assert [rule.target for rule in found["INPUT"].rules] == ["own"]
