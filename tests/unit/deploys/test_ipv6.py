"""The IPv6 remedy: what it switches, what it refuses, and that it leaves things alone by default."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.ipv6 import PATH, Ipv6Spec, Toggle, key_of, target_now
from remedy.errors import SpecError
from remedy.plan import CommandAction, FindingKind, Fleet, Plan, Risk, promised, section_models
from remedy.probe import Address, HostState, Interface, Kernel, Network, Route
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit import plans
from tests.unit.build import fleet, record, with_section
from tests.unit.deploys.ipv6_bench import OVER_6, settings_host

OFF_FILE = {
    "/etc/sysctl.d/60-no.conf": "net.ipv6.conf.all.disable_ipv6=1\nnet.ipv6.conf.default.disable_ipv6=1\n"
}


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "ipv6")


def settled(fleet: Fleet) -> Plan:
    return plans.settled(fleet, "ipv6")


def of(*states: HostState, mode: Toggle = "keep", **interfaces: Toggle) -> Fleet:
    return fleet(*states, spec=with_section("ipv6", Ipv6Spec(mode=mode, interfaces=interfaces)))


def live_of(plan: Plan) -> CommandAction:
    (action,) = (c.action for c in plan.changes if isinstance(c.action, CommandAction))
    return action


def test_by_default_nothing_is_looked_at() -> None:
    off = dict.fromkeys(("all", "default", "eth0"), "1")
    for host in (settings_host(), settings_host(off, files=OFF_FILE), settings_host({})):
        plan = plan_of(of(host))
        assert (plan.changes, plan.findings) == ((), ())


def test_switching_off_everywhere_is_written_and_in_force() -> None:
    plan = settled(of(settings_host(), mode="disable"))
    assert [c.title for c in plan.changes] == [
        f"write {PATH}, for the next boot",
        "switch IPv6 off everywhere",
    ]
    content = plan.contents[plan.changes[0].action.after].decode()  # type: ignore[index]
    assert content.splitlines()[1:] == [
        "net.ipv6.conf.all.disable_ipv6 = 1",
        "net.ipv6.conf.default.disable_ipv6 = 1",
    ]
    action = live_of(plan)
    assert action.do.startswith("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && ")
    assert (action.before, action.after) == ("0\n0\n0\n0", "1\n1\n1\n1")
    (finding,) = plan.findings
    assert "does not resolve" in finding.fix


def test_switching_on_what_a_file_switches_off() -> None:
    off = dict.fromkeys(("all", "default", "eth0"), "1")
    plan = settled(of(settings_host(off, files=OFF_FILE), mode="enable"))
    assert [c.title for c in plan.changes][1] == "switch IPv6 on everywhere"
    assert plan_of(of(settings_host(), mode="enable")).changes == (), (
        "on is what a host is without any file"
    )


def test_single_interfaces() -> None:
    plan = settled(of(settings_host(), eth0="disable"))
    assert live_of(plan).do == "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"
    mixed = settled(of(settings_host(), mode="disable", lo="enable"))
    assert live_of(mixed).after == "1\n1\n1\n0"
    kept = settled(of(settings_host(), mode="disable", eth0="keep"))
    assert live_of(kept).after == "1\n1\n0\n1"
    dotted = settings_host({**dict.fromkeys(("all", "default"), "0"), "eth0/10": "0"})
    plan = settled(
        fleet(dotted, spec=with_section("ipv6", Ipv6Spec(interfaces={"eth0.10": "disable"})))
    )
    assert "conf/eth0.10/disable_ipv6" in live_of(plan).do


def test_an_interface_that_nobody_has_is_told() -> None:
    (finding,) = plan_of(of(settings_host(), eth9="disable")).findings
    assert (finding.host, finding.kind) == (None, FindingKind.REPORT)
    assert finding.title == "no host has an interface 'eth9', which ipv6.interfaces names"


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        (OVER_6, FindingKind.BLOCKED),
        ({"SSH_CONNECTION": "::ffff:10.0.0.9 5000 ::ffff:10.0.0.1 22"}, None),
        ({}, None),  # then the inventory tells
    ],
)
def test_what_carries_ssh_is_not_switched_off(
    environment: dict[str, str], kind: FindingKind | None
) -> None:
    plan = plan_of(of(settings_host(environment=environment), mode="disable"))
    blocked = plan.blocked("a")
    assert [f.kind for f in blocked] == ([] if kind is None else [kind])
    assert bool(plan.changes) is (kind is None)


def test_addresses_that_go_are_told_and_come_back() -> None:
    host = settings_host()
    assert isinstance(host.network, Network)
    own = (
        Address(address="fd00::1", prefix=64, scope="global"),
        Address(address="fe80::1", prefix=64, scope="link"),
    )
    interface: Interface = record(
        Interface, name="eth0", addresses=(*host.network.interfaces[0].addresses, *own)
    )
    route = Route(destination="default", gateway="fd00::ff", interface="eth0", source="", metric=10)
    network = Network(interfaces=(interface,), routes=(route,), rules=())
    plan = settled(of(host.model_copy(update={"network": network}), mode="disable"))
    assert plan.changes[1].risk is Risk.HIGH
    assert plan.changes[1].disrupts.startswith("takes 1 IPv6 address and 1 IPv6 route")
    assert live_of(plan).undo.endswith(
        "ip -6 address replace fd00::1/64 dev eth0 && "
        "ip -6 route replace default via fd00::ff dev eth0 metric 10"
    )


def test_a_later_file_a_kernel_without_ipv6_and_no_answer_are_told() -> None:
    late = {"/etc/sysctl.d/99-z.conf": "net.ipv6.conf.all.disable_ipv6 = 0\n"}
    (blocked,) = settled(of(settings_host(files=late), mode="disable")).blocked("a")
    assert blocked.evidence == (
        "/etc/sysctl.d/99-z.conf:1: net.ipv6.conf.all.disable_ipv6 = 0, needs 1",
    )
    assert plan_of(of(settings_host({}), mode="disable")).findings == ()
    (none,) = plan_of(of(settings_host({}), mode="enable")).blocked("a")
    assert "no IPv6" in none.title
    dumb = settings_host().model_copy(update={"sysctls": Unknown(reason="no answer")})
    (unknown,) = plan_of(of(dumb, mode="disable")).blocked("a")
    assert unknown.kind is FindingKind.UNKNOWN


def test_a_file_that_nothing_asks_for_goes() -> None:
    before = of(settings_host(), mode="disable")
    after = promised(before, plan_of(before))
    plan = settled(of(*after.states.values()))
    assert [c.title for c in plan.changes] == [
        f"remove {PATH}; IPv6 stays as it is until the next boot"
    ]


def test_a_wrong_word_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "remedy.yaml").write_text("ipv6: {interfaces: {eth0: never}}\n")
    with pytest.raises(SpecError, match=r"ipv6\.interfaces\.eth0"):
        load_spec(tmp_path / "remedy.yaml", section_models())


# --- what is left alone, and what is said ---


@pytest.mark.parametrize(
    "name", ["veth1", "docker0", "br-1", "cni0", "cali1", "flannel.1", "lxcbr0", "podman0"]
)
def test_interfaces_of_containers_are_left_alone(name: str) -> None:
    live = dict.fromkeys([key_of(x) for x in ("eth0", name, "all", "default")], "0")
    target = target_now(live, Ipv6Spec(mode="disable"))
    assert list(target) == [key_of("all"), key_of("default"), key_of("eth0")]
    assert set(target.values()) == {"1"}
    named = target_now(live, Ipv6Spec(interfaces={name: "disable"}))
    assert named == {key_of(name): "1"}


def test_other_settings_of_ipv6_are_not_those_that_switch_it() -> None:
    live = {
        key_of("all"): "0",
        "net.ipv6.conf.eth0.accept_ra": "1",
        "net.ipv4.conf.eth0.disable_ipv6": "0",
    }
    assert list(target_now(live, Ipv6Spec(mode="disable"))) == [key_of("all"), key_of("default")]
    assert target_now(live, Ipv6Spec(interfaces={"eth9": "disable"})) == {}


def test_what_is_wrong_is_said_with_the_settings_and_whether_it_is_on_or_off() -> None:
    plan = plan_of(of(settings_host(), eth0="disable"))
    (finding,) = plan.findings
    assert "IPv6 is on" in finding.title
    assert finding.evidence == (f"{key_of('eth0')} = 0, needs 1",)
    assert "c10d" in finding.fix
    assert finding.label == "ipv6-issue"
    switch = plan.changes[1]
    assert switch.title == "switch IPv6 off on eth0"
    assert (switch.risk, switch.guarded, switch.disrupts) == (Risk.MEDIUM, True, "")
    off = dict.fromkeys(("all", "default", "eth0"), "1")
    on = plan_of(of(settings_host(off), eth0="enable"))
    assert "IPv6 is off" in on.findings[0].title
    assert on.findings[0].fix == ""


def test_what_will_be_wrong_after_a_reboot_is_said_as_that() -> None:
    off = dict.fromkeys(("all", "default", "eth0", "lo"), "1")
    plan = plan_of(of(settings_host(off), mode="disable"))
    (finding,) = plan.findings
    assert "reboot" in finding.title
    assert set(finding.evidence) == {f"at boot: needs {key_of(x)} = 1" for x in ("all", "default")}
    (change,) = plan.changes
    assert PATH in change.title
    assert change.guarded


def test_a_kernel_without_ipv6_is_said_with_its_command_line() -> None:
    kernel = record(Kernel, command_line="quiet ipv6.disable=1 root=/dev/sda", modules=frozenset())
    state = settings_host({}).model_copy(update={"kernel": kernel})
    for settings in ({"mode": "enable"}, {"eth0": "enable"}):
        (finding,) = plan_of(of(state, **settings)).blocked("a")  # type: ignore[arg-type]
        assert finding.evidence == ("ipv6.disable=1",)
        assert "ipv6.disable=1" in finding.fix
    assert plan_of(of(state, eth0="disable")).blocked("a") == ()


def ssh(connection: str, *, address: str = "", interface: str = "eth0") -> Plan:
    """Return the plan that switches eth0 off, where ssh came in so, and this interface has the address."""
    state = settings_host(environment={"SSH_CONNECTION": connection} if connection else {})
    assert isinstance(state.network, Network)
    own = record(
        Interface,
        name=interface,
        addresses=(Address(address=address, prefix=64, scope="global"),),
    )
    interfaces = (*state.network.interfaces, *((own,) if address else ()))
    network = state.network.model_copy(update={"interfaces": interfaces})
    return plan_of(of(state.model_copy(update={"network": network}), eth0="disable"))


def test_ssh_over_another_interface_is_no_reason_to_refuse() -> None:
    assert ssh("fd00::9 5000 fd00::1%eth0 22", address="fd00::1", interface="eth7").changes
    refused = ssh("fd00::9 5000 fd00::1 22", address="fd00::1", interface="eth0")
    (finding,) = refused.blocked("a")
    assert refused.changes == ()
    assert finding.kind is FindingKind.BLOCKED
    assert "SSH_CONNECTION=fd00::9 5000 fd00::1 22" in finding.evidence
    assert "IPv4" in finding.fix


def test_where_it_is_not_known_how_ssh_came_in_nothing_is_switched_off() -> None:
    found = of(settings_host(environment={}), mode="disable")
    nodes = tuple(
        node.__class__(name=node.name, ssh_address="gpu.example.org")
        for node in found.inventory.nodes
    )
    unnamed = found.__class__(
        found.inventory.__class__(path=found.inventory.path, nodes=nodes), found.states, found.spec
    )
    plan = plan_of(unnamed)
    (finding,) = plan.blocked("a")
    assert finding.kind is FindingKind.UNKNOWN
    assert plan.changes == ()
    assert finding.evidence
    assert "ssh_hostname" in finding.fix


def test_an_interface_that_no_host_has_is_said_with_those_there_are() -> None:
    (finding,) = plan_of(of(settings_host(), eth9="disable")).findings
    assert finding.evidence == ("there are: eth0",)
    assert "remedy.yaml" in finding.fix
    known = of(settings_host(), eth9="disable")
    blind = settings_host().model_copy(update={"network": Unknown(reason="x")})
    unread = known.__class__(known.inventory, {"a": blind}, known.spec)
    assert [f for f in plan_of(unread).findings if f.host is None] == []


# --- any host ---

toggles = st.sampled_from(["keep", "disable", "enable"])
bits = st.sampled_from(["0", "1"])


@given(
    st.fixed_dictionaries(dict.fromkeys(("all", "default", "eth0", "lo", "docker0"), bits)),
    st.dictionaries(
        st.sampled_from([PATH, "/etc/sysctl.d/10-a.conf", "/etc/sysctl.d/99-z.conf"]), bits
    ),
    toggles,
    st.dictionaries(st.sampled_from(["eth0", "lo", "eth9"]), toggles),
)
def test_any_host_converges_and_comes_back(
    live: dict[str, str], files: dict[str, str], mode: Toggle, interfaces: dict[str, Toggle]
) -> None:
    texts = {path: f"net.ipv6.conf.all.disable_ipv6 = {bit}\n" for path, bit in files.items()}
    settled(of(settings_host(live, files=texts), mode=mode, **interfaces))
