"""What a fleet costs is in proportion to its hosts: calls and objects that are kept are counted, no seconds."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from remedy.plan import Origin, make_plan
from remedy.plan.identities import claims
from remedy.probe import HostState, Identity, Names, Resolved, fingerprint
from remedy.probe.files import File
from remedy.probe.resolved import Answers
from tests.unit.growth import FEW, MANY, calls, fleet, states

WHEN = Origin(created="2026-11-23T00:00:00+00:00", author="me@here")


def each(count: int, broken: float) -> float:
    """Return the calls for a host when a plan is made for so many."""
    whole = fleet(count, broken)
    make_plan(whole, WHEN)  # what is imported and kept for all fleets
    return calls(lambda: make_plan(fleet(count, broken), WHEN)) / count


@pytest.mark.parametrize(
    "broken", [0.5, *(pytest.param(share, marks=pytest.mark.full) for share in (0.0, 1.0))]
)
def test_a_host_is_judged_by_as_many_calls_in_a_larger_fleet(broken: float) -> None:
    assert each(MANY, broken) < 1.1 * each(FEW, broken)


def named_alike(state: HostState) -> HostState:
    """Return a host that is called as all others are."""
    assert isinstance(state.identity, Identity)
    update = {"transient_name": "node", "static_name": "node"}
    return state.model_copy(update={"identity": state.identity.model_copy(update=update)})


def reached_over_ipv6(state: HostState) -> HostState:
    """Return a host that finds addresses of IPv6 of all hosts, by one table for all of them."""
    assert isinstance(state.names, Names)
    names = state.names.model_copy(update={"peers": over_ipv6(len(state.names.peers))})
    return state.model_copy(update={"names": names})


@lru_cache
def over_ipv6(count: int) -> Answers:
    return Answers({f"gpu{n:05}": (f"fd00::{n + 1:x}", f"10.1.0.{n + 1}") for n in range(count)})


def told_ipv6(state: HostState) -> HostState:
    """Return a host on which NCCL is told to talk over IPv6."""
    assert isinstance(state.environment, dict)
    return state.model_copy(
        update={"environment": {**state.environment, "NCCL_SOCKET_FAMILY": "AF_INET6"}}
    )


def ordered(state: HostState) -> HostState:
    """Return a host that puts IPv4 first, as all others do."""
    path = "/etc/gai.conf"
    file = File(path=path, real_path=path, exists=True, content=b"precedence ::ffff:0:0/96  100\n")
    return state.model_copy(update={"files": {**state.files, path: file}})


@pytest.mark.parametrize(
    "spoil",
    [
        named_alike,
        *(
            pytest.param(spoil, marks=pytest.mark.full)
            for spoil in (reached_over_ipv6, told_ipv6, ordered)
        ),
    ],
)
def test_what_all_hosts_have_wrong_is_judged_by_as_many_calls_in_a_larger_fleet(
    spoil: Callable[[HostState], HostState],
) -> None:
    def of_host(count: int) -> float:
        whole = fleet(count, 0.0)
        spoiled = {name: spoil(state) for name, state in whole.states.items()}
        make_plan(replace(whole, states=spoiled), WHEN)
        return calls(lambda: make_plan(replace(whole, states=spoiled), WHEN)) / count

    assert of_host(MANY) < 1.1 * of_host(FEW)


def test_whose_machine_answers_is_looked_up_by_as_many_calls_in_a_larger_fleet() -> None:
    def of_host(count: int) -> float:
        whole = fleet(count, 0.0)
        marks = {name: f"{name}'s mark" for name in whole.inventory.names}
        known = replace(whole, known_machines=marks, known_boots=marks)
        return calls(lambda: claims(known)) / count

    assert of_host(MANY) < 1.1 * of_host(FEW)


def test_networks_of_containers_are_compared_by_as_many_calls_in_a_larger_fleet() -> None:
    def of_host(count: int) -> float:
        make_plan(fleet(count, 0.0), WHEN, only="network_health")
        return calls(lambda: make_plan(fleet(count, 0.0), WHEN, only="network_health")) / count

    assert of_host(MANY) < 1.1 * of_host(FEW)


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_what_hosts_have_alike_is_kept_once(broken: float) -> None:
    def objects(found: dict[str, HostState]) -> int:
        files = {id(file) for state in found.values() for file in state.files.values()}
        mounts = {id(mount) for state in found.values() for mount in known(state.mounts)}
        return len(files | mounts)

    def known(value: Any) -> tuple[Any, ...]:
        assert isinstance(value, tuple)
        return value

    own = [f for f in states(FEW, broken)["gpu00000"].files.values() if isinstance(f, File)]
    named = [
        file for file in own if b"gpu00000" in file.content and not file.path.endswith("/hosts")
    ]
    more = objects(states(MANY, broken)) - objects(states(FEW, broken))
    # A host has its name and its machine-id for itself.
    assert more == (MANY - FEW) * (len(named) + 1)


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_the_answers_about_names_are_one_table_for_hosts_that_answer_alike(broken: float) -> None:
    found = [state.names for state in states(MANY, broken).values()]
    assert len(found) == MANY
    tables = set()
    for names in found:
        assert isinstance(names, Names)
        peers = names.peers
        assert len(peers) == MANY
        tables.add(id(peers.alike if isinstance(peers, Resolved) else peers))
        assert not isinstance(peers, Resolved) or len(peers.otherwise) <= 1
    assert len(tables) == 1


def unseen(state: HostState) -> HostState:
    """Return a host of which nothing is kept: its facts are objects of its own, its files have a line more."""
    line = b"# %s\n" % secrets.token_hex(8).encode()
    files = {
        path: file.model_copy(update={"content": file.content + line})
        for path, file in state.files.items()
        if isinstance(file, File)
    }
    return state.model_copy(update={"files": {**state.files, **files}}, deep=True)


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_the_fingerprint_of_a_host_takes_as_many_calls_in_a_larger_fleet(broken: float) -> None:
    def once(count: int) -> int:
        one, other = list(states(count, broken).values())[:2]
        fingerprint(other)  # what the hosts of a fleet have alike
        host = unseen(one)
        return calls(lambda: fingerprint(host))

    # What is kept has room for so many answers; a few calls make room, where earlier tests have filled it.
    assert abs(once(MANY) - once(FEW)) < MANY - FEW
