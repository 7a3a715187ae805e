"""What is given to iptables-restore and written into the files it is loaded from at boot."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import firewalld, iptables, nftables, spans
from remedy.firewall.iptables import (
    INCOMING,
    PORT_SLOTS,
    IptablesTable,
    accepts,
    apply_restore,
    edit_saved,
    live_command,
    port_parts,
    restore_of,
    restore_text,
    side_of,
)
from remedy.firewall.iptables_rules import has_chain, rules_of
from remedy.firewall.step import Opening, Side
from remedy.plan import CommandAction

OWN, BASE, JUMP = INCOMING.name, INCOMING.base, INCOMING.jump
PEERS = spans.of_networks(["10.0.0.2", "10.0.0.4/30"])
OPENING = Opening(PEERS, ((22, 22), (29500, 29563)))
OTHER = Opening(spans.of_networks(["10.0.0.9"]), ((80, 80),))
FOREIGN = "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT"


def saved(*rules: str, chain: bool = False) -> str:
    own = f":{OWN} -\n" if chain else ""
    body = "".join(f"{rule}\n" for rule in rules)
    return f"*nat\n:INPUT ACCEPT\nCOMMIT\n*filter\n:INPUT DROP\n:OUTPUT ACCEPT\n{own}{body}COMMIT\n"


def test_a_multiport_match_holds_fifteen_ports_and_a_range_counts_two() -> None:
    singles = tuple((2 * n, 2 * n) for n in range(1, 17))
    ranges = tuple((10 * n, 10 * n + 1) for n in range(1, 9))
    assert PORT_SLOTS == 15
    assert [len(part.split(",")) for part in port_parts(singles[:15])] == [15]
    assert [len(part.split(",")) for part in port_parts(singles)] == [15, 1]
    assert [len(part.split(",")) for part in port_parts(ranges)] == [7, 1]
    # 13 ports and a range make 15; with 14 ports the range no longer fits.
    assert len(port_parts((*singles[:13], (500, 600)))) == 1
    assert len(port_parts((*singles[:14], (500, 600)))) == 2
    assert port_parts(((1, 1), (3, 9))) == ("1,3:9",)
    assert port_parts(()) == ()


def test_rules_are_spelled_as_iptables_save_prints_them() -> None:
    single, several = Opening(PEERS[:1], ((22, 22),)), Opening(PEERS[:1], ((22, 22), (80, 90)))
    assert accepts(OWN, single.incoming) == (
        f"-A {OWN} -s 10.0.0.2/32 -p tcp -m tcp --dport 22 -j ACCEPT",
    )
    assert accepts(OWN, several.incoming) == (
        f"-A {OWN} -s 10.0.0.2/32 -p tcp -m multiport --dports 22,80:90 -j ACCEPT",
    )
    assert accepts("u", single.incoming, explicit=False) == (
        "-A u -p tcp --dport 22 -s 10.0.0.2 -j ACCEPT",
    )
    assert accepts("u", Opening(PEERS[:1], ((80, 90),)).incoming, explicit=False) == (
        "-A u -p tcp -m multiport --dports 80:90 -s 10.0.0.2 -j ACCEPT",
    )
    everybody = Opening(spans.ALL_ADDRESSES, ((22, 22),))
    assert accepts(OWN, everybody.incoming) == (f"-A {OWN} -p tcp -m tcp --dport 22 -j ACCEPT",)
    assert len(accepts(OWN, OPENING.incoming)) == 2


@pytest.mark.parametrize(
    "line", ["-j DROP", "-p udp -j ACCEPT", "-m limit --limit 3/min -j ACCEPT", "-p tcp"]
)
def test_rules_that_remedy_would_not_write_are_no_opening(line: str) -> None:
    assert side_of("in", [*accepts(OWN, OPENING.incoming), f"-A {OWN} {line}"]) is None
    assert side_of("in", []) is None


def test_a_rule_without_source_or_port_is_open_to_all() -> None:
    assert side_of("in", [f"-A {OWN} -j ACCEPT"]) == Side(
        "in", spans.ALL_ADDRESSES, spans.ALL_PORTS
    )


STATES = {
    "nothing of ours": saved(FOREIGN),
    "another opening": saved(JUMP, FOREIGN, *accepts(OWN, OTHER.incoming), chain=True),
    "the call is not first": saved(FOREIGN, JUMP, *accepts(OWN, OPENING.incoming), chain=True),
    "two calls": saved(JUMP, FOREIGN, JUMP, *accepts(OWN, OPENING.incoming), chain=True),
    "a chain that nothing calls": saved(FOREIGN, *accepts(OWN, OPENING.incoming), chain=True),
    "an empty chain": saved(FOREIGN, chain=True),
    "no rules": saved(),
    "no table": "*nat\n:INPUT ACCEPT\nCOMMIT\n",
}


@pytest.mark.parametrize("before", STATES.values(), ids=STATES.keys())
@pytest.mark.parametrize("opening", [OPENING, OTHER, Opening()])
def test_a_restore_leads_to_the_opening_and_touches_no_other_rule(
    before: str, opening: Opening
) -> None:
    after = apply_restore(before, restore_text(before, opening))
    wanted = accepts(OWN, opening.incoming)
    assert rules_of(after, OWN) == wanted
    assert has_chain(after, OWN) is bool(wanted)
    base = rules_of(after, BASE)
    if wanted:
        assert base[0] == JUMP
    assert base.count(JUMP) == bool(wanted)
    assert [line for line in base if line != JUMP] == [
        x for x in rules_of(before, BASE) if x != JUMP
    ]
    assert after.startswith("*nat\n:INPUT ACCEPT\nCOMMIT\n*filter\n")
    assert after.endswith("COMMIT\n")


def test_a_restore_is_one_table_and_one_commit_and_leaves_a_right_call_alone() -> None:
    right = saved(JUMP, FOREIGN, *accepts(OWN, OTHER.incoming), chain=True)
    lines = restore_text(right, OPENING).splitlines()
    assert lines == ["*filter", f":{OWN} - [0:0]", *accepts(OWN, OPENING.incoming), "COMMIT"]
    gone = restore_text(right, Opening()).splitlines()
    assert gone == ["*filter", f":{OWN} - [0:0]", f"-D {JUMP[3:]}", f"-X {OWN}", "COMMIT"]
    assert restore_text(saved(FOREIGN), Opening()).splitlines() == ["*filter", "COMMIT"]


@pytest.mark.parametrize("before", STATES.values(), ids=STATES.keys())
@pytest.mark.parametrize("opening", [OPENING, Opening()])
@pytest.mark.parametrize("variant", ["nft", "legacy"])
def test_the_way_back_brings_every_watched_chain_back(
    before: str, opening: Opening, variant: str
) -> None:
    action = CommandAction(
        **live_command(IptablesTable(variant, before), (BASE, OWN), restore_text(before, opening))
    )
    after = apply_restore(before, restore_of(action))
    back = apply_restore(after, restore_of(action.inverse()))
    for chain in (BASE, OWN):
        assert rules_of(back, chain) == rules_of(before, chain)
    assert has_chain(back, OWN) == has_chain(before, OWN)
    assert (action.before == action.after) is (
        [rules_of(before, c) for c in (BASE, OWN)] == [rules_of(after, c) for c in (BASE, OWN)]
    )


def test_what_others_add_meanwhile_stays_on_the_way_back() -> None:
    before = saved(FOREIGN)
    action = CommandAction(
        **live_command(IptablesTable("nft", before), (BASE, OWN), restore_text(before, OPENING))
    )
    later = apply_restore(before, restore_of(action)).replace(
        FOREIGN, f"{FOREIGN}\n-A INPUT -s 10.9.9.9/32 -j DROP"
    )
    back = apply_restore(later, restore_of(action.inverse()))
    assert rules_of(back, BASE) == (FOREIGN, "-A INPUT -s 10.9.9.9/32 -j DROP")


def test_each_variant_is_spoken_to_by_its_own_tool() -> None:
    for variant, other in (("nft", "legacy"), ("legacy", "nft")):
        table = IptablesTable(variant, saved(FOREIGN))
        action = CommandAction(
            **live_command(table, (BASE, OWN), restore_text(table.text, OPENING))
        )
        for text in (action.observe, action.do, action.undo):
            assert f"iptables-{variant}" in text
            assert f"iptables-{other}" not in text
        assert f"iptables-{variant}-restore" in action.do
        assert "--noflush" in action.do
        assert f"-S {BASE}" in action.observe
        assert f"-S {OWN}" in action.observe
    assert IptablesTable("nft", "").name == "iptables"
    assert "legacy" in IptablesTable("legacy", "").name


# --- files that are loaded at boot -------------------------------------------------------------------------

BOOT = b"# mine\n*nat\n:INPUT ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT DROP [1:2]\n[3:4] -A INPUT -j LOG\nCOMMIT\n"


def test_the_chain_is_declared_first_and_called_before_every_rule_of_others() -> None:
    text = edit_saved(BOOT, OPENING).decode()
    lines = text.splitlines()
    assert lines.index(f":{OWN} - [0:0]") == lines.index("*filter") + 1
    first = lines.index(JUMP)
    assert lines[first + 1 : first + 3] == list(accepts(OWN, OPENING.incoming))
    assert lines[first + 3] == "[3:4] -A INPUT -j LOG"
    assert [x for x in lines if OWN not in x] == BOOT.decode().splitlines()


def test_rules_that_are_right_stay_where_a_tool_has_put_them() -> None:
    """netfilter-persistent saves the chain's rules after those of INPUT."""
    text = saved(JUMP, FOREIGN, *accepts(OWN, OPENING.incoming), chain=True).encode()
    assert edit_saved(text, OPENING) == text
    late = saved(FOREIGN, JUMP, *accepts(OWN, OPENING.incoming), chain=True).encode()
    assert edit_saved(late, OPENING) != late


@pytest.mark.parametrize(
    "content", [b"", b"*nat\n:INPUT ACCEPT\nCOMMIT\n", b"*filter\n:INPUT DROP\n"]
)
def test_a_file_without_a_filter_table_keeps_nobody_out_and_stays(content: bytes) -> None:
    assert edit_saved(content, OPENING) == content


def test_lines_of_ours_go_whatever_wrote_them() -> None:
    torn = (
        b"*filter\r\n:INPUT DROP\r\n:" + OWN.encode() + b" - [0:0]\r\n-I INPUT 1 -p tcp -j " + OWN.encode()
        + b" \r\n-A " + OWN.encode() + b" -j ACCEPT\r\n-A INPUT -j MINE\r\nCOMMIT\r\n"
    )  # fmt: skip
    assert (
        edit_saved(torn, Opening()) == b"*filter\r\n:INPUT DROP\r\n-A INPUT -j MINE\r\nCOMMIT\r\n"
    )


def test_a_table_without_rules_gets_them_before_its_commit() -> None:
    text = edit_saved(b"*filter\n:INPUT DROP\nCOMMIT\n", OTHER).decode().splitlines()
    assert text == [
        "*filter",
        f":{OWN} - [0:0]",
        ":INPUT DROP",
        JUMP,
        *accepts(OWN, OTHER.incoming),
        "COMMIT",
    ]


rule_lines = st.lists(
    st.sampled_from([FOREIGN, "-A INPUT -j LOG", "-A INPUT -i lo -j ACCEPT"]), max_size=4
)


@given(rule_lines)
def test_any_order_of_foreign_rules_comes_back(before: list[str]) -> None:
    text = saved(*before)
    action = CommandAction(
        **live_command(IptablesTable("nft", text), (BASE, OWN), restore_text(text, OPENING))
    )
    after = apply_restore(text, restore_of(action))
    assert rules_of(after, BASE) == (JUMP, *before)
    assert rules_of(apply_restore(after, restore_of(action.inverse())), BASE) == tuple(before)


def test_own_names_are_what_users_look_for() -> None:
    assert (OWN, BASE) == ("REMEDY-PEERS", "INPUT")
    assert nftables.INCLUDED == "/etc/nftables.d/remedy.nft"
    assert firewalld.IPSET_FILE == "/etc/firewalld/ipsets/remedy-peers.xml"
    assert firewalld.POLICY_FILES["in"] == "/etc/firewalld/policies/remedy.xml"
    assert iptables.SAVED == ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables")


def test_what_is_looked_at_is_the_digest_of_the_rules_that_iptables_shows(tmp_path: Path) -> None:
    before = saved(FOREIGN)
    action = live_command(IptablesTable("nft", before), (BASE, OWN), restore_text(before, OPENING))
    after = apply_restore(before, restore_text(before, OPENING))
    tool = tmp_path / "iptables-nft"

    def seen(text: str) -> str:
        cases = "".join(
            f"{chain}) printf '%s\\n' '-N {chain}' {shlex.join(rules_of(text, chain))} ;;\n"
            for chain in (BASE, OWN)
        )
        tool.write_text(f'#!/bin/sh\ncase "$4" in\n{cases}esac\n')
        tool.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", action["observe"]],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        return done.stdout.strip()

    assert seen(before) == action["before"]
    assert seen(after) == action["after"] != action["before"]
