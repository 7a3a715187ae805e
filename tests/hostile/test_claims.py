"""A host that says that addresses are its own which are not: what its peers' files and firewalls get of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from remedy.apply.start import origin
from remedy.audit.agreement import Agreement
from remedy.cli.consent import consent_to
from remedy.errors import RefusedError
from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, Plan, make_plan, section_models
from remedy.probe import Address, HostState, Interface, Network
from remedy.probe.seen import parse_seen, render_seen
from remedy.runs import sight
from remedy.runs.gate import Proposal
from remedy.runs.probe import ProbeResult
from remedy.spec import load_spec
from tests.unit.build import host_state, record

PEERS = {f"gpu0{n}": (f"10.0.0.{n}/24",) for n in (1, 2, 3)}


def host(name: str, addresses: tuple[str, ...]) -> HostState:
    interfaces = tuple(
        record(
            Interface,
            name=f"eth{number}",
            addresses=(Address(address=ip, prefix=int(prefix), scope="global"),),
        )
        for number, (ip, _, prefix) in enumerate(a.partition("/") for a in addresses)
    )
    state = host_state(name, "10.0.0.9")
    return state.model_copy(update={"network": record(Network, interfaces=interfaces)})


def fleet(
    addresses: Mapping[str, tuple[str, ...]],
    *,
    subnet: str | None = None,
    given: Mapping[str, str] | None = None,
) -> Fleet:
    """Return a fleet behind names, so that ssh reached no address that the controller knows."""
    spec = load_spec(None, section_models())
    spec.sections["cluster"] = spec.cluster.model_copy(update={"subnet": subnet})
    nodes = tuple(
        Node(name=name, ssh_address=name, data={"cluster_address": (given or {}).get(name)})
        for name in addresses
    )
    states = {name: host(name, claims) for name, claims in addresses.items()}
    return Fleet(Inventory(path=Path("inventory.py"), nodes=nodes), states, spec)


def address(found: Fleet, name: str = "gpu04") -> str | None:
    return found.addresses[name].address


IMPLAUSIBLE = [
    *(
        "203.0.113.66/0",
        "203.0.113.66/24",
        "192.0.2.7/24",
        "198.51.100.7/24",
        "8.8.8.8/0",
        "10.9.9.9/7",
    ),
    *("224.0.0.5/24", "240.0.0.1/24", "255.255.255.255/24", "0.0.0.0/0", "0.1.2.3/24"),
    *("10.0.0.0/24", "10.0.0.255/24", "127.0.0.9/8", "169.254.3.4/16"),
]


@pytest.mark.parametrize("claim", IMPLAUSIBLE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("subnet", [None, "0.0.0.0/0"])
def test_an_implausible_address_goes_nowhere(claim: str, first: bool, subnet: str | None) -> None:
    liar = {"gpu04": (claim,)}
    found = fleet({**liar, **PEERS} if first else {**PEERS, **liar}, subnet=subnet)
    assert address(found) is None
    # Nor does it keep the others from theirs.
    assert set(found.known_addresses) == {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
    plan = make_plan(found, origin())
    blobs = b"".join(plan.blobs.values())
    assert b"10.0.0.2" in blobs
    assert b"gpu04" not in blobs
    assert claim.partition("/")[0].encode() + b"\t" not in blobs


def test_the_network_is_that_of_most_hosts() -> None:
    for wide in ("10.0.0.66/8", "10.200.0.66/8"):
        found = fleet({"gpu04": (wide, "10.0.0.4/24"), **PEERS})
        assert address(found) == ("10.0.0.66" if "10.0.0.66" in wide else "10.0.0.4")
        assert "10.0.0.0/24" in found.addresses["gpu04"].reason


@pytest.mark.parametrize("subnet", [None, "10.0.0.0/24"])
def test_the_address_of_another_host_is_not_taken(subnet: str | None) -> None:
    given = {"gpu02": "10.0.0.2", "gpu05": "10.0.0.5"}
    hosts = {"gpu04": ("10.0.0.5/24", "10.0.0.4/24"), **PEERS}
    assert (
        address(fleet({**hosts, "gpu05": ("10.0.0.9/24",)}, subnet=subnet, given=given))
        == "10.0.0.4"
    )
    # Said by both, it counts for neither.
    twins = fleet({"gpu04": ("10.0.0.3/24",), **PEERS}, subnet=subnet or "10.0.0.0/24")
    assert address(twins) is None
    assert address(twins, "gpu03") is None


def test_what_ssh_reached_or_the_inventory_gives_needs_no_witness() -> None:
    given = {name: a.partition("/")[0] for name, (a,) in PEERS.items()}
    found = fleet(PEERS, given=given)
    assert (found.claimed, found.unseen, sight.witnesses(found)) == ({}, {}, {})
    nodes = tuple(
        Node(name=n, ssh_address=a, data={"cluster_address": None}) for n, a in given.items()
    )
    reached = Fleet(Inventory(path=Path("i.py"), nodes=nodes), found.states, found.spec)
    assert (dict(reached.claimed), sight.witnesses(reached)) == ({}, {})


def test_each_claim_is_asked_about_at_other_hosts_only_and_at_few() -> None:
    many = {
        f"n{number:03}": (f"10.0.{number // 200}.{number % 200 + 1}/16",) for number in range(400)
    }
    found = fleet(many)
    asked = sight.witnesses(found)
    assert len(found.claimed) == 400
    assert max(map(len, asked.values())) == sight.WITNESSES
    for name, addresses in asked.items():
        assert found.claimed[name] not in addresses
    assert sum(map(len, asked.values())) == 400 * sight.WITNESSES


def result(seen: frozenset[str]) -> ProbeResult:
    found = fleet({"gpu04": ("10.0.0.66/24",), **PEERS})
    read = Fleet(found.inventory, found.states, found.spec, answering=seen)
    return ProbeResult(read, {})


SEEN = frozenset(("10.0.0.1", "10.0.0.2", "10.0.0.3"))


def test_an_address_that_nobody_has_seen_is_marked_and_asked_about_by_name() -> None:
    unseen = result(SEEN)
    (marked,) = [f for f in unseen.plan.findings if "seen by nobody" in f.title]
    assert (marked.host, marked.title.split(",")[0]) == ("gpu04", "10.0.0.66")
    proposal = Proposal("apply", Agreement(unseen.plan), unseen.plan, unseen)
    assert proposal.plan.changes
    with pytest.raises(
        RefusedError, match=r"gpu04: 10\.0\.0\.66 .*from which no peer got an answer"
    ):
        consent_to(lambda _: "Change?", yes=True)(proposal)
    assert "10.0.0.66 (gpu04)" in sight.question(proposal.unseen)
    everybody = result(SEEN | {"10.0.0.66"})
    assert not [f for f in everybody.plan.findings if "seen by nobody" in f.title]
    agreed = Proposal("apply", Agreement(everybody.plan), everybody.plan, everybody)
    consent_to(lambda _: "Change?", yes=True)(agreed)


def test_where_nothing_is_changed_nobody_is_asked() -> None:
    unseen = result(SEEN)
    nothing = Plan.model_validate({**unseen.plan.model_dump(), "changes": (), "blobs": {}})
    consent_to(lambda _: "Change?", yes=True)(
        Proposal("apply", Agreement(nothing), nothing, unseen)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1 reply\n10.0.0.2 refusal\n", {"10.0.0.1", "10.0.0.2"}),
        ("10.0.0.1 neighbour\n10.0.0.2 connection\n", {"10.0.0.1", "10.0.0.2"}),
        ("10.0.0.1 none\n10.0.0.2 local\n", set()),
        ("10.0.0.9 reply\n203.0.113.66 reply\n", set()),  # it was not asked about these
        ("10.0.0.1 reply reply\n10.0.0.1 \x1b[2J\nreply\n\n10.0.0.1\n", set()),
    ],
)
def test_what_a_witness_says_counts_for_what_it_was_asked(text: str, expected: set[str]) -> None:
    asked = ("10.0.0.1", "10.0.0.2")
    answer = f"remedy-seen n0nce begin\n{text}remedy-seen n0nce end\n"
    assert parse_seen(answer, "n0nce", asked) == expected
    assert parse_seen(answer.replace("n0nce", "other"), "n0nce", asked) == frozenset()
    assert parse_seen(answer.rpartition("remedy-seen")[0], "n0nce", asked) == frozenset()


def test_what_is_asked_is_quoted() -> None:
    assert "'10.0.0.1; reboot'" in render_seen(["10.0.0.1; reboot"], "n")
