"""The firewall remedy: what is held back on its way out, what cannot be judged, what is left to the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import firewalld, nftables, spans, ufw
from remedy.firewall.step import CommandStep, Opening
from remedy.plan import CommandAction, FindingKind, Plan, Risk, promised
from remedy.probe import File, HostState, NftChain, NftRule, NftRuleset
from remedy.values import Unknown
from tests.unit.firewall.firewall_bench import (
    ESTABLISHED,
    FIREWALLD,
    NO_NFT,
    UFW_LIVE,
    UFW_RULES,
    file,
    findings,
    fleet_of,
    plan_of,
    saved,
    settled,
    walled,
)

OUT = ":INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT DROP\n"
IPTABLES_OUT = (
    f"*filter\n{OUT}-A OUTPUT -o lo -j ACCEPT\n"
    "-A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n"
)
UFW_OUT = (
    UFW_LIVE.replace(":INPUT DROP", ":INPUT ACCEPT")
    .replace(":OUTPUT ACCEPT\n", ":OUTPUT DROP\n:ufw-user-output -\n")
    .replace("-A ufw-not-local -j DROP\n", "")
    .replace("-A INPUT -j ufw-before-input\n", "-A INPUT -j ACCEPT\n-A OUTPUT -j ufw-user-output\n")
)
HASHLIMIT = "-A INPUT -p tcp -m hashlimit --hashlimit-above 5/sec --hashlimit-name n -j DROP"


def nft_out(*expressions: Any, policy: str = "drop", hook: str = "output") -> NftRuleset:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    chain = NftChain("inet", "filter", hook, hook, 0, policy, rules)
    return NftRuleset(tables=(("inet", "filter"),), chains=(chain,), sets=())


def firewalld_out() -> NftRuleset:
    """Return a firewalld that lets in what it did before, and drops what the host sends."""
    jump = [{"jump": {"target": "filter_OUTPUT_POLICIES_pre"}}]
    output = NftChain(
        *firewalld.TABLE,
        "filter_OUTPUT",
        "output",
        10,
        "accept",
        tuple(
            NftRule(n, "", json.dumps(e))
            for n, e in enumerate([ESTABLISHED, jump, [{"drop": None}]], 20)
        ),
    )
    policies = NftChain(*firewalld.TABLE, "filter_OUTPUT_POLICIES_pre", "", 0, "", ())
    return FIREWALLD.model_copy(update={"chains": (*FIREWALLD.chains, output, policies)})


def hosts(**walls: Any) -> tuple[HostState, HostState]:
    return walled("a", "10.0.0.1", **walls), walled("b", "10.0.0.2")


OUTGOING: dict[str, dict[str, Any]] = {
    "iptables": {
        "iptables": IPTABLES_OUT,
        "files": [file("/etc/iptables/rules.v4", IPTABLES_OUT.encode())],
    },
    "iptables_legacy": {"iptables_legacy": IPTABLES_OUT},
    "ufw": {"iptables": UFW_OUT, "ufw": True, "files": [file(ufw.RULES, UFW_RULES)]},
    "nftables": {
        "nft": nft_out(ESTABLISHED),
        "files": [
            file(
                "/etc/nftables.conf",
                b"table inet filter {\n chain output {\n  type filter hook output priority 0; policy drop;\n"
                b"  ct state established,related accept\n }\n}\n",
            )
        ],
    },
    "firewalld": {"nft": firewalld_out(), "firewalld": "running"},
}


@pytest.mark.parametrize("kind", OUTGOING)
def test_what_goes_out_is_let_through_to_peers_on_the_ports_of_the_settings(kind: str) -> None:
    before = fleet_of(*hosts(**OUTGOING[kind]), ports=["8000"])
    plan = settled(before)
    drift = [f for f in findings(plan, FindingKind.DRIFT) if "connecting" in f.title]
    assert len(drift) == 1
    assert any(line.startswith("needed: 29500: ") for line in drift[0].evidence)
    assert all(c.guarded and c.risk is Risk.MEDIUM for c in plan.for_host("a"))
    text = "\n".join(
        [c.action.do for c in plan.for_host("a") if isinstance(c.action, CommandAction)]
        + [content.decode("utf-8", "replace") for content in plan.contents.values()]
    )
    for port in ("8000", "29400", "29500"):
        assert port in text
    assert "0.0.0.0/0 -j" not in text
    again = plan_of(promised(before, plan))
    assert again.changes == ()
    assert findings(again, FindingKind.BLOCKED) == []


def rules(plan: Plan) -> list[str]:
    """Return the rules of remedy's chain for what goes out, as iptables-restore gets them."""
    texts = [c.action.do for c in plan.for_host("a") if isinstance(c.action, CommandAction)]
    return [line for text in texts for line in text.splitlines() if "REMEDY-PEERS-OUT -d" in line]


def test_only_the_way_that_is_held_back_gets_rules() -> None:
    out = plan_of(fleet_of(*hosts(iptables=IPTABLES_OUT)))
    assert len(rules(out)) == 2
    assert all("-d 10.0.0." in line for line in rules(out))
    (change,) = out.for_host("a")
    assert "called first in OUTPUT" in change.title
    assert "INPUT" not in change.title
    into = plan_of(fleet_of(*hosts(iptables=saved())))
    assert rules(into) == []
    both = plan_of(fleet_of(*hosts(iptables=IPTABLES_OUT.replace("INPUT ACCEPT", "INPUT DROP"))))
    (change,) = both.for_host("a")
    assert "called first in INPUT, and be reached by a chain" in change.title


def test_rules_of_ufw_for_what_goes_out_are_as_ufw_writes_them() -> None:
    peers = spans.of_networks(["10.0.0.2"])
    text = ufw.edit_rules(UFW_RULES, Opening(targets=peers, target_ports=((22, 22), (80, 90))))
    single = ufw.edit_rules(UFW_RULES, Opening(targets=peers, target_ports=((22, 22),)))
    assert text is not None
    assert single is not None
    mark = "out comment=72656d656479"
    assert f"### tuple ### allow tcp 22,80:90 10.0.0.2 any 0.0.0.0/0 {mark}\n" in text.decode()
    assert (
        "\n-A ufw-user-output -p tcp -m multiport --dports 22,80:90 -d 10.0.0.2 -j ACCEPT\n"
        in text.decode()
    )
    assert "\n-A ufw-user-output -p tcp -d 10.0.0.2 --dport 22 -j ACCEPT\n" in single.decode()
    assert ufw.edit_rules(text, Opening()) == UFW_RULES
    assert len(ufw.live_lines(text)) == 1


def test_the_second_policy_of_firewalld_goes_from_the_host_to_any_zone() -> None:
    opening = Opening(targets=spans.of_networks(["10.0.0.2"]), target_ports=((22, 22),))
    ipset, incoming, outgoing = firewalld.texts_of(opening)
    assert "<entry>10.0.0.2</entry>" in ipset
    assert incoming == ""
    assert '<ingress-zone name="HOST"/>\n  <egress-zone name="ANY"/>' in outgoing
    assert '<destination ipset="remedy-peers"/>' in outgoing
    assert firewalld.texts_of(Opening()) == ("", "", "")


def test_a_rule_of_nftables_names_the_side_that_its_chain_is_on() -> None:
    opening = Opening(((1, 1),), ((22, 22),), ((2, 2),), ((23, 23),))
    for hook, words in (
        ("output", "ip daddr { 0.0.0.2 } tcp dport { 23 }"),
        ("input", "ip saddr { 0.0.0.1 }"),
    ):
        (chain,) = nft_out(hook=hook).chains
        (step,) = nftables.propose(chain, opening).steps
        assert isinstance(step, CommandStep)
        assert words in step.command["do"]
    assert opening.incoming.digest != opening.outgoing.digest


# --- what cannot be judged ----------------------------------------------------------------------------------


def test_a_rule_that_cannot_be_judged_is_unknown_with_its_text_and_the_setting_that_accepts_it() -> (
    None
):
    states = hosts(iptables=saved(HASHLIMIT, policy="ACCEPT"))
    plan = plan_of(fleet_of(*states))
    (finding,) = findings(plan, FindingKind.UNKNOWN)
    assert finding.evidence == (HASHLIMIT, "depends on: hashlimit")
    assert json.dumps(HASHLIMIT) in finding.fix
    assert plan.changes == ()
    assert plan.blocked("a") == (finding,)
    accepted = plan_of(fleet_of(*states, accepted_rules=[HASHLIMIT]))
    assert accepted.findings == ()
    other = plan_of(fleet_of(*states, accepted_rules=[HASHLIMIT.replace("5/sec", "6/sec")]))
    assert findings(other, FindingKind.UNKNOWN) == [finding]


def test_how_often_sshd_may_be_called_is_no_doubt_and_that_it_may_not_be_is_repaired_for_mpirun() -> (
    None
):
    limit = HASHLIMIT.replace("-p tcp", "-p tcp --dport 22")
    mpi = {"frameworks": ["torch", "mpi"]}
    assert plan_of(fleet_of(*hosts(iptables=saved(limit, policy="ACCEPT")), **mpi)).findings == ()
    other = HASHLIMIT.replace("-p tcp", "-p tcp --dport 22:40000")
    plan = plan_of(fleet_of(*hosts(iptables=saved(other, policy="ACCEPT")), **mpi))
    assert [f.evidence[0] for f in findings(plan, FindingKind.UNKNOWN)] == [other]
    closed = hosts(iptables=saved("-A INPUT -p tcp --dport 22 -j DROP", policy="ACCEPT"))
    assert plan_of(fleet_of(*closed)).findings == (), "torch needs no ssh between hosts"
    assert settled(fleet_of(*closed, **mpi)).changes


def test_behind_remedys_own_rules_nothing_is_in_doubt() -> None:
    states = hosts(iptables=saved(HASHLIMIT, policy="DROP"))
    before = fleet_of(*states)
    after = promised(before, plan_of(before))
    assert [f for f in plan_of(after).findings if f.kind is not FindingKind.REPORT] == []


def test_a_text_of_a_host_is_shown_in_one_line_and_accepted_as_it_is_shown() -> None:
    rule = '-A INPUT -m comment --comment "a\x1b[31m\u202e" -m limit --limit 1/s -j DROP'
    states = hosts(iptables=saved(rule, policy="ACCEPT"))
    (finding,) = findings(plan_of(fleet_of(*states)), FindingKind.UNKNOWN)
    shown = finding.evidence[0]
    assert shown.isprintable()
    assert "\\x1b" in shown
    assert plan_of(fleet_of(*states, accepted_rules=[shown])).findings == ()


def test_many_rules_in_doubt_are_counted() -> None:
    many = [HASHLIMIT.replace("name n", f"name n{at}") for at in range(30)]
    plan = plan_of(fleet_of(*hosts(iptables=saved(*many, policy="ACCEPT"))))
    found = findings(plan, FindingKind.UNKNOWN)
    assert len(found) == 21
    assert "10 rules more" in found[-1].title


@pytest.mark.parametrize(
    ("rule", "unknown"),
    [
        ("-i docker0 -m limit --limit 1/s -j DROP", False),
        ("-s 192.0.2.0/24 -m recent --rcheck --name bad -j DROP", False),
        ("-p udp -m hashlimit --hashlimit-above 1/s --hashlimit-name n -j DROP", False),
        ("-p tcp --dport 22 -m connlimit --connlimit-above 3 -j DROP", False),
        ("-m conntrack --ctstate INVALID -m limit --limit 1/s -j DROP", False),
        ("-d 10.9.9.9/32 -m statistic --mode random --probability 0.1 -j DROP", False),
        ("-p tcp --dport 29500 -m connlimit --connlimit-above 3 -j DROP", True),
        ("-s 10.0.0.0/24 -m time --timestart 08:00 -j DROP", True),
        ("-i eth+ -m string --string x --algo bm -j REJECT", True),
        ("-p tcp -j NFQUEUE --queue-num 0", True),
    ],
)
def test_only_a_rule_that_leaves_room_for_the_cluster_is_unknown(rule: str, unknown: bool) -> None:
    plan = plan_of(fleet_of(*hosts(iptables=saved(f"-A INPUT {rule}", policy="ACCEPT"))))
    assert bool(findings(plan, FindingKind.UNKNOWN)) is unknown


# --- what is left to the user -------------------------------------------------------------------------------


def test_tables_that_remedy_does_not_change_are_named_with_the_rule() -> None:
    text = "*raw\n:PREROUTING ACCEPT\n-A PREROUTING -s 10.0.0.0/24 -j DROP\nCOMMIT\n"
    plan = plan_of(fleet_of(*hosts(iptables=text)))
    (finding,) = plan.blocked("a")
    assert finding.evidence[0] == "-t raw -A PREROUTING -s 10.0.0.0/24 -j DROP"
    assert "iptables -t raw -S" in finding.fix
    assert plan.changes == ()
    left = plan_of(fleet_of(*hosts(iptables=text), mode="leave"))
    assert {f.kind for f in left.findings} == {FindingKind.REPORT}


def test_arp_that_is_dropped_is_named() -> None:
    drop = NftChain("arp", "t", "input", "input", 0, "drop", ())
    plan = plan_of(fleet_of(*hosts(nft=NO_NFT.model_copy(update={"chains": (drop,)}))))
    (finding,) = plan.blocked("a")
    assert "ARP" in finding.title
    assert finding.evidence == ("chain arp t input: policy drop",)


def test_direct_rules_of_firewalld_are_its_own_to_change() -> None:
    direct = b"""<direct>
  <rule ipv="ipv4" table="filter" chain="INPUT" priority="0">-p tcp -j DROP</rule>
</direct>
"""
    state, other = hosts(
        nft=FIREWALLD.model_copy(
            update={"chains": (NftChain(*firewalld.TABLE, "filter_INPUT", "input", 10, "accept", ()),)}
        ),
        iptables=saved("-A INPUT -p tcp -j DROP", policy="ACCEPT"),
        firewalld="running",
        files=[File(path=firewalld.DIRECT_FILE, real_path=firewalld.DIRECT_FILE, exists=True, content=direct)],
    )  # fmt: skip
    plan = plan_of(fleet_of(state, other))
    assert plan.changes == ()
    (finding,) = plan.blocked("a")
    assert "direct rules" in finding.title
    assert "--remove-rule" in finding.fix


def test_old_tables_that_cannot_be_read_are_unknown_where_they_have_a_say() -> None:
    plan = plan_of(fleet_of(*hosts(arptables=Unknown(reason="no tool"))))
    (finding,) = findings(plan, FindingKind.UNKNOWN)
    assert "arptables" in finding.title
    assert plan_of(fleet_of(*hosts(ebtables=Unknown(reason="no tool")))).findings == ()


def test_a_set_that_is_read_decides_and_one_that_is_not_is_a_doubt() -> None:
    text = saved("-A INPUT -m set --match-set bad src -j DROP", policy="ACCEPT")
    listed = "create bad hash:ip family inet\nadd bad {}\n"
    for ipsets, kinds in (
        (listed.format("192.0.2.1"), set()),
        (listed.format("10.0.0.2"), {FindingKind.DRIFT, FindingKind.REPORT}),
        ("", {FindingKind.UNKNOWN}),
        (Unknown(reason="no tool"), {FindingKind.UNKNOWN}),
    ):
        plan = plan_of(fleet_of(*hosts(iptables=text, ipsets=ipsets)))
        assert {f.kind for f in plan.findings} == kinds, ipsets
