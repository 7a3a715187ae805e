"""What has to be open: ports with their reasons, peers, and settings that cannot be."""

from __future__ import annotations

from pathlib import Path as FilePath

import pytest

from remedy.deploys.firewall import FirewallSpec, needs, port_range, sources, target_opening
from remedy.errors import SpecError
from remedy.firewall import spans
from remedy.firewall.step import Opening
from remedy.plan import section_models
from remedy.probe import Sysctls
from remedy.spec import SpecSection, load_spec
from remedy.values import Unknown
from tests.unit.build import fleet, with_section
from tests.unit.firewall.firewall_bench import fleet_of, plan_of, several, two_hosts, walled


def test_ports_come_from_the_kernel_the_frameworks_the_verification_and_the_spec() -> None:
    found = two_hosts(frameworks=["mindspore", "hccl"], ports=["8000"])
    spec = FirewallSpec.model_validate({"frameworks": ["mindspore", "hccl"], "ports": ["8000"]})
    ranges = [(need.low, need.high) for need in needs(found, found.states["a"], spec)]
    assert ranges == [
        (32768, 60999),
        (8118, 8118),
        (8118, 12213),
        (60000, 60031),
        (29500, 29563),
        (8000, 8000),
    ]
    assert port_range(found, found.states["a"]) == (32768, 60999)
    blind = found.states["a"].model_copy(update={"sysctls": Unknown(reason="x")})
    assert port_range(found, blind) is None
    odd = found.states["a"].model_copy(
        update={"sysctls": Sysctls(live={}, persisted=(), unread=())}
    )
    assert port_range(found, odd) is None


def test_peers_are_the_cluster_addresses_and_those_of_the_spec() -> None:
    found = two_hosts()
    assert sources(found, FirewallSpec()) == spans.of_networks(["10.0.0.1", "10.0.0.2"])
    more = FirewallSpec(also_from=("192.168.7.0/30",))
    assert sources(found, more) == spans.of_networks(["10.0.0.1", "10.0.0.2", "192.168.7.0/30"])


def test_off_is_open_to_everybody_and_a_lone_host_needs_nothing() -> None:
    found = two_hosts()
    a = found.states["a"]
    assert target_opening(found, a, FirewallSpec(mode="off"), None) == Opening(
        spans.ALL_ADDRESSES, ((1, 65535),)
    )
    lone = fleet_of(walled("a", "10.0.0.1"))
    assert target_opening(lone, lone.states["a"], FirewallSpec(), None) == Opening()
    guest = FirewallSpec(also_from=("192.168.7.1",))
    assert target_opening(lone, lone.states["a"], guest, None).sources == spans.of_networks(
        ["10.0.0.1", "192.168.7.1"]
    )


def test_while_an_address_is_not_known_nobody_who_is_let_in_is_shut_out() -> None:
    found = two_hosts()
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


def test_the_ports_come_with_their_reasons() -> None:
    plan = plan_of(
        several(spec=FirewallSpec(frameworks=("torch", "paddle"), ports=("8000", "9000-9100")))
    )
    (finding,) = (f for f in plan.findings if f.host == "ufw")
    assert finding.evidence == (
        "chain filter INPUT: policy drop",
        "needed: 32768-60999: net.ipv4.ip_local_port_range: NCCL, gloo, MPI and c10d between the workers",
        "needed: 29500: torchrun's master port",
        "needed: 29400: torchrun's c10d rendezvous",
        "needed: 35100-64000: Paddle's workers (PORT_RANGE)",
        "needed: 6070-6085: Paddle's --start_port, one port for each device",
        "needed: 6767: Paddle's gloo",
        "needed: 8090: the master of Paddle's documents (--master)",
        "needed: 29500-29563: remedy's verification",
        "needed: 8000: firewall.ports of the spec",
        "needed: 9000-9100: firewall.ports of the spec",
    )
    content = plan.contents[plan.for_host("ufw")[0].action.after].decode()  # type: ignore[index]
    assert (
        "--dports 6070:6085,6767,8000,8090,9000:9100,29400,29500:29563,32768:64000 -s 10.0.0.1 -j"
        in content
    )


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
