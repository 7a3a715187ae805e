"""The IPv6 remedy: what it switches, what it refuses, and that it leaves things alone by default."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.ipv6 import PATH, Ipv6Spec, Toggle
from remedy.errors import SpecError
from remedy.plan import (
    CommandAction,
    FindingKind,
    Fleet,
    Plan,
    Risk,
    promised,
    section_models,
)
from remedy.probe import Address, File, HostState, Interface, Network, Route, Sysctls
from remedy.probe.sysctl import parse_persisted
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit import plans
from tests.unit.build import fleet, host_state, record, with_section

OFF_FILE = {
    "/etc/sysctl.d/60-no.conf": "net.ipv6.conf.all.disable_ipv6=1\nnet.ipv6.conf.default.disable_ipv6=1\n"
}
OVER_4 = {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.1 22"}
OVER_6 = {"SSH_CONNECTION": "fd00::9 5000 fd00::1 22"}


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "ipv6")


def settled(fleet: Fleet) -> Plan:
    return plans.settled(fleet, "ipv6")


def keys(values: dict[str, str]) -> dict[str, str]:
    return {f"net.ipv6.conf.{name}.disable_ipv6": value for name, value in values.items()}


def state(
    values: dict[str, str] | None = None,
    *,
    files: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    name: str = "a",
    number: int = 1,
) -> HostState:
    found = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in (files or {}).items()
    }
    found.setdefault(PATH, File(path=PATH, real_path=PATH, exists=False))
    persisted, unread = parse_persisted(found, ufw=False)
    live = keys(
        values if values is not None else dict.fromkeys(("all", "default", "eth0", "lo"), "0")
    )
    host = host_state(name, f"10.0.0.{number}", files=found)
    return host.model_copy(
        update={
            "sysctls": Sysctls(live=live, persisted=persisted, unread=unread),
            "environment": OVER_4 if environment is None else environment,
        }
    )


def of(*states: HostState, mode: Toggle = "keep", **interfaces: Toggle) -> Fleet:
    return fleet(*states, spec=with_section("ipv6", Ipv6Spec(mode=mode, interfaces=interfaces)))


def live_of(plan: Plan) -> CommandAction:
    (action,) = (c.action for c in plan.changes if isinstance(c.action, CommandAction))
    return action


def test_by_default_nothing_is_looked_at() -> None:
    off = dict.fromkeys(("all", "default", "eth0"), "1")
    for host in (state(), state(off, files=OFF_FILE), state({})):
        plan = plan_of(of(host))
        assert (plan.changes, plan.findings) == ((), ())


def test_switching_off_everywhere_is_written_and_in_force() -> None:
    plan = settled(of(state(), mode="disable"))
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
    plan = settled(of(state(off, files=OFF_FILE), mode="enable"))
    assert [c.title for c in plan.changes][1] == "switch IPv6 on everywhere"
    assert plan_of(of(state(), mode="enable")).changes == (), (
        "on is what a host is without any file"
    )


def test_single_interfaces() -> None:
    plan = settled(of(state(), eth0="disable"))
    assert live_of(plan).do == "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"
    mixed = settled(of(state(), mode="disable", lo="enable"))
    assert live_of(mixed).after == "1\n1\n1\n0"
    kept = settled(of(state(), mode="disable", eth0="keep"))
    assert live_of(kept).after == "1\n1\n0\n1"
    dotted = state({**dict.fromkeys(("all", "default"), "0"), "eth0/10": "0"})
    plan = settled(
        fleet(dotted, spec=with_section("ipv6", Ipv6Spec(interfaces={"eth0.10": "disable"})))
    )
    assert "conf/eth0.10/disable_ipv6" in live_of(plan).do


def test_an_interface_that_nobody_has_is_told() -> None:
    (finding,) = plan_of(of(state(), eth9="disable")).findings
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
    plan = plan_of(of(state(environment=environment), mode="disable"))
    blocked = plan.blocked("a")
    assert [f.kind for f in blocked] == ([] if kind is None else [kind])
    assert bool(plan.changes) is (kind is None)


def test_addresses_that_go_are_told_and_come_back() -> None:
    host = state()
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
    assert plan.changes[1].disrupts.startswith("2 IPv6 addresses and routes")
    assert live_of(plan).undo.endswith(
        "ip -6 address replace fd00::1/64 dev eth0 && "
        "ip -6 route replace default via fd00::ff dev eth0 metric 10"
    )


def test_a_later_file_a_kernel_without_ipv6_and_no_answer_are_told() -> None:
    late = {"/etc/sysctl.d/99-z.conf": "net.ipv6.conf.all.disable_ipv6 = 0\n"}
    (blocked,) = settled(of(state(files=late), mode="disable")).blocked("a")
    assert blocked.evidence == (
        "/etc/sysctl.d/99-z.conf:1: net.ipv6.conf.all.disable_ipv6 = 0, needs 1",
    )
    assert plan_of(of(state({}), mode="disable")).findings == ()
    (none,) = plan_of(of(state({}), mode="enable")).blocked("a")
    assert "no IPv6" in none.title
    dumb = state().model_copy(update={"sysctls": Unknown(reason="no answer")})
    (unknown,) = plan_of(of(dumb, mode="disable")).blocked("a")
    assert unknown.kind is FindingKind.UNKNOWN


def test_a_file_that_nothing_asks_for_goes() -> None:
    before = of(state(), mode="disable")
    after = promised(before, plan_of(before))
    plan = settled(of(*after.states.values()))
    assert [c.title for c in plan.changes] == [
        f"remove {PATH}; IPv6 stays as it is until the next boot"
    ]


def test_a_wrong_word_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "remedy.yaml").write_text("ipv6: {interfaces: {eth0: never}}\n")
    with pytest.raises(SpecError, match=r"ipv6\.interfaces\.eth0"):
        load_spec(tmp_path / "remedy.yaml", section_models())


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
    settled(of(state(live, files=texts), mode=mode, **interfaces))
