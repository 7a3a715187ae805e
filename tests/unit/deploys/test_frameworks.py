"""Which frameworks train on a fleet, and which ports they need there."""

from __future__ import annotations

import pytest

from remedy.deploys import _frameworks
from remedy.deploys.ascend import HCCN, AscendSpec
from remedy.deploys.firewall import FirewallSpec, needs, target_opening
from remedy.deploys.paddle import PaddleSpec
from remedy.firewall.ports import needs_of
from remedy.firewall.step import Opening
from remedy.plan import Fleet
from remedy.probe import File, HostState, LoginSession, Mention, Software
from remedy.probe.software import Package
from remedy.spec import SpecSection, VerifySpec
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, record, with_section

MINDSPORE = Package("mindspore", "2.10.0", "/opt/venv/lib/python3.11/site-packages")
PADDLE = Package("paddlepaddle", "3.3.1", "/opt/venv/lib/python3.11/site-packages")


def host(
    number: int,
    *packages: Package,
    programs: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    lines: tuple[str, ...] = (),
) -> HostState:
    known = {
        path: File(path=path, real_path=path, exists=True, content=b"address_0=10.9.0.1\n")
        for path in files
    }
    state = host_state(f"gpu{number}", f"10.0.0.{number}", files=known)
    return state.model_copy(
        update={
            "software": record(Software, packages=packages),
            "session": record(LoginSession, programs=dict.fromkeys(programs, "/usr/bin/x")),
            "mentions": tuple(Mention(path="/root/.bashrc", line=7, text=text) for text in lines),
        }
    )


def of(*states: HostState, **sections: SpecSection) -> Fleet:
    spec = with_section("firewall", FirewallSpec())
    spec.sections.update(sections)
    return fleet(*states, spec=spec)


def test_without_a_setting_it_is_torch_and_what_any_host_has() -> None:
    assert _frameworks.in_use(of(host(1), host(2))) == ("torch",)
    found = of(host(1, PADDLE), host(2, MINDSPORE, programs=("mpirun",)), host(3, files=(HCCN,)))
    assert _frameworks.in_use(found) == ("torch", "mpi", "paddle", "mindspore", "hccl")


def test_the_setting_counts_where_there_is_any() -> None:
    chosen = FirewallSpec(frameworks=("paddle",))
    assert _frameworks.in_use(of(host(1, MINDSPORE), firewall=chosen)) == ("paddle",)
    assert _frameworks.in_use(of(host(1), firewall=FirewallSpec(frameworks=()))) == ()


@pytest.mark.parametrize(
    ("engine", "framework"),
    [("mpi", "mpi"), ("nccl-tests", "mpi"), ("paddle", "paddle"), ("mindspore", "mindspore")],
)
def test_the_engine_of_the_verification_is_one_of_them(engine: str, framework: str) -> None:
    spec = VerifySpec.model_validate({"engine": engine})
    assert _frameworks.in_use(of(host(1), verify=spec)) == ("torch", framework)


def test_workers_of_mindspore_are_let_in_wherever_their_rank_puts_them() -> None:
    state = host(1, MINDSPORE)
    found = of(state)
    spans = [(n.low, n.high) for n in needs(found, state, FirewallSpec())]
    for port in (8118, 8119, 8374, 8630, 8118 + 15 * 256, 12213):
        assert any(low <= port <= high for low, high in spans), port
    assert not any(low <= 12214 <= high for low, high in spans)


def test_settings_of_other_remedies_count() -> None:
    state = host(1, files=(HCCN,))
    found = of(state, paddle=PaddleSpec(ports="8000-8007"), ascend=AscendSpec(base_port=50000))
    spans = {(n.low, n.high): n for n in _frameworks.needs(found, state)}
    assert spans[8000, 8007].fixed
    assert spans[8000, 8007].meeting
    assert (50000, 50031) in spans
    assert (60000, 60031) not in spans
    meeting = _frameworks.meeting_ports(found, state)
    assert {29500, 29400, 8000, 8007, 50000} <= set(meeting)
    assert 8118 not in meeting


def test_only_ports_that_cannot_be_shared_are_looked_at_for_orphans() -> None:
    state = host(1, MINDSPORE, PADDLE)
    ports = _frameworks.meeting_ports(of(state), state)
    assert {29500, 29400, 29511, 8118, 8090} <= set(ports)
    assert not {9100, 10250, 40000} & set(ports), (
        "where the next port is taken nothing is in the way"
    )
    chosen = of(state, verify=VerifySpec.model_validate({"port": 4711}))
    assert 4711 in _frameworks.meeting_ports(chosen, state)


def test_ports_of_open_mpi_that_the_operator_chose_are_opened() -> None:
    lines = (
        "export OMPI_MCA_btl_tcp_port_min_v4=20000",
        "export OMPI_MCA_btl_tcp_port_range_v4=100",
    )
    state = host(1, programs=("mpirun",), lines=lines)
    spans = [(n.low, n.high) for n in _frameworks.needs(of(state), state)]
    assert (20000, 20099) in spans
    bare = host(1, programs=("mpirun",))
    assert not [n for n in _frameworks.needs(of(bare), bare) if "Open MPI" in n.why]


def test_while_a_host_is_not_known_no_port_is_closed() -> None:
    state, blind = host(1), host(2).model_copy(update={"software": Unknown(reason="timed out")})
    now = Opening(((0, 9),), ((8118, 12213),))
    seen, unsure = of(state, host(2)), of(state, blind)
    assert _frameworks.is_settled(seen)
    assert not _frameworks.is_settled(unsure)
    assert (8118, 12213) not in target_opening(seen, state, FirewallSpec(), now).ports
    assert (8118, 12213) in target_opening(unsure, state, FirewallSpec(), now).ports
    chosen = of(state, blind, firewall=FirewallSpec(frameworks=("torch",)))
    assert _frameworks.is_settled(chosen)


def test_needs_are_those_of_the_frameworks_in_their_order() -> None:
    assert needs_of(()) == ()
    assert [need.low for need in needs_of(("mindspore", "torch"))] == [8118, 8118, 29500, 29400]
