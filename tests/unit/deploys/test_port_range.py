"""Ports for new sockets: what is set, what is merged, what beats it at boot."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.firewall import FirewallSpec
from remedy.deploys.port_range import PATH, RESERVED_KEY, PortRangeSpec
from remedy.edit import sysctl
from remedy.errors import SpecError
from remedy.firewall.ports import RANGE_KEY
from remedy.plan import (
    CommandAction,
    FindingKind,
    Fleet,
    Plan,
    promised,
)
from remedy.plan import section_models as models
from remedy.probe import File, HostState, Sysctls
from remedy.probe.sysctl import parse_persisted
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit import plans
from tests.unit.build import fleet, host_state, with_section

USUAL = "32768 60999"


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "port_range")


def settled(fleet: Fleet) -> Plan:
    return plans.settled(fleet, "port_range")


def state(
    name: str = "a",
    number: int = 1,
    *,
    live: str = USUAL,
    reserved: str = "",
    files: dict[str, str] | None = None,
) -> HostState:
    found = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in (files or {}).items()
    }
    found.setdefault(PATH, File(path=PATH, real_path=PATH, exists=False))
    persisted, unread = parse_persisted(found, ufw=False)
    settings = Sysctls(
        live={RANGE_KEY: live, RESERVED_KEY: reserved}, persisted=persisted, unread=unread
    )
    host = host_state(name, f"10.0.0.{number}", files=found)
    return host.model_copy(update={"sysctls": settings})


def of(*states: HostState, spec: PortRangeSpec | None = None, hccl: bool = False) -> Fleet:
    given_spec = with_section("port_range", spec or PortRangeSpec())
    if hccl:
        given_spec.sections["firewall"] = FirewallSpec(frameworks=("torch", "hccl"))
    return fleet(*states, spec=given_spec)


def written(plan: Plan, host: str = "a") -> str:
    return plan.contents[plan.for_host(host)[0].action.after].decode()  # type: ignore[index]


def test_a_usual_host_needs_nothing() -> None:
    plan = plan_of(of(state()))
    assert (plan.changes, plan.findings) == ((), ())
    unknown = state().model_copy(update={"sysctls": Unknown(reason="no")})
    assert plan_of(of(unknown)).findings == ()


def test_a_range_that_the_spec_names_is_set_everywhere() -> None:
    spec = PortRangeSpec(range=(50000, 60999))
    plan = settled(of(state(), state("b", 2, live="50000 60999"), spec=spec))
    first, second = plan.for_host("a")
    assert written(plan).splitlines()[1:] == [f"{RANGE_KEY} = 50000 60999"]
    assert isinstance(second.action, CommandAction)
    assert second.action.do == "echo '50000 60999' >/proc/sys/net/ipv4/ip_local_port_range"
    assert (second.action.before, second.action.after) == (USUAL, "50000 60999")
    assert first.title == f"write {PATH}, for the next boot"
    assert [c.title for c in plan.for_host("b")] == [first.title]


@pytest.mark.parametrize(
    ("live", "reserved", "hccl", "after"),
    [
        ("1024 65535", "", False, "29400,29500-29563"),
        ("1024 65535", "8080,9000-9100", False, "8080,9000-9100,29400,29500-29563"),
        ("29450 65535", "29564", False, "29500-29564"),
        (USUAL, "8080", True, "8080,60000-60031"),
        (USUAL, "59999-60040", True, None),
        (USUAL, "", False, None),
    ],
)
def test_launchers_ports_inside_the_range_are_reserved_beside_those_of_others(
    live: str, reserved: str, hccl: bool, after: str | None
) -> None:
    files = {"/etc/sysctl.d/50-site.conf": f"{RESERVED_KEY} = {reserved}\n"} if reserved else {}
    plan = settled(of(state(live=live, reserved=reserved, files=files), hccl=hccl))
    if after is None:
        assert plan.changes == ()
        return
    assert written(plan).splitlines()[1:] == [f"{RESERVED_KEY} = {after}"]
    (finding,) = plan.findings
    assert finding.label == "master-port-in-use"
    assert finding.title == "the kernel may give ports that launchers need to outgoing connections"


def test_what_another_file_reserves_at_boot_is_kept_too() -> None:
    files = {"/usr/lib/sysctl.d/10-vendor.conf": "net.ipv4.ip_local_reserved_ports=111-112\n"}
    plan = settled(of(state(files=files), spec=PortRangeSpec(reserve=("8000",))))
    assert "= 111-112,8000\n" in written(plan)


def test_a_later_file_that_wins_at_boot_is_told() -> None:
    files = {"/etc/sysctl.d/99-tuning.conf": f"# fast\n{RANGE_KEY} = 40000 50000\n"}
    before = of(state(live="40000 50000", files=files), spec=PortRangeSpec(range=(50000, 60999)))
    plan = settled(before)
    (blocked,) = plan.blocked("a")
    assert blocked.evidence == (
        f"/etc/sysctl.d/99-tuning.conf:2: {RANGE_KEY} = 40000 50000, needs 50000 60999",
    )
    again = plan_of(promised(before, plan))
    assert (again.changes, again.blocked("a")) == ((), (blocked,))


def test_a_file_that_nothing_asks_for_goes() -> None:
    before = of(state(), spec=PortRangeSpec(range=(50000, 60999)))
    after = promised(before, plan_of(before))
    plan = settled(of(*after.states.values()))
    (change,) = plan.changes
    assert change.title.startswith(f"remove {PATH}")


def test_a_file_that_cannot_be_written_blocks() -> None:
    locked = File(path=PATH, real_path=PATH, exists=False, immutable=True)
    host = state()
    host = host.model_copy(update={"files": {**host.files, PATH: locked}})
    plan = plan_of(of(host, spec=PortRangeSpec(range=(50000, 60999))))
    assert plan.changes == ()
    assert [f.kind for f in plan.findings] == [FindingKind.DRIFT, FindingKind.BLOCKED]


@pytest.mark.parametrize(
    "text",
    ["{range: 60999-50000}", "{range: 80-9000}", "{range: 50000-50010}", "{range: many}", "{range: [1, 2, 3]}"],
)  # fmt: skip
def test_a_range_that_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "remedy.yaml").write_text(f"port_range: {text}\n")
    with pytest.raises(SpecError, match=r"port_range\.range"):
        load_spec(tmp_path / "remedy.yaml", models())


values = st.sampled_from(["", "8080", "111-112", "29500", "29400,29500-29563", "1-65535"])
ranges = st.sampled_from([USUAL, "1024 65535", "50000 60999", "29500 29599"])
names = st.sampled_from(
    ["/etc/sysctl.d/10-a.conf", PATH, "/etc/sysctl.d/99-z.conf", "/etc/ufw/sysctl.conf"]
)


@given(ranges, values, st.dictionaries(names, st.tuples(ranges, values), max_size=3), st.booleans())
def test_any_host_converges_and_comes_back(
    live: str, reserved: str, files: dict[str, tuple[str, str]], asked: bool
) -> None:
    texts = {p: f"{RANGE_KEY}={r}\n{RESERVED_KEY} = {v}\n" for p, (r, v) in files.items()}
    spec = PortRangeSpec(range=(50000, 60999) if asked else None)
    settled(of(state(live=live, reserved=reserved, files=texts), spec=spec))


def test_settings_with_a_dot_in_an_interface_are_written_with_slashes() -> None:
    text = sysctl.render({"net.ipv6.conf.eth0/10.disable_ipv6": "1"}, "test").decode()
    assert text.endswith("net/ipv6/conf/eth0.10/disable_ipv6 = 1\n")
