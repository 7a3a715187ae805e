"""Ports for new sockets: what is set, what is merged, what beats it at boot."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.firewall import FirewallSpec
from remedy.deploys.port_range import PATH, PortRangeSpec
from remedy.deploys.port_range import PATH as PORTS
from remedy.edit import sysctl
from remedy.errors import SpecError
from remedy.firewall.ports import RANGE_KEY, RESERVED_KEY
from remedy.plan import CommandAction, FindingKind, Fleet, Plan, promised
from remedy.plan import section_models as models
from remedy.probe import File, HostState, Software, Sysctls
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit import plans
from tests.unit.build import fleet, record, with_section
from tests.unit.deploys.ports_bench import USUAL, settings_host


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "port_range")


def settled(fleet: Fleet) -> Plan:
    return plans.settled(fleet, "port_range")


def of(*states: HostState, spec: PortRangeSpec | None = None, hccl: bool = False) -> Fleet:
    given_spec = with_section("port_range", spec or PortRangeSpec())
    if hccl:
        given_spec.sections["firewall"] = FirewallSpec(frameworks=("torch", "hccl"))
    return fleet(*states, spec=given_spec)


def written(plan: Plan, host: str = "a") -> str:
    return plan.contents[plan.for_host(host)[0].action.after].decode()  # type: ignore[index]


def test_a_usual_host_needs_nothing() -> None:
    plan = plan_of(of(settings_host()))
    assert (plan.changes, plan.findings) == ((), ())
    unknown = settings_host().model_copy(update={"sysctls": Unknown(reason="no")})
    assert plan_of(of(unknown)).findings == ()


def test_a_range_that_the_spec_names_is_set_everywhere() -> None:
    spec = PortRangeSpec(range=(50000, 60999))
    plan = settled(of(settings_host(), settings_host("b", 2, live="50000 60999"), spec=spec))
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
    plan = settled(of(settings_host(live=live, reserved=reserved, files=files), hccl=hccl))
    if after is None:
        assert plan.changes == ()
        return
    assert written(plan).splitlines()[1:] == [f"{RESERVED_KEY} = {after}"]
    (finding,) = plan.findings
    assert finding.label == "master-port-in-use"
    assert finding.title == "the kernel may give ports that launchers need to outgoing connections"


def test_what_another_file_reserves_at_boot_is_kept_too() -> None:
    files = {"/usr/lib/sysctl.d/10-vendor.conf": "net.ipv4.ip_local_reserved_ports=111-112\n"}
    plan = settled(of(settings_host(files=files), spec=PortRangeSpec(reserve=("8000",))))
    assert "= 111-112,8000\n" in written(plan)


def test_a_later_file_that_wins_at_boot_is_told() -> None:
    files = {"/etc/sysctl.d/99-tuning.conf": f"# fast\n{RANGE_KEY} = 40000 50000\n"}
    before = of(
        settings_host(live="40000 50000", files=files), spec=PortRangeSpec(range=(50000, 60999))
    )
    plan = settled(before)
    (blocked,) = plan.blocked("a")
    assert blocked.evidence == (
        f"/etc/sysctl.d/99-tuning.conf:2: {RANGE_KEY} = 40000 50000, needs 50000 60999",
    )
    again = plan_of(promised(before, plan))
    assert (again.changes, again.blocked("a")) == ((), (blocked,))


def test_a_file_that_nothing_asks_for_goes() -> None:
    before = of(settings_host(), spec=PortRangeSpec(range=(50000, 60999)))
    after = promised(before, plan_of(before))
    plan = settled(of(*after.states.values()))
    (change,) = plan.changes
    assert change.title.startswith(f"remove {PATH}")


def test_ports_stay_reserved_while_a_host_that_may_need_them_was_not_read() -> None:
    text = f"{RESERVED_KEY} = 60000-60031\n"
    host = settings_host(reserved="60000-60031", files={PATH: text})
    limited = fleet(host, spec=with_section("port_range", PortRangeSpec()), absent=("npu",))
    assert plan_of(limited).changes == ()
    known = host.model_copy(update={"software": record(Software)})
    (change,) = plan_of(fleet(known, spec=with_section("port_range", PortRangeSpec()))).changes
    assert change.title.startswith(f"remove {PATH}")


def test_a_file_that_cannot_be_written_blocks() -> None:
    locked = File(path=PATH, real_path=PATH, exists=False, immutable=True)
    host = settings_host()
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


# --- what findings say ---


def test_a_range_that_is_not_the_specs_is_said_with_both() -> None:
    plan = plan_of(
        of(
            settings_host(live="1024 65535"),
            spec=PortRangeSpec.model_validate({"range": "50000-60999"}),
        )
    )
    finding = plan.findings[0]
    assert "1024-65535" in finding.title
    assert finding.evidence == (f"{RANGE_KEY} = 1024 65535",)
    assert finding.label == "firewall-ports"
    assert {change.action.kind for change in plan.changes} == {"file", "command"}


def test_ports_of_launchers_in_the_range_are_said_with_who_needs_them() -> None:
    plan = plan_of(of(settings_host(live="1024 65535", reserved="8080")))
    (finding,) = plan.findings
    assert finding.label == "master-port-in-use"
    evidence = "\n".join(finding.evidence)
    for fact in (
        f"{RANGE_KEY} = 1024 65535",
        f"{RESERVED_KEY} = 8080",
        "needed: 29500: ",
        "needed: 29400: ",
        "29500-29563",
    ):
        assert fact in evidence
    action = next(c.action for c in plan.changes if c.action.kind == "command")
    assert action.after == "8080,29400,29500-29563"
    none = plan_of(of(settings_host(live="1024 65535"))).findings[0]
    assert f"{RESERVED_KEY} = none" in none.evidence


def test_ports_that_only_the_spec_reserves_are_said_as_that() -> None:
    plan = plan_of(
        of(settings_host(), spec=PortRangeSpec.model_validate({"reserve": ["8000-8010"]}))
    )
    (finding,) = plan.findings
    assert "spec" in finding.title
    assert finding.label == "master-port-in-use"
    assert not [line for line in finding.evidence if line.startswith("needed")]


def test_what_is_right_now_and_wrong_at_boot_is_said_with_the_files() -> None:
    late = {"/etc/sysctl.d/10-a.conf": f"{RESERVED_KEY} = 1\n"}
    spec = PortRangeSpec.model_validate({"reserve": ["8000"], "range": "32768-60999"})
    plan = plan_of(of(settings_host(reserved="1,8000", files=late), spec=spec))
    (finding,) = plan.findings
    assert "reboot" in finding.title
    assert f"{RANGE_KEY}: no file sets it, needs 32768 60999" in finding.evidence
    assert f"/etc/sysctl.d/10-a.conf:1: {RESERVED_KEY} = 1, needs 1,8000" in finding.evidence
    (change,) = plan.changes
    assert PORTS in change.title


def test_a_setting_that_the_probe_does_not_show_is_unknown() -> None:
    state = settings_host().model_copy(
        update={"sysctls": Sysctls(live={}, persisted=(), unread=())}
    )
    plan = plan_of(of(state, spec=PortRangeSpec.model_validate({"range": "50000-60999"})))
    (finding,) = plan.findings
    assert finding.kind is FindingKind.UNKNOWN
    assert RANGE_KEY in finding.title
    assert f"sysctl {RANGE_KEY}" in finding.fix
    blind = state.model_copy(update={"sysctls": Unknown(reason="no")})
    assert plan_of(of(blind)).findings == ()
    spec = PortRangeSpec.model_validate({"reserve": ["8000"]})
    assert [f.kind for f in plan_of(of(blind, spec=spec)).findings] == [FindingKind.UNKNOWN]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1024-1123", True),
        ("1024-1122", False),
        ("1023-2000", False),
        ("65436-65535", True),
        ("1024-65536", False),
    ],
)
def test_a_range_is_wide_enough_and_among_the_ports_for_everybody(text: str, fits: bool) -> None:
    if fits:
        low, high = text.split("-")
        assert PortRangeSpec.model_validate({"range": text}).range == (int(low), int(high))
    else:
        with pytest.raises(ValueError, match=text.split("-")[0]):
            PortRangeSpec.model_validate({"range": text})


# --- any host ---

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
    settled(of(settings_host(live=live, reserved=reserved, files=texts), spec=spec))


def test_settings_with_a_dot_in_an_interface_are_written_with_slashes() -> None:
    text = sysctl.render({"net.ipv6.conf.eth0/10.disable_ipv6": "1"}, "test").decode()
    assert text.endswith("net/ipv6/conf/eth0.10/disable_ipv6 = 1\n")
