"""The firewall remedy: what is opened, where, and that planning on what a plan promises needs no plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path as FilePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remedy.deploys.firewall import FirewallSpec
from remedy.errors import SpecError
from remedy.firewall import firewalld, iptables, nftables, nftables_rules, spans, ufw
from remedy.firewall.iptables_rules import chains
from remedy.firewall.step import Opening, Path
from remedy.firewall.traffic import Traffic, dropped_by
from remedy.plan import (
    CommandAction,
    FindingKind,
    Fleet,
    Plan,
    Risk,
    promised,
    section_models,
)
from remedy.probe import File, Firewalls, HostState, NftChain, NftRule, NftRuleset, Sysctls
from remedy.spec import SpecSection, load_spec
from remedy.values import Unknown
from tests.unit import plans
from tests.unit.build import NO_FIREWALL, fleet, host_state, with_section

PEERS = spans.of_networks(["10.0.0.2", "10.0.0.3"])
PORTS = spans.merge([(29400, 29400), (29500, 29563), (32768, 60999)])
WAY = Path("eth0", "10.0.0.1")

HEAD = ":INPUT {policy}\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n"
UFW_LIVE = """\
*filter
:INPUT DROP
:FORWARD DROP
:OUTPUT ACCEPT
:ufw-before-input -
:ufw-not-local -
:ufw-user-input -
-A INPUT -j ufw-before-input
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT
-A ufw-before-input -j ufw-user-input
-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN
-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A ufw-not-local -j DROP
-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT
COMMIT
"""
UFW_RULES = b"""\
*filter
:ufw-user-input - [0:0]
### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
-A ufw-user-input -p tcp --dport 22 -j ACCEPT

### END RULES ###
COMMIT
"""
NFT_CONF = b"""\
flush ruleset
table inet filter { # ours
\tchain input {
\t\ttype filter hook input priority filter; policy drop;
\t\ttcp dport 22 accept
\t}
}"""


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "firewall")


def settled(given_fleet: Fleet) -> Plan:
    """Check that the plan of a fleet does what it promises and can be taken back; return it."""
    plan = plan_of(given_fleet)
    plans.check_converged(given_fleet, plan, "firewall")
    plans.check_commands(given_fleet, plan)
    assert {c.host for c in plan.changes} <= {f.host for f in plan.findings}
    back = promised(promised(given_fleet, plan), plans.taken_back(plan))
    for name, state in given_fleet.states.items():
        assert _rules(back.states[name]) == _rules(state)
        assert plans.contents(back.states[name]) == plans.contents(state)
    return plan


def saved(*rules: str, policy: str = "DROP") -> str:
    body = "".join(f"{rule}\n" for rule in rules)
    return f"*filter\n{HEAD.format(policy=policy)}{body}COMMIT\n"


def nft(*expressions: object, policy: str = "drop", table: str = "filter") -> NftRuleset:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    chain = NftChain("inet", table, "input", "input", 0, policy, rules)
    return NftRuleset(tables=(("inet", table),), chains=(chain,), sets=())


def match(field: str, right: object, protocol: str = "tcp", op: str = "==") -> dict[str, object]:
    left = {"payload": {"protocol": protocol, "field": field}}
    return {"match": {"op": op, "left": left, "right": right}}


ESTABLISHED = [
    {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}},
    {"accept": None},
]
SSH = [match("dport", 22), {"accept": None}]
FIREWALLD = NftRuleset(
    tables=(("inet", "firewalld"),),
    chains=(
        NftChain(
            "inet", "firewalld", "filter_INPUT", "input", 10, "accept",
            (
                NftRule(1, "", json.dumps(ESTABLISHED)),
                NftRule(2, "", json.dumps([{"jump": {"target": "filter_INPUT_ZONES"}}])),
                NftRule(3, "", json.dumps([{"reject": {"type": "icmpx"}}])),
            ),
        ),
        NftChain(
            "inet", "firewalld", "filter_INPUT_ZONES", "", 0, "",
            (NftRule(4, "", json.dumps([{"goto": {"target": "filter_IN_public"}}])),),
        ),
        NftChain(
            "inet", "firewalld", "filter_IN_public", "", 0, "",
            (
                NftRule(5, "", json.dumps([{"jump": {"target": "filter_INPUT_POLICIES_pre"}}])),
                NftRule(6, "", json.dumps(SSH)),
            ),
        ),
        NftChain("inet", "firewalld", "filter_INPUT_POLICIES_pre", "", 0, "", ()),
    ),
    sets=(),
)  # fmt: skip


def file(path: str, content: bytes | None = None) -> File:
    return File(path=path, real_path=path, exists=content is not None, content=content or b"")


def walled(name: str, address: str, *, files: Sequence[File] = (), **walls: object) -> HostState:
    """Return a host with firewalls."""
    known = {
        path: file(path)
        for path in (
            *iptables.SAVED, *nftables.MAIN_FILES, nftables.INCLUDED,
            firewalld.IPSET_FILE, firewalld.POLICY_FILE, ufw.RULES,
        )
    }  # fmt: skip
    state = host_state(name, address, files={**known, **{f.path: f for f in files}})
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "firewalls": NO_FIREWALL.model_copy(update=walls),
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


def several(*, spec: FirewallSpec | None = None) -> Fleet:
    """Return a fleet with one host for each kind of firewall, and one without."""
    given_spec = with_section("firewall", spec or FirewallSpec())
    return fleet(
        walled("bare", "10.0.0.1"),
        walled("ufw", "10.0.0.2", iptables=UFW_LIVE, ufw=True, files=[file(ufw.RULES, UFW_RULES)]),
        walled("fwd", "10.0.0.3", nft=FIREWALLD, firewalld="public\n"),
        walled("nft", "10.0.0.4", nft=nft(ESTABLISHED, SSH), files=[file("/etc/nftables.conf", NFT_CONF)]),
        walled("ipt", "10.0.0.5", iptables=saved(policy="DROP")),
        walled(
            "leg", "10.0.0.6",
            iptables_legacy=saved("-A INPUT -j REJECT --reject-with icmp-host-prohibited", policy="ACCEPT"),
            files=[file("/etc/iptables/rules.v4", saved("-A INPUT -j DROP").encode())],
        ),
        spec=given_spec,
    )  # fmt: skip


def test_a_firewalld_without_any_rule_is_told() -> None:
    """So it is left by a reload that failed: it runs, and everybody gets in."""
    bare = NftRuleset(tables=(("inet", "firewalld"),), chains=(), sets=())
    plan = plan_of(fleet(walled("fwd", "10.0.0.3", nft=bare, firewalld="public\n")))
    assert [(f.kind, f.title) for f in plan.findings] == [
        (
            FindingKind.REPORT,
            "firewalld runs, but none of its rules is in force: every port is open to everybody",
        )
    ]
    assert plan.changes == ()


def _rules(state: HostState) -> list[object]:
    """Return the rules in force; of rules of different chains the order means nothing."""
    walls = state.firewalls
    assert isinstance(walls, Firewalls)
    texts = [str(walls.iptables), str(walls.iptables_legacy)]
    return [
        walls.nft,
        walls.ufw,
        *(sorted(text.splitlines(), key=lambda line: line.split()[:2]) for text in texts),
    ]


# --- what rules do -----------------------------------------------------------------------------------------


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
    dropped = dropped_by(chains(saved(*rules, policy=policy), WAY), "INPUT", Traffic(PEERS, PORTS))
    assert bool(dropped) is not open_


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
         "drop", True),
        ([[match("nexthdr", 6, "ip6"), {"drop": None}]], "accept", True),
        ([[{"limit": {"rate": 3}}, {"drop": None}]], "accept", True),
        ([[{"counter": None}, {"log": None}, {"reject": None}]], "accept", False),
    ],
)  # fmt: skip
def test_what_rules_of_nftables_do(rules: list[object], policy: str, open_: bool) -> None:
    found = nftables_rules.chains(nft(*rules, policy=policy), "inet", "filter", WAY)
    assert bool(dropped_by(found, "input", Traffic(PEERS, PORTS))) is not open_


# --- what the plan does ------------------------------------------------------------------------------------


def test_every_kind_of_firewall_is_opened_in_its_own_way() -> None:
    plan = settled(several())
    titles = {name: [c.title for c in plan.for_host(name)] for name in several().inventory.names}
    in_by_chain = ": let the cluster's hosts in by a chain REMEDY-PEERS, called first in INPUT"
    assert titles == {
        "bare": [],
        "ufw": [
            "ufw: let the cluster's hosts in, ahead of the user's rules (/etc/ufw/user.rules)",
            "ufw: the same rules in force, without a reload",
        ],
        "fwd": [
            "firewalld: let the cluster's hosts in by a policy 'remedy' ahead of all zones, and reload"
        ],
        "nft": [
            "nftables chain inet filter input: let the cluster's hosts in, first of all rules",
            "write the same rules into /etc/nftables.d/remedy.nft",
            "include it at the end of /etc/nftables.conf, which is loaded at boot",
        ],
        "ipt": ["iptables" + in_by_chain],
        "leg": [
            "write the same rules into /etc/iptables/rules.v4, which is loaded at boot",
            "iptables (legacy tables)" + in_by_chain,
        ],
    }
    assert all(change.guarded and change.risk is Risk.MEDIUM for change in plan.changes)
    (unsaved,) = (f for f in plan.findings if f.kind is FindingKind.REPORT)
    assert (unsaved.host, "at boot is not known" in unsaved.title) == ("ipt", True)
    assert {f.kind for f in plan.findings if f is not unsaved} == {FindingKind.DRIFT}


def test_the_ports_come_with_their_reasons() -> None:
    plan = plan_of(
        several(spec=FirewallSpec(frameworks=("torch", "paddle"), ports=("8000", "9000-9100")))
    )
    (finding,) = (f for f in plan.findings if f.host == "ufw")
    assert finding.evidence == (
        "chain INPUT: policy drop",
        "needed: 32768-60999: net.ipv4.ip_local_port_range: NCCL, gloo, MPI and c10d between the workers",
        "needed: 29500: torchrun's master port",
        "needed: 29400: torchrun's c10d rendezvous",
        "needed: 35100-64000: Paddle's workers (PORT_RANGE)",
        "needed: 6070: Paddle's --start_port",
        "needed: 6767: Paddle's gloo",
        "needed: 29500-29563: remedy's verification",
        "needed: 8000: firewall.ports of the spec",
        "needed: 9000-9100: firewall.ports of the spec",
    )
    content = plan.contents[plan.for_host("ufw")[0].action.after].decode()  # type: ignore[index]
    assert (
        "--dports 6070,6767,8000,9000:9100,29400,29500:29563,32768:64000 -s 10.0.0.1 -j" in content
    )


def test_a_node_that_left_is_shut_out_and_one_that_is_down_is_not() -> None:
    before = several()
    after = promised(before, plan_of(before))
    fewer = fleet(*(s for n, s in after.states.items() if n != "leg"))
    plan = settled(fewer)
    assert {c.host for c in plan.changes} == {"ufw", "fwd", "nft", "ipt"}
    content = plan.contents[plan.for_host("nft")[1].action.after].decode()  # type: ignore[index]
    assert "ip saddr { 10.0.0.1-10.0.0.5 }" in content
    # A host that cannot be read, and whose cluster address is therefore not known, stays welcome.
    spec = load_spec(None, section_models())
    cluster = spec.cluster.model_copy(update={"subnet": "10.0.0.0/24"})
    spec.sections["cluster"] = cluster
    down = fleet(*(s for n, s in after.states.items() if n != "leg"), spec=spec, absent=("leg",))
    assert down.addresses["leg"].address is None
    assert plan_of(down).changes == ()


def test_what_others_let_in_already_needs_nothing() -> None:
    rules = saved("-A INPUT -s 10.0.0.0/16 -j ACCEPT")
    calm = fleet(walled("a", "10.0.0.1", iptables=rules), walled("b", "10.0.0.2", iptables=rules))
    assert (plan_of(calm).changes, plan_of(calm).findings) == ((), ())


def test_a_rule_ahead_of_ours_blocks_in_words() -> None:
    before = several()
    after = promised(before, plan_of(before))
    text = after.states["ufw"].firewalls.iptables  # type: ignore[union-attr]
    assert isinstance(text, str)
    worse = text.replace(
        "-A INPUT -j ufw-before-input",
        "-A INPUT -s 10.0.0.0/8 -j DROP\n-A INPUT -j ufw-before-input",
    )
    walls = after.states["ufw"].firewalls.model_copy(update={"iptables": worse})
    states = {**after.states, "ufw": after.states["ufw"].model_copy(update={"firewalls": walls})}
    plan = plan_of(Fleet(after.inventory, states, after.spec))
    (finding,) = plan.blocked("ufw")
    assert (
        finding.title == "ufw keeps the cluster's hosts out, by a rule that comes before remedy's"
    )
    assert finding.evidence[0] == "-A INPUT -s 10.0.0.0/8 -j DROP"
    assert plan.changes == ()


def test_unknown_is_never_fine() -> None:
    blind = walled("a", "10.0.0.1", nft=Unknown(reason="Operation not permitted"))
    found = plan_of(fleet(blind, walled("b", "10.0.0.2")))
    (finding,) = found.findings
    assert (finding.kind, finding.title) == (
        FindingKind.UNKNOWN,
        "could not read what nftables lets in",
    )
    unread = walled("a", "10.0.0.1", iptables=saved()).model_copy(
        update={"sysctls": Unknown(reason="no")}
    )
    plan = plan_of(fleet(unread, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert plan.blocked("a")


def test_leave_only_tells_and_off_switches_off() -> None:
    told = plan_of(several(spec=FirewallSpec(mode="leave")))
    assert told.changes == ()
    assert {f.kind for f in told.findings} == {FindingKind.REPORT}
    before = several(spec=FirewallSpec(mode="off"))
    plan = plan_of(before)
    assert plan_of(promised(before, plan)).changes == ()
    assert {c.host for c in plan.changes} == {"ufw", "fwd", "nft", "ipt", "leg"}
    assert all(change.risk is Risk.HIGH for change in plan.changes)
    (ufw_off,) = plan.for_host("ufw")
    assert isinstance(ufw_off.action, CommandAction)
    assert (ufw_off.action.do, ufw_off.action.undo) == ("ufw --force disable", "ufw --force enable")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("firewall: {mode: maybe}", "firewall.mode"),
        ("firewall: {ports: [9100-9000]}", "firewall.ports.0"),
        ("firewall: {ports: [70000]}", "firewall.ports.0"),
        ("firewall: {ports: [ssh]}", "firewall.ports.0"),
        ("firewall: {also_from: [10.0.0.300]}", "firewall.also_from.0"),
        ("firewall: {also_from: [0.0.0.0/0]}", "mode: off"),
        ("firewall: {frameworks: [tensorflow]}", "firewall.frameworks.0"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: FilePath, text: str, words: str
) -> None:
    (tmp_path / "remedy.yaml").write_text(text)
    with pytest.raises(SpecError, match=words):
        load_spec(tmp_path / "remedy.yaml", section_models())


def test_off_is_taken_as_yaml_reads_it(tmp_path: FilePath) -> None:
    (tmp_path / "remedy.yaml").write_text("firewall: {mode: off, ports: [8000]}")
    section: SpecSection = load_spec(tmp_path / "remedy.yaml", section_models()).sections[
        "firewall"
    ]
    assert isinstance(section, FirewallSpec)
    assert (section.mode, section.ports) == ("off", ("8000",))


def test_two_thousand_peers_are_few_rules() -> None:
    start = int(IPv4Address("10.1.0.0"))
    row = Opening(((start, start + 1999),), PORTS)
    assert len(iptables.accepts(iptables.OWN, row)) < 10
    scattered = Opening(tuple((start + 3 * n, start + 3 * n) for n in range(2000)), PORTS)
    assert nftables.rule_text(scattered).count("accept") == 1
    assert firewalld.policy_text(scattered).count("<rule") == 3


# --- any rules ---------------------------------------------------------------------------------------------

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
            iptables.JUMP,
            "-A REMEDY-PEERS -s 10.0.0.9/32 -p tcp -m tcp --dport 29500 -j ACCEPT",
        ]
    ),
    max_size=6,
    unique=True,
)


@settings(max_examples=60)
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


@settings(max_examples=50)
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
    assert iptables.opening_of(ufw.live_lines(written)) is not None


@given(openings)
def test_rules_say_what_they_were_made_for(opening: Opening) -> None:
    assert iptables.opening_of(iptables.accepts(iptables.OWN, opening)) == opening
    for part in iptables.port_parts(opening.ports):
        assert sum(2 if ":" in port else 1 for port in part.split(",")) <= iptables.PORT_SLOTS


numbers = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6).map(
    lambda pairs: spans.merge((min(pair), max(pair)) for pair in pairs)
)


@given(numbers, numbers)
def test_spans_are_sets(one: spans.Spans, other: spans.Spans) -> None:
    def members(found: spans.Spans) -> set[int]:
        return {n for low, high in found for n in range(low, high + 1)}

    assert members(spans.meet(one, other)) == members(one) & members(other)
    assert members(spans.minus(one, other)) == members(one) - members(other)
    addresses = [int(a) for network in spans.networks(one) for a in network]
    assert sorted(addresses) == sorted(members(one))
