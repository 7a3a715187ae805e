"""What a verification knows of its hosts: what check finds of each, and of the fleet where that names it."""

from __future__ import annotations

from pathlib import Path

from remedy.inventory import Inventory, Node
from remedy.plan import Finding, FindingKind, Plan
from remedy.runs.proof import Scene, _participants
from remedy.verify.hosts import Participant
from remedy.verify.verdict import Culprit
from tests.unit.build import fleet, host_state, record

HOSTS = ("gpu01", "gpu02", "gpu03")


def finding(title: str, *evidence: str, host: str | None = None) -> Finding:
    return Finding(
        host=host,
        remedy="x",
        kind=FindingKind.REPORT,
        label="unknown",
        title=title,
        evidence=evidence,
    )


def facts_of(host: str, *findings: Finding) -> tuple[str, ...]:
    states = fleet(*(host_state(name, f"10.0.0.{n}") for n, name in enumerate(HOSTS, 1)))
    tested = [Participant(name=name, address=f"10.0.0.{n}") for n, name in enumerate(HOSTS, 1)]
    inventory = Inventory(Path("inventory.py"), tuple(Node(name, name) for name in HOSTS))
    scene = Scene(states, record(Plan, findings=findings, changes=()), {})
    known = _participants(inventory, tested, scene)
    return known.with_facts(Culprit(name=host, hosts=(host,), reason="silent")).facts


def test_what_is_found_of_the_fleet_is_known_of_the_hosts_that_it_names() -> None:
    twins = finding("the interfaces of gpu[01-02] have one hardware address", "02:00 on 2 hosts")
    torch = finding("torch differs between the hosts", "2.1: gpu02", "2.2: gpu[01,03]")
    own = finding("the clock is wrong", "by 9 s", host="gpu02")
    assert facts_of("gpu02", twins, torch, own) == (
        "the clock is wrong (by 9 s)",
        "the interfaces of gpu[01-02] have one hardware address (02:00 on 2 hosts)",
        "torch differs between the hosts (2.1: gpu02)",
    )
    assert facts_of("gpu03", twins, torch) == ("torch differs between the hosts (2.2: gpu[01,03])",)


def test_what_a_host_has_alone_comes_before_what_most_have() -> None:
    mtu = finding(
        "the MTU differs", "mtu 1500: gpu[01,03]", "mtu 1400: gpu02", "interface eno2: gpu02"
    )
    torch = finding("torch differs between the hosts", "2.1: gpu03", "2.2: gpu[01-02]")
    own = finding("nftables keeps hosts out", host="gpu03")
    assert facts_of("gpu03", mtu, torch, own) == (
        "nftables keeps hosts out",
        "torch differs between the hosts (2.1: gpu03)",
        "the MTU differs (mtu 1500: gpu[01,03])",
    )
    assert facts_of("gpu02", mtu)[0] == "the MTU differs (mtu 1400: gpu02; interface eno2: gpu02)"


def test_a_host_of_which_nothing_is_found_is_said_to_be_so() -> None:
    twins = finding("the interfaces of gpu[01-02] have one hardware address", "02:00 on 2 hosts")
    assert facts_of("gpu03", twins) == ("check found nothing wrong on gpu03 before the test",)
