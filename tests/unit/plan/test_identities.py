"""Which machine answers at which address: swapped entries are claims, and clones are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remedy.inventory import Inventory
from remedy.plan import FindingKind, Fleet
from remedy.plan.identities import Claim, claims, findings, machine_mark
from remedy.probe import HostState, Identity
from tests.unit.build import fleet, host_state
from tests.unit.plan.plan_bench import NAMES, machine


def of(*states: HostState, absent: tuple[str, ...] = ()) -> Fleet:
    return fleet(*states, absent=absent)


def seen(found: Fleet, **machines: int) -> Fleet:
    """Return a fleet of which the last run saw these machines."""
    return replace(
        found,
        known_machines={name: machine_mark(f"machine-{n}") for name, n in machines.items()},
        known_boots={name: f"boot-{n}" for name, n in machines.items()},
    )


def pairs(found: Fleet) -> list[tuple[str, str]]:
    return [(claim.host, claim.owner) for claim in claims(found)]


def test_machines_at_their_places_claim_nothing() -> None:
    right = of(*(machine(name, name, at) for at, name in enumerate(NAMES)))
    assert claims(right) == ()
    assert claims(seen(right, gpu01=0, gpu02=1, gpu03=2)) == ()
    assert claims(seen(right, gpu01=7, gpu02=8, gpu03=9)) == ()  # all were replaced


def test_fresh_machines_claim_nothing_whatever_they_are_called() -> None:
    assert claims(of(*(machine(name, "node", at) for at, name in enumerate(NAMES)))) == ()
    assert claims(of(machine("gpu01", "", 1), machine("gpu02", "$(reboot)", 2))) == ()


def test_swapped_addresses_are_two_claims_and_named_as_swapped() -> None:
    found = of(machine("gpu01", "gpu02", 2), machine("gpu02", "gpu01.example", 1))
    assert pairs(found) == [("gpu01", "gpu02"), ("gpu02", "gpu01")]
    first, _ = findings(found.inventory, claims(found))
    assert (first.host, first.kind) == ("gpu01", FindingKind.BLOCKED)
    assert "answers the machine of gpu02" in first.title
    assert "gpu01, gpu02 are swapped" in first.title
    assert first.evidence == ("it is called 'gpu02'",)
    assert "ssh_hostname, cluster_address" in first.fix
    assert "without --yes asks" in first.fix


def test_addresses_in_a_circle_are_claims_each() -> None:
    around = of(
        *(
            machine(at, called, n)
            for n, (at, called) in enumerate(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True))
        )
    )
    assert pairs(around) == [("gpu01", "gpu02"), ("gpu02", "gpu03"), ("gpu03", "gpu01")]


def test_a_machine_of_another_entry_is_a_claim_where_that_entry_is_not_at_its_place() -> None:
    assert pairs(of(machine("gpu01", "gpu02", 2), absent=("gpu02",))) == [("gpu01", "gpu02")]
    assert pairs(of(machine("gpu01", "gpu02", 2), machine("gpu02", "node", 9))) == [
        ("gpu01", "gpu02")
    ]


def test_clones_of_one_image_are_no_claim() -> None:
    clones = of(*(machine(name, "gpu01", at) for at, name in enumerate(NAMES)))
    assert claims(clones) == ()
    ids = of(
        *(machine(name, "gpu01", at, machine_id="the image's") for at, name in enumerate(NAMES))
    )
    known = replace(ids, known_machines={"gpu01": machine_mark("the image's")})
    assert claims(known) == ()  # the machine of gpu01 is at its place, the others are copies


def test_a_machine_that_keeps_its_own_name_for_the_next_boot_is_no_claim() -> None:
    state = machine("gpu01", "gpu02", 1)
    assert isinstance(state.identity, Identity)
    own = state.identity.model_copy(update={"static_name": "gpu01"})
    found = of(state.model_copy(update={"identity": own}), absent=("gpu02",))
    assert claims(found) == ()


@pytest.mark.parametrize("called", ["gpu01", "node"])
def test_the_machine_id_and_the_boot_id_of_the_last_run_are_signs_too(called: str) -> None:
    found = seen(of(machine("gpu01", called, 2), machine("gpu02", "gpu02", 1)), gpu01=1, gpu02=2)
    first, second = claims(found)
    assert (first.host, first.owner) == ("gpu01", "gpu02")
    assert first.signs == (
        "it has the machine-id that the last run saw at the address of gpu02",
        "it has the boot-id that the last run saw at the address of gpu02",
    )
    assert (second.host, second.owner) == ("gpu02", "gpu01")


def test_ids_that_several_entries_had_say_nothing() -> None:
    """Containers of one kernel share the boot-id, cloned disks the machine-id."""
    shared = {"machine_id": "cloned", "boot_id": "of the kernel"}
    found = of(machine("gpu01", "gpu01", 1, **shared), machine("gpu02", "gpu02", 2, **shared))
    known = replace(
        found,
        known_machines=dict.fromkeys(NAMES[:2], machine_mark("cloned")),
        known_boots=dict.fromkeys(NAMES[:2], "of the kernel"),
    )
    assert claims(known) == ()


def test_an_entry_that_is_gone_owns_nothing() -> None:
    found = seen(of(machine("gpu01", "gpu01", 2)), gpu09=2)
    assert claims(found) == ()


def test_two_entries_that_lead_to_one_machine_are_a_claim() -> None:
    one = machine("gpu01", "gpu01", 1)
    found = of(one, machine("gpu02", "gpu01", 1).model_copy(update={"network": one.network}))
    (claim,) = claims(found)
    assert claim == Claim("gpu02", "gpu01", (), same=True)
    (finding,) = findings(found.inventory, (claim,))
    assert "are one machine" in finding.title
    assert "Correct ssh_hostname" in finding.fix


def test_names_are_those_of_the_inventory_and_marks_give_no_id_away() -> None:
    found = of(machine("gpu01", "gpu02", 2), absent=("gpu02",))
    assert isinstance(found.inventory, Inventory)
    assert machine_mark("0123") != machine_mark("0124")
    assert "0123" not in machine_mark("0123")


def called(**machines: str) -> Fleet:
    """Return a fleet with dots in its names, and what the machine at each address is called."""
    states = []
    for number, (entry, name) in enumerate(machines.items(), 1):
        state = host_state(entry, f"10.0.0.{number}", running=name, static=name)
        assert isinstance(state.identity, Identity)
        ids = {"machine_id": f"machine-{number}", "boot_id": f"boot-{number}"}
        states.append(state.model_copy(update={"identity": state.identity.model_copy(update=ids)}))
    return fleet(*states)


EAST, WEST = "node1.east", "node1.west"


@pytest.mark.parametrize(
    ("machines", "claimed"),
    [
        ({EAST: EAST, WEST: WEST}, []),
        ({EAST: WEST, WEST: EAST}, [(EAST, WEST), (WEST, EAST)]),
        ({EAST: "NODE1.West", WEST: "image"}, [(EAST, WEST)]),
        # Clones: the machine of the name is at its place.
        ({EAST: WEST, WEST: WEST}, []),
        # Without a domain nobody can say which of the two it is.
        ({EAST: "node1", WEST: "node1"}, []),
        # Where one entry alone has a short name, machines may carry that, or another domain.
        ({"a.lab": "b", "b.lab": "a"}, [("a.lab", "b.lab"), ("b.lab", "a.lab")]),
        ({"gpu01.lab": "gpu01", "gpu02.lab": "gpu02.example.org"}, []),
        ({"gpu01": "gpu02.example.org", "gpu02": "gpu01.lab"}, [("gpu01", "gpu02"), ("gpu02", "gpu01")]),
    ],
)  # fmt: skip
def test_names_with_dots_tell_machines_apart(
    machines: dict[str, str], claimed: list[tuple[str, str]]
) -> None:
    assert pairs(called(**machines)) == claimed
