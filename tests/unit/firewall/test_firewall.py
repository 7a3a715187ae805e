"""The firewall remedy: what is opened, where, and that planning on what a plan promises needs no plan."""

from __future__ import annotations

import pytest

from remedy.deploys.firewall import FirewallSpec
from remedy.firewall import firewalld, nftables, ufw
from remedy.firewall.walls import any_rules, tables, unknowns
from remedy.plan import (
    CommandAction,
    FileAction,
    FindingKind,
    Fleet,
    Risk,
    make_plan,
    promised,
    section_models,
)
from remedy.probe import Firewalls, HostState, LoginSession
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit.build import NO_FIREWALL, WHEN, fleet, record
from tests.unit.firewall.firewall_bench import (
    FIREWALLD,
    UFW_LIVE,
    UFW_RULES,
    file,
    findings,
    fleet_of,
    nft,
    plan_of,
    saved,
    settled,
    several,
    two_hosts,
    walled,
)

# --- what the plan does ---


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


# --- what findings say ---


def test_a_firewall_that_keeps_peers_out_is_named_with_its_rules_and_the_ports() -> None:
    plan = plan_of(two_hosts())
    (finding,) = findings(plan, FindingKind.DRIFT)
    assert "iptables" in finding.title
    assert finding.label == "firewall-ports"
    assert "policy drop" in finding.evidence[0]
    assert any(line.startswith("needed: 29500: ") for line in finding.evidence)
    narrow = two_hosts().states["a"].model_copy(
        update={"firewalls": NO_FIREWALL.model_copy(
            update={"iptables": saved("-A INPUT -p tcp --dport 29400 -j DROP", policy="ACCEPT")})}
    )  # fmt: skip
    (only,) = findings(plan_of(fleet_of(narrow, walled("b", "10.0.0.2"))), FindingKind.DRIFT)
    needed = [line for line in only.evidence if line.startswith("needed: ")]
    assert [line.split()[1] for line in needed] == ["29400:"]


def test_leave_reports_with_a_way_out_and_plans_nothing() -> None:
    plan = plan_of(two_hosts(mode="leave"))
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
        (finding,) = findings(plan_of(fleet_of(state)), FindingKind.UNKNOWN)
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
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    (finding,) = plan.blocked("a")
    assert "ufw" in finding.title
    assert "ufw" in finding.fix
    assert finding.evidence
    assert plan.changes == ()
    off = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld=None)
    (left,) = plan_of(fleet_of(off, walled("b", "10.0.0.2"))).blocked("a")
    assert "firewalld" in left.title


def test_switching_off_is_asked_for_by_the_spec_and_says_what_is_lost() -> None:
    plan = plan_of(several(spec=FirewallSpec(mode="off")))
    (change,) = plan.for_host("fwd")
    action = change.action
    assert isinstance(action, CommandAction)
    assert (change.risk, change.guarded) == (Risk.HIGH, True)
    assert change.disrupts
    assert "firewalld" in change.title
    assert (action.before, action.after) == ("active", "inactive")
    for text, verbs in ((action.do, ("disable", "stop")), (action.undo, ("enable", "start"))):
        for verb in verbs:
            assert (
                f"systemctl --no-reload {verb} firewalld.service" in text
                or f"systemctl {verb} firewalld" in text
            )
    assert action.observe == "systemctl is-active firewalld.service"
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
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
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
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert any(ufw.RULES in f.title for f in plan.blocked("a"))
    policy = file(firewalld.POLICY_FILES["in"], b"<policy/>").model_copy(update={"immutable": True})
    fwd = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n", files=[policy])
    blocked = plan_of(fleet_of(fwd, walled("b", "10.0.0.2")))
    assert blocked.changes == ()
    assert any(firewalld.POLICY_FILES["in"] in f.title for f in blocked.blocked("a"))


@pytest.mark.parametrize(
    "legacy",
    [saved("-A INPUT -j LOG"), "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT DROP\nCOMMIT\n"],
    ids=["in", "out"],
)
def test_rules_in_both_tables_write_the_file_of_saved_rules_once(legacy: str) -> None:
    path = "/etc/iptables/rules.v4"
    rules = file(path, saved().encode())
    state = walled("a", "10.0.0.1", iptables=saved(), iptables_legacy=legacy, files=[rules])
    plan = settled(fleet_of(state, walled("b", "10.0.0.2")))
    actions = [change.action for change in plan.for_host("a")]
    written = [action.path for action in actions if isinstance(action, FileAction)]
    assert written == [path]
    commands = [action.do for action in actions if isinstance(action, CommandAction)]
    assert ["legacy" in do for do in commands] == [False, True]
