"""What a plan says of addresses, machines and values that differ: whole, as an operator reads it."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest

from remedy.bounds import TooMuchError
from remedy.plan import Finding, FindingKind, Fleet
from remedy.plan.claimed import SHORTEST_PREFIX, implausible, interface_addresses, why_not
from remedy.plan.compare import differences, groups
from remedy.plan.fleet import ClusterAddress
from remedy.plan.identities import Claim, claims, findings
from remedy.plan.planner import _not_judged
from tests.unit.build import fleet as of
from tests.unit.plan.plan_bench import addressed, machine
from tests.unit.plan.plan_bench import with_addresses as host
from tests.unit.sentences import flaws

OUTSIDE = "198.51.100.7"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (addressed(host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1"}, given={"a": "10.9.9.9"}),
         ClusterAddress("10.9.9.9", "cluster_address in the inventory")),
        (addressed(host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1"}, subnet="10.0.0.0/16"),
         ClusterAddress("10.0.0.1", "in 10.0.0.0/16, cluster.subnet of the spec")),
        (addressed(host("a", "10.0.0.1/24"), ssh={"a": OUTSIDE}, subnet="10.0.0.0/16"),
         ClusterAddress("10.0.0.1", "in 10.0.0.0/16, cluster.subnet of the spec", claimed=True)),
        (addressed(host("a", "10.9.0.1/24"), ssh={"a": "10.9.0.1"}, subnet="10.0.0.0/16"),
         ClusterAddress(None, "has no address of its own in 10.0.0.0/16, cluster.subnet of the spec")),
        (addressed(host("a", "240.0.0.1/24"), ssh={"a": OUTSIDE}, subnet="240.0.0.0/16"),
         ClusterAddress(None, "has no address of its own in 240.0.0.0/16, cluster.subnet of the spec; "
                        "240.0.0.1 is no address of a host (RFC 6890), so what it says is not used")),
        (addressed(host("a", "10.0.0.1/24"), ssh={"a": "10.0.0.1"}),
         ClusterAddress("10.0.0.1", "the address used for ssh")),
        (addressed(host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), ssh={"a": OUTSIDE, "b": OUTSIDE}),
         ClusterAddress("10.0.0.1", "in 10.0.0.0/24, which all hosts share", claimed=True)),
        (addressed(host("a", "10.0.0.1/24"), host("b", "10.1.0.2/24"), ssh={"a": OUTSIDE, "b": OUTSIDE}),
         ClusterAddress(None, "no interface has the ssh address, and no subnet is shared by all")),
        (addressed(host("a"), ssh={"a": "fd00::1"}),
         ClusterAddress(None, "ssh goes over IPv6, a cluster's addresses are IPv4, and they share no subnet of "
                        "IPv4")),
        (addressed(host("a", "10.0.0.0/24"), host("b", "10.1.0.2/24"), ssh={"a": OUTSIDE, "b": OUTSIDE}),
         ClusterAddress(None, "no interface has the ssh address, and no subnet is shared by all; 10.0.0.0 is "
                        "the address of the network 10.0.0.0/24 itself, or its broadcast, so what it says is "
                        "not used")),
    ],
)  # fmt: skip
def test_an_address_has_its_reason(found: Fleet, expected: ClusterAddress) -> None:
    assert found.addresses["a"] == expected


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.0.0.1/8", ""),
        ("10.0.0.1/7", "10.0.0.1/7 would be in a network larger than any"),
        *((f"{ip}/24", f"{ip} is no address of a host (RFC 6890)") for ip in (
            "0.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1",
            "127.0.0.1",
        )),
        ("10.0.0.0/24", "10.0.0.0 is the address of the network 10.0.0.0/24 itself, or its broadcast"),
        ("10.0.0.255/24", "10.0.0.255 is the address of the network 10.0.0.0/24 itself, or its broadcast"),
        ("10.0.0.3/30", "10.0.0.3 is the address of the network 10.0.0.0/30 itself, or its broadcast"),
        ("10.0.0.0/31", ""),
        ("10.0.0.1/32", ""),
    ],
)  # fmt: skip
def test_an_address_that_no_host_has(address: str, reason: str) -> None:
    assert SHORTEST_PREFIX == 8
    claim = ipaddress.IPv4Interface(address)
    assert implausible(claim) == reason
    good = ipaddress.IPv4Interface("10.0.0.7/24")
    expected = f"; {reason}, so what it says is not used" if reason else ""
    assert why_not([good, claim]) == why_not([claim]) == expected


def test_loopback_and_link_local_addresses_are_left_out_each() -> None:
    assert interface_addresses(host("a", "127.0.0.1/8")) == ()
    assert interface_addresses(host("a", "169.254.1.1/16")) == ()


ANSWERS = "at the address of gpu01 (10.0.0.1) answers the machine of gpu02"
RENAMED = (
    "there (ssh_hostname, cluster_address). Or the machine is to become gpu01: remedy apply without --yes "
    "asks, and renames it."
)
IS_CALLED = ("it is called 'gpu02'",)


@pytest.mark.parametrize(
    ("found", "title", "evidence", "fix"),
    [
        (of(machine("gpu01", "gpu02", 2), absent=("gpu02",)),
         ANSWERS, IS_CALLED,
         f"Either the inventory is wrong: correct ssh_hostname of gpu01 {RENAMED}"),
        (of(machine("gpu01", "gpu02", 2), machine("gpu02", "gpu01", 1)),
         f"{ANSWERS}, and the other way round: gpu01, gpu02 are swapped", IS_CALLED,
         f"Either the inventory is wrong: swap those of gpu01 and gpu02 {RENAMED}"),
    ],
)  # fmt: skip
def test_a_claim_is_told_with_both_ways_out(
    found: Fleet, title: str, evidence: tuple[str, ...], fix: str
) -> None:
    first = findings(found.inventory, claims(found))[0]
    assert first == Finding(
        host="gpu01",
        remedy="identity",
        kind=FindingKind.BLOCKED,
        label="",
        title=title,
        evidence=evidence,
        fix=fix,
    )
    assert flaws(first) == []


def test_one_machine_at_two_addresses_is_told() -> None:
    one = machine("gpu01", "gpu01", 1)
    found = of(one, machine("gpu02", "gpu01", 1).model_copy(update={"network": one.network}))
    (claim,) = claims(found)
    assert claim.signs == (
        "gpu01 and gpu02: one boot-id, and the same addresses on its interfaces",
    )
    (told,) = findings(found.inventory, [claim])
    # What ssh reaches is what the inventory says: both entries of this fleet have the address of their state.
    at = [found.inventory.node(name).ssh_address for name in ("gpu02", "gpu01")]
    assert told.title == f"gpu02 and gpu01 are one machine: it answers at {at[0]} and at {at[1]}"
    assert told.fix == "Correct ssh_hostname of gpu02 or of gpu01 in the inventory."
    # A claim of the same machine is no swap, whatever the other entry claims.
    both = [claim, Claim("gpu01", "gpu02", ("sign",))]
    assert "are one machine" in findings(found.inventory, both)[0].title


def test_an_empty_mark_of_the_last_run_is_no_sign() -> None:
    found = of(machine("gpu01", "gpu01", 1, boot_id=""), machine("gpu02", "gpu02", 2))
    assert claims(replace(found, known_boots={"gpu02": ""})) == ()


def test_machines_without_a_boot_id_or_an_address_are_not_one() -> None:
    states = [machine(name, name, 1, boot_id="") for name in ("gpu01", "gpu02")]
    same = [states[0], states[1].model_copy(update={"network": states[0].network})]
    assert claims(of(*same)) == ()


TOO_MUCH = "is too much"
CANNOT = "cannot be read"


@pytest.mark.parametrize(
    ("error", "what", "evidence"),
    [
        (ValueError("no number"), CANNOT, "no number"),
        (ValueError(), CANNOT, "ValueError"),
        (RecursionError("too deep"), TOO_MUCH, "too deep"),
        (MemoryError(), TOO_MUCH, "MemoryError"),
        (TooMuchError("20 s"), TOO_MUCH, "20 s"),
    ],
)
@pytest.mark.parametrize(
    ("host_name", "who", "fix"),
    [
        ("gpu01", "the host says", "Check the host itself: it may be broken or compromised."),
        (None, "hosts say",
         "Leave hosts out (--limit) until it can: one of them may be broken or compromised."),
    ],
)  # fmt: skip
def test_what_a_remedy_cannot_judge_is_told(
    error: Exception, what: str, evidence: str, host_name: str | None, who: str, fix: str
) -> None:
    told = _not_judged("firewall", host_name, error)
    assert told == Finding(
        host=host_name,
        remedy="firewall",
        kind=FindingKind.UNKNOWN,
        label="",
        title=f"firewall could not be judged: what {who} {what}",
        evidence=(evidence,),
        fix=fix,
    )
    assert flaws(told) == []


@pytest.mark.parametrize(
    ("values", "grouped", "lines"),
    [
        ({}, (), ()),
        ({"a": "x"}, (("x", ("a",)),), ()),
        ({"a": "x", "b": "x"}, (("x", ("a", "b")),), ()),
        ({"a": "y", "b": "x"}, (("x", ("b",)), ("y", ("a",))), ("x: b", "y: a")),
        ({"g1": "x", "g2": "y", "g3": "y"}, (("y", ("g2", "g3")), ("x", ("g1",))), ("y: g[2-3]", "x: g1")),
    ],
)  # fmt: skip
def test_hosts_are_grouped_by_what_they_have(
    values: dict[str, str], grouped: object, lines: tuple[str, ...]
) -> None:
    assert groups(values) == grouped
    assert differences(values) == lines
