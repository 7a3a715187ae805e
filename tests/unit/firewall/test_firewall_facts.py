"""The firewall remedy: which ports are needed, what each firewall proposes, and what findings say."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from pathlib import Path as FilePath
from typing import Any

import pytest

from remedy.deploys.firewall import FirewallSpec, needs, port_range, sources, target_opening
from remedy.firewall import firewalld, iptables, nftables, spans, ufw
from remedy.firewall.step import Opening
from remedy.firewall.walls import any_rules, tables, unknowns
from remedy.plan import CommandAction, Finding, FindingKind, Fleet, Plan, Risk, make_plan, promised
from remedy.probe import Firewalls, HostState, LoginSession, NftChain, NftRule, NftRuleset, Sysctls
from remedy.values import Unknown
from tests.unit.build import NO_FIREWALL, fleet, record, with_section
from tests.unit.firewall.test_firewall import (
    FIREWALLD,
    SSH,
    UFW_LIVE,
    UFW_RULES,
    file,
    match,
    nft,
    plan_of,
    saved,
    several,
    walled,
)
from tests.unit.plans import WHEN

PEERS = spans.of_networks(["10.0.0.2", "10.0.0.4/30"])
OPENING = Opening(PEERS, ((22, 22), (29500, 29563)))


def of(*states: HostState, **settings: Any) -> Fleet:
    return fleet(*states, spec=with_section("firewall", FirewallSpec.model_validate(settings)))


def two(**settings: Any) -> Fleet:
    return of(walled("a", "10.0.0.1", iptables=saved()), walled("b", "10.0.0.2"), **settings)


def findings(plan: Plan, kind: FindingKind, host: str = "a") -> list[Finding]:
    return [f for f in plan.findings if f.host == host and f.kind is kind]


# --- what has to be open ------------------------------------------------------------------------------------


def test_ports_come_from_the_kernel_the_frameworks_the_verification_and_the_spec() -> None:
    found = two(frameworks=["mindspore", "hccl"], ports=["8000"])
    spec = FirewallSpec.model_validate({"frameworks": ["mindspore", "hccl"], "ports": ["8000"]})
    ranges = [(need.low, need.high) for need in needs(found, found.states["a"], spec)]
    assert ranges == [(32768, 60999), (8118, 8118), (60000, 60031), (29500, 29563), (8000, 8000)]
    assert port_range(found, found.states["a"]) == (32768, 60999)
    blind = found.states["a"].model_copy(update={"sysctls": Unknown(reason="x")})
    assert port_range(found, blind) is None
    odd = found.states["a"].model_copy(
        update={"sysctls": Sysctls(live={}, persisted=(), unread=())}
    )
    assert port_range(found, odd) is None


def test_peers_are_the_cluster_addresses_and_those_of_the_spec() -> None:
    found = two()
    assert sources(found, FirewallSpec()) == spans.of_networks(["10.0.0.1", "10.0.0.2"])
    more = FirewallSpec(also_from=("192.168.7.0/30",))
    assert sources(found, more) == spans.of_networks(["10.0.0.1", "10.0.0.2", "192.168.7.0/30"])


def test_off_is_open_to_everybody_and_a_lone_host_needs_nothing() -> None:
    found = two()
    a = found.states["a"]
    assert target_opening(found, a, FirewallSpec(mode="off"), None) == Opening(
        spans.ALL_ADDRESSES, ((1, 65535),)
    )
    lone = of(walled("a", "10.0.0.1"))
    assert target_opening(lone, lone.states["a"], FirewallSpec(), None) == Opening()
    guest = FirewallSpec(also_from=("192.168.7.1",))
    assert target_opening(lone, lone.states["a"], guest, None).sources == spans.of_networks(
        ["10.0.0.1", "192.168.7.1"]
    )


def test_while_an_address_is_not_known_nobody_who_is_let_in_is_shut_out() -> None:
    found = two()
    now = Opening(spans.of_networks(["10.0.0.9"]), ((1, 1),))
    a = found.states["a"]
    assert target_opening(found, a, FirewallSpec(), now).sources == spans.of_networks(
        ["10.0.0.1", "10.0.0.2"]
    )
    spec = with_section("firewall", FirewallSpec())
    spec.sections["cluster"] = spec.cluster.model_copy(update={"subnet": "10.0.0.0/24"})
    down = fleet(*found.states.values(), spec=spec, absent=("c",))
    kept = target_opening(down, a, FirewallSpec(), now).sources
    assert kept == spans.of_networks(["10.0.0.1", "10.0.0.2", "10.0.0.9"])


# --- what findings say --------------------------------------------------------------------------------------


def test_a_firewall_that_keeps_peers_out_is_named_with_its_rules_and_the_ports() -> None:
    plan = plan_of(two())
    (finding,) = findings(plan, FindingKind.DRIFT)
    assert "iptables" in finding.title
    assert finding.label == "firewall-ports"
    assert "policy drop" in finding.evidence[0]
    assert any(line.startswith("needed: 29500: ") for line in finding.evidence)
    narrow = two().states["a"].model_copy(
        update={"firewalls": NO_FIREWALL.model_copy(
            update={"iptables": saved("-A INPUT -p tcp --dport 29400 -j DROP", policy="ACCEPT")})}
    )  # fmt: skip
    (only,) = findings(plan_of(of(narrow, walled("b", "10.0.0.2"))), FindingKind.DRIFT)
    needed = [line for line in only.evidence if line.startswith("needed: ")]
    assert [line.split()[1] for line in needed] == ["29400:"]


def test_leave_reports_with_a_way_out_and_plans_nothing() -> None:
    plan = plan_of(two(mode="leave"))
    finding = plan.findings[0]
    assert {f.kind for f in plan.findings} == {FindingKind.REPORT}
    assert plan.changes == ()
    assert "firewall.mode" in finding.fix


def test_a_firewall_of_which_nothing_is_known_is_unknown_by_its_name() -> None:
    late: object = Unknown(reason="late")
    for field, name in (
        ("nft", "nftables"),
        ("iptables", "iptables"),
        ("iptables_legacy", "legacy"),
        ("firewalld", "firewalld"),
        ("ufw", "ufw"),
    ):
        state = walled("a", "10.0.0.1", files=(), **{field: late})
        (finding,) = findings(plan_of(of(state)), FindingKind.UNKNOWN)
        assert name in finding.title
        assert finding.evidence == ("late",)


def test_without_the_tool_nft_there_are_no_rules_but_those_of_iptables() -> None:
    state = walled("a", "10.0.0.1", nft=Unknown(reason="late"))
    walls = state.firewalls
    assert isinstance(walls, Firewalls)
    without = state.model_copy(update={"session": record(LoginSession, programs={})})
    with_it = state.model_copy(
        update={"session": record(LoginSession, programs={"nft": "/sbin/nft"})}
    )
    assert list(unknowns(without, walls)) == []
    assert list(unknowns(with_it, walls)) == [("nftables", "late")]
    other = walls.model_copy(update={"ufw": Unknown(reason="late"), "nft": NO_FIREWALL.nft})
    assert list(unknowns(without, other)) == [("ufw", "late")]


def test_where_there_are_no_rules_there_is_nothing_to_look_at() -> None:
    def there(state: HostState) -> bool:
        assert isinstance(state.firewalls, Firewalls)
        return any_rules(state, state.firewalls)

    assert not there(walled("a", "10.0.0.1"))
    assert there(walled("a", "10.0.0.1", iptables=saved()))
    assert there(walled("a", "10.0.0.1", iptables_legacy=saved()))
    assert there(walled("a", "10.0.0.1", nft=nft()))
    assert there(walled("a", "10.0.0.1", firewalld=""))
    assert there(walled("a", "10.0.0.1", files=[file(nftables.INCLUDED, b"")]))
    assert not there(walled("a", "10.0.0.1", iptables="*nat\n:INPUT ACCEPT\nCOMMIT\n"))


def test_where_iptables_is_a_link_to_the_legacy_tool_both_are_one() -> None:
    same, other = saved(), saved("-A INPUT -j LOG")

    def variants(**walls: object) -> list[str]:
        state = walled("a", "10.0.0.1", files=(), **walls)
        assert isinstance(state.firewalls, Firewalls)
        return [table.variant for table in tables(state.firewalls)]

    assert variants(iptables=same, iptables_legacy=same) == ["legacy"]
    assert variants(iptables=same, iptables_legacy=other) == ["nft", "legacy"]
    assert variants(iptables=same) == ["nft"]
    assert variants(iptables=Unknown(reason="x"), iptables_legacy=Unknown(reason="x")) == []


def test_rules_of_a_firewall_that_is_off_block_where_they_keep_peers_out() -> None:
    state = walled(
        "a", "10.0.0.1", iptables=UFW_LIVE, ufw=False, files=[file(ufw.RULES, UFW_RULES)]
    )
    plan = plan_of(of(state, walled("b", "10.0.0.2")))
    (finding,) = plan.blocked("a")
    assert "ufw" in finding.title
    assert "ufw" in finding.fix
    assert finding.evidence
    assert plan.changes == ()
    off = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld=None)
    (left,) = plan_of(of(off, walled("b", "10.0.0.2"))).blocked("a")
    assert "firewalld" in left.title


def test_switching_off_is_asked_for_by_the_spec_and_says_what_is_lost() -> None:
    plan = plan_of(several(spec=FirewallSpec(mode="off")))
    (change,) = plan.for_host("fwd")
    action = change.action
    assert isinstance(action, CommandAction)
    assert (change.risk, change.guarded) == (Risk.HIGH, True)
    assert change.disrupts
    assert "firewalld" in change.title
    assert (action.before, action.after) == ("public\n", "")
    for text, verbs in ((action.do, ("disable", "stop")), (action.undo, ("enable", "start"))):
        for verb in verbs:
            assert (
                f"systemctl --no-reload {verb} firewalld.service" in text
                or f"systemctl {verb} firewalld" in text
            )
    assert "--list-all-zones" in action.observe
    (finding,) = findings(plan, FindingKind.DRIFT, "fwd")
    assert "firewalld" in finding.title
    (ufw_off,) = plan.for_host("ufw")
    assert isinstance(ufw_off.action, CommandAction)
    assert (ufw_off.action.before, ufw_off.action.after) == ("yes", "no")
    assert "/etc/ufw/ufw.conf" in ufw_off.action.observe


def test_without_the_range_of_ports_nothing_is_opened_and_that_is_said() -> None:
    state = walled("a", "10.0.0.1", iptables=saved()).model_copy(
        update={"sysctls": Unknown(reason="no")}
    )
    plan = plan_of(of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert any(
        "net.ipv4.ip_local_port_range" in f.title and "sysctl" in f.fix for f in plan.blocked("a")
    )


def test_what_a_plan_promises_is_right_in_every_firewall() -> None:
    before = several()
    after = promised(before, plan_of(before))
    again = plan_of(after)
    assert again.changes == ()
    assert [f for f in again.findings if f.kind is not FindingKind.REPORT] == []


def test_rules_of_another_opening_are_said_to_be_old() -> None:
    before = several()
    after = promised(before, plan_of(before))
    fewer = fleet(*(s for n, s in after.states.items() if n != "leg"))
    plan = make_plan(fewer, WHEN, only="firewall")
    titles = {f.host: f.title for f in plan.findings if f.kind is FindingKind.DRIFT}
    assert "ufw" in titles["ufw"]
    assert "firewalld" in titles["fwd"]
    assert "iptables" in titles["ipt"]
    boot = [f for f in plan.findings if f.host == "nft" and nftables.INCLUDED in f.evidence]
    assert len(boot) == 1


def test_a_file_that_must_not_be_changed_keeps_its_firewall_as_it_is() -> None:
    locked = file(ufw.RULES, UFW_RULES).model_copy(update={"immutable": True})
    state = walled("a", "10.0.0.1", iptables=UFW_LIVE, ufw=True, files=[locked])
    plan = plan_of(of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert any(ufw.RULES in f.title for f in plan.blocked("a"))
    policy = file(firewalld.POLICY_FILE, b"<policy/>").model_copy(update={"immutable": True})
    fwd = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n", files=[policy])
    blocked = plan_of(of(fwd, walled("b", "10.0.0.2")))
    assert blocked.changes == ()
    assert any(firewalld.POLICY_FILE in f.title for f in blocked.blocked("a"))


# --- ufw ----------------------------------------------------------------------------------------------------


def test_rules_of_ufw_are_tuples_with_the_line_that_ufw_makes_of_them() -> None:
    text = ufw.edit_rules(UFW_RULES, OPENING)
    assert text is not None
    lines = text.decode().splitlines()
    at = lines.index("### RULES ###") + 2
    assert lines[at].startswith(
        "### tuple ### allow tcp 22,29500:29563 0.0.0.0/0 any 10.0.0.2 in comment="
    )
    assert bytes.fromhex(lines[at].rpartition("comment=")[2]).decode() == "remedy"
    assert (
        lines[at + 1]
        == "-A ufw-user-input -p tcp -m multiport --dports 22,29500:29563 -s 10.0.0.2 -j ACCEPT"
    )
    assert lines[at + 3].split()[8] == "10.0.0.4/30"
    assert [x for x in lines if "dport 22 -j" in x] == [
        "-A ufw-user-input -p tcp --dport 22 -j ACCEPT"
    ]
    assert ufw.live_lines(text) == iptables.accepts(ufw.CHAIN, OPENING)


@pytest.mark.parametrize(
    ("rules", "kind", "words"),
    [
        (Unknown(reason="I/O error"), FindingKind.UNKNOWN, "I/O error"),
        (b"nothing of ufw\n", FindingKind.BLOCKED, "ufw reset"),
    ],
)
def test_a_file_of_ufw_that_cannot_be_used_is_said(
    rules: Unknown | bytes, kind: FindingKind, words: str
) -> None:
    state = walled("a", "10.0.0.1", iptables=UFW_LIVE, ufw=True)
    known = rules if isinstance(rules, Unknown) else file(ufw.RULES, rules)
    state = state.model_copy(update={"files": {**state.files, ufw.RULES: known}})
    plan = plan_of(of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    (finding,) = [f for f in findings(plan, kind) if ufw.RULES in f.title]
    assert words in f"{finding.evidence} {finding.fix}"


def test_rules_of_the_user_stay_in_force_when_those_of_remedy_change() -> None:
    before = several()
    after = promised(before, plan_of(before))
    live = after.states["ufw"].firewalls
    assert isinstance(live, Firewalls)
    assert isinstance(live.iptables, str)
    rules = [x for x in live.iptables.splitlines() if x.startswith("-A ufw-user-input")]
    assert rules[-1] == "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT"
    fewer = fleet(*(s for n, s in after.states.items() if n != "leg"))
    (action,) = [
        c.action
        for c in make_plan(fewer, WHEN, only="firewall").for_host("ufw")
        if c.action.kind == "command"
    ]
    restore = shlex.split(action.do)[2]
    assert "--dport 22 -j" not in restore
    assert (restore.count("\n-D "), restore.count("\n-I ")) == (4, 3)


# --- firewalld ----------------------------------------------------------------------------------------------


def test_the_set_and_the_policy_are_files_as_firewalld_reads_them() -> None:
    ipset, policy = firewalld.ipset_text(OPENING), firewalld.policy_text(OPENING)
    assert ipset.startswith('<?xml version="1.0"')
    assert "<entry>10.0.0.2</entry>" in ipset
    assert "<entry>10.0.0.4/30</entry>" in ipset
    assert 'type="hash:net"' in ipset
    assert 'port port="22"' in policy
    assert 'port port="29500-29563"' in policy
    assert 'priority="-100"' in policy
    assert '<ingress-zone name="ANY"/>' in policy
    assert '<egress-zone name="HOST"/>' in policy
    assert (
        policy.count("<rule ")
        == policy.count("<accept/>")
        == policy.count('ipset="remedy-peers"')
        == 2
    )
    for text in (ipset, policy):
        assert "<short>" in text


def firewalld_action(state: HostState) -> CommandAction:
    (change,) = plan_of(of(state, walled("b", "10.0.0.2"))).for_host("a")
    assert isinstance(change.action, CommandAction)
    return change.action


def test_what_is_looked_at_is_what_firewalld_shows_of_the_opening(tmp_path: FilePath) -> None:
    action = firewalld_action(walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"))
    words = dict(word.split("=", 1) for word in shlex.split(action.do)[:4])
    for name, path in (("ipset", firewalld.IPSET_FILE), ("policy", firewalld.POLICY_FILE)):
        assert words[f"{name}_file"] == path
        (tmp_path / name).write_text(words[name])
    entries = "\\n".join(x.partition("</entry>")[0] for x in words["ipset"].split("<entry>")[1:])
    ports = [x.partition('"')[0] for x in words["policy"].split('port port="')[1:]]
    rules = "\\n".join(
        f'rule family="ipv4" source ipset="remedy-peers" port port="{port}" protocol="tcp" accept'
        for port in ports
    )
    tool = tmp_path / "firewall-cmd"
    tool.write_text(
        f"#!/bin/sh\ncase $1 in --ipset=remedy-peers) printf '{entries}\\n' ;; "
        f"--policy=remedy) printf '\\t{rules}\\n' ;; esac\n"
    )
    tool.chmod(0o755)
    look = action.observe
    for name, path in (("ipset", firewalld.IPSET_FILE), ("policy", firewalld.POLICY_FILE)):
        look = look.replace(path, str(tmp_path / name))

    def seen() -> str:
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", look], capture_output=True, text=True, check=False, env=environment
        )
        return done.stdout.strip()

    assert seen() == action.after
    (tmp_path / "ipset").write_text(words["ipset"] + "\n")
    assert seen() == action.before
    (tmp_path / "ipset").write_text(words["ipset"])
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert seen() == action.before


def test_a_policy_that_nobody_needs_is_removed_with_its_files() -> None:
    before = of(
        walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"), walled("b", "10.0.0.2")
    )
    after = promised(before, plan_of(before)).states["a"]
    lone = of(after)
    plan = plan_of(lone)
    (change,) = plan.for_host("a")
    assert isinstance(change.action, CommandAction)
    assert "remove" in change.title
    assert firewalld.IPSET_FILE in change.action.observe
    assert firewalld.POLICY_FILE in change.action.observe
    assert promised(lone, plan).states["a"].firewalls == before.states["a"].firewalls


def test_what_the_policy_lets_in_is_read_from_the_rules_in_force() -> None:
    before = of(
        walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"), walled("b", "10.0.0.2")
    )
    after = promised(before, plan_of(before)).states["a"].firewalls
    assert isinstance(after, Firewalls)
    assert isinstance(after.nft, NftRuleset)
    opening = firewalld.present(after.nft)
    assert opening is not None
    assert opening.sources == spans.of_networks(["10.0.0.1", "10.0.0.2"])
    assert firewalld.present(FIREWALLD) is None


def test_files_of_firewalld_that_cannot_be_read_are_unknown() -> None:
    state = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n")
    state = state.model_copy(
        update={"files": {**state.files, firewalld.POLICY_FILE: Unknown(reason="I/O error")}}
    )
    plan = plan_of(of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert any("I/O error" in f.evidence for f in findings(plan, FindingKind.UNKNOWN))


def test_a_firewalld_whose_rules_are_in_iptables_is_judged_by_its_files() -> None:
    state = walled("a", "10.0.0.1", iptables=saved(), firewalld="public\n")
    action = firewalld_action(state)
    assert "firewall-cmd" in action.do
    assert action.undo != action.do


# --- nftables -----------------------------------------------------------------------------------------------


def nft_change(ruleset: NftRuleset) -> CommandAction:
    plan = plan_of(of(walled("a", "10.0.0.1", nft=ruleset), walled("b", "10.0.0.2")))
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
    own = NftRule(9, f"remedy {old.digest}", expression)
    (chain,) = ruleset.chains
    held = ruleset.model_copy(update={"chains": (chain._replace(rules=(own, *chain.rules)),)})
    action = nft_change(held)
    assert action.before == old.digest
    assert old.digest in action.undo
    assert "10.0.0.9" in action.undo
    other = NftRule(9, "remedyish", expression)
    foreign = chain._replace(rules=(other,))
    assert nftables.own_rules(foreign) == ()
    assert nftables.own_rules(chain._replace(rules=(own, other))) == (own,)


def test_a_chain_that_keeps_nobody_out_is_left_alone() -> None:
    plan = plan_of(of(walled("a", "10.0.0.1", nft=nft(policy="accept")), walled("b", "10.0.0.2")))
    assert (plan.changes, plan.findings) == ((), ())


def test_tables_of_iptables_are_not_looked_at_twice() -> None:
    drop = NftChain("ip", "filter", "INPUT", "input", 0, "drop", ())
    ruleset = NftRuleset(tables=(), chains=(drop,), sets=())
    plan = plan_of(
        of(walled("a", "10.0.0.1", nft=ruleset, iptables=saved()), walled("b", "10.0.0.2"))
    )
    assert [c.title.partition(":")[0] for c in plan.for_host("a")] == ["iptables"]
    alone = plan_of(of(walled("a", "10.0.0.1", nft=ruleset), walled("b", "10.0.0.2")))
    assert [c.title.partition(":")[0] for c in alone.for_host("a")] == [
        "nftables chain ip filter INPUT"
    ]


def test_only_the_chain_of_firewalld_that_packets_come_in_by_is_judged() -> None:
    early = NftChain("inet", "firewalld", "raw_PREROUTING", "prerouting", -290, "drop", ())
    ruleset = FIREWALLD.model_copy(update={"chains": (*FIREWALLD.chains, early)})
    plan = plan_of(
        of(walled("a", "10.0.0.1", nft=ruleset, firewalld="public\n"), walled("b", "10.0.0.2"))
    )
    assert len(plan.for_host("a")) == 1
    assert len([f for f in plan.findings if f.host == "a"]) == 1


def test_digests_are_those_of_the_texts() -> None:
    text = (
        f"{','.join(spans.address_ranges(PEERS))} {','.join(spans.port_texts(OPENING.ports, '-'))}"
    )
    assert OPENING.digest == hashlib.sha256(text.encode()).hexdigest()[:12]
