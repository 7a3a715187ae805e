"""iptables: what rules do, files of rules, and any rules of others."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import firewalld, iptables, nftables, spans, ufw
from remedy.firewall.step import Opening
from tests.unit.build import fleet
from tests.unit.firewall.firewall_bench import (
    PORTS,
    file,
    is_dropped,
    judgements,
    saved,
    settled,
    walled,
)


@pytest.mark.parametrize(
    ("rules", "policy", "open_"),
    [
        ([], "ACCEPT", True),
        ([], "DROP", False),
        (["-A INPUT -j REJECT"], "ACCEPT", False),
        (["-A INPUT -p udp -j DROP"], "ACCEPT", True),
        (["-A INPUT -p tcp -m tcp --dport 22 -j f2b", "-A f2b -s 10.0.0.2/32 -j REJECT"], "ACCEPT", True),
        (["-A INPUT -m mark --mark 0x8000/0x8000 -j DROP"], "ACCEPT", True),
        (["-A INPUT ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP"], "ACCEPT", True),
        (["-A INPUT -m conntrack --ctstate INVALID -j DROP"], "ACCEPT", True),
        (["-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"], "DROP", False),
        (["-A INPUT -i lo -j ACCEPT"], "DROP", False),
        (["-A INPUT -i eth0 -j ACCEPT"], "DROP", True),
        (["-A INPUT -i eth+ -j ACCEPT"], "DROP", True),
        (["-A INPUT -s 10.0.0.0/24 -j ACCEPT"], "DROP", True),
        (["-A INPUT -s 10.0.0.2/32 -j ACCEPT"], "DROP", False),
        (["-A INPUT ! -s 10.0.0.0/24 -j DROP"], "ACCEPT", True),
        (["-A INPUT -p tcp -m multiport --dports 29400:65535 -j ACCEPT"], "DROP", True),
        (["-A INPUT -p tcp -m tcp --dport 29400:60000 -j ACCEPT"], "DROP", False),
        (["-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP"], "ACCEPT", False),
        (["-A INPUT -m recent --rcheck --name bad --rsource -j DROP"], "ACCEPT", True),
        (["-A INPUT -g own", "-A own -j RETURN", "-A INPUT -j DROP"], "ACCEPT", True),
        (["-A INPUT -j own", "-A own -j RETURN", "-A INPUT -j DROP"], "ACCEPT", False),
        (['-A INPUT -m comment --comment "-j DROP" -j ACCEPT'], "DROP", True),
        (["-A INPUT -j LOG --log-prefix \"- a \"", "-A INPUT -j NFQUEUE --queue-num 1"], "ACCEPT", True),
    ],
)  # fmt: skip
def test_what_rules_of_iptables_do(rules: list[str], policy: str, open_: bool) -> None:
    chains = {rule.split()[1] for rule in rules} - {"INPUT"}
    text = saved(*rules, policy=policy)
    for name in chains:
        text = text.replace(":OUTPUT ACCEPT\n", f":OUTPUT ACCEPT\n:{name} -\n")
    assert is_dropped(judgements(iptables=text)) is not open_


def test_two_thousand_peers_are_few_rules() -> None:
    start = int(IPv4Address("10.1.0.0"))
    row = Opening(((start, start + 1999),), PORTS)
    assert len(iptables.accepts(iptables.INCOMING.name, row.incoming)) < 10
    scattered = Opening(tuple((start + 3 * n, start + 3 * n) for n in range(2000)), PORTS)
    assert nftables.rule_text(scattered.incoming).count("accept") == 1
    assert firewalld.policy_text(scattered.incoming).count("<rule") == 3


rules_of_others = st.lists(
    st.sampled_from(
        [
            "-A INPUT -i lo -j ACCEPT",
            "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT",
            "-A INPUT -s 10.0.0.0/30 -j ACCEPT",
            "-A INPUT -j REJECT --reject-with icmp-host-prohibited",
            "-A INPUT -p tcp -m tcp --dport 40000 -j DROP",
            "-A FORWARD -j DOCKER-USER",
            iptables.INCOMING.jump,
            "-A REMEDY-PEERS -s 10.0.0.9/32 -p tcp -m tcp --dport 29500 -j ACCEPT",
        ]
    ),
    max_size=6,
    unique=True,
)


@given(rules_of_others, st.sampled_from(["ACCEPT", "DROP"]), st.booleans(), st.booleans())
def test_any_rules_of_iptables_converge_and_come_back(
    rules: list[str], policy: str, legacy: bool, kept: bool
) -> None:
    text = saved(*sorted(rules, key=lambda r: r.split()[1]), policy=policy)
    if any("REMEDY-PEERS" in rule for rule in rules):
        text = text.replace(":OUTPUT ACCEPT\n", ":OUTPUT ACCEPT\n:REMEDY-PEERS -\n")
    files = [file("/etc/iptables/rules.v4", text.encode())] if kept else []
    name = "iptables_legacy" if legacy else "iptables"
    settled(fleet(walled("a", "10.0.0.1", files=files, **{name: text}), walled("b", "10.0.0.2")))


openings = st.builds(
    Opening,
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=4).map(
        lambda pairs: spans.merge((low * 256, low * 256 + more) for low, more in pairs)
    ),
    st.lists(st.tuples(st.integers(1, 60000), st.integers(0, 99)), min_size=1, max_size=20).map(
        lambda pairs: spans.merge((low, low + more) for low, more in pairs)
    ),
)

foreign = st.lists(
    st.sampled_from(
        [
            b"# a comment\n",
            b"*filter\n",
            b"*nat\n",
            b":INPUT DROP [12:345]\n",
            b"[1:2] -A INPUT -j DROP\n",
            b"-A INPUT -p tcp --dport 22 -j ACCEPT\r\n",
            b"COMMIT\n",
            b"\xff\xfe\n",
            b"### RULES ###\n\n",
            b"### tuple ### deny any any 0.0.0.0/0 any 10.0.0.0/8 in\n",
            b"no newline",
        ]
    ),
    max_size=8,
).map(b"".join)


@given(foreign, openings, openings)
def test_files_of_rules_keep_every_byte_of_others(
    content: bytes, one: Opening, two: Opening
) -> None:
    first = iptables.edit_saved(content, one)
    assert iptables.edit_saved(first, one) == first
    assert iptables.edit_saved(iptables.edit_saved(first, two), one) == first
    assert iptables.edit_saved(first, Opening()) == content
    written = ufw.edit_rules(content, one)
    if written is None:
        # Only a line of its own begins the rules.
        assert b"### RULES ###" not in content.splitlines()
        return
    assert ufw.edit_rules(written, one) == written
    assert ufw.edit_rules(written, Opening()) == content
    assert ufw.live_lines(written)


@given(openings)
def test_rules_say_what_they_were_made_for(opening: Opening) -> None:
    for side in (opening.incoming, replace(opening.incoming, way="out")):
        assert iptables.side_of(side.way, iptables.accepts("x", side)) == side
    for part in iptables.port_parts(opening.ports):
        assert sum(2 if ":" in port else 1 for port in part.split(",")) <= iptables.PORT_SLOTS
