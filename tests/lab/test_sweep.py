"""Every fault there is, alone and together with others: each host ends right, or says what it could not do.

Several hosts carry different faults in one run. REMEDY_SWEEP=N sweeps N combinations instead of the usual
dozen, REMEDY_SWEEP_SEED chooses others.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import pytest

from remedy.errors import LabError
from remedy.lab import faults
from remedy.lab.fault import Repair
from tests.lab.conftest import Cluster, clusters
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("_no_leftovers")]

HOSTS = 8
COMBINATIONS = int(os.environ.get("REMEDY_SWEEP", "12"))
SEED = int(os.environ.get("REMEDY_SWEEP_SEED", "1"))

# The usual run: one fault of names, of files, of a firewall, of the next boot, of leftovers, of limits, of the
# environment, and one that only the user can put right. Every remedy has lab tests of its own beside these.
FEW = (
    *("duplicate-hostname", "loopback-name", "firewall-iptables", "boots-into-nftables"),
    *("stale-sysv-segment", "small-memlock", "wrong-socket-ifname", "hosts-immutable"),
)
# Each check of such a host, as of one with a driver that hangs, costs twenty seconds: once is enough.
SLOW = {fault.name for fault in faults.catalogue() if fault.is_slow}


def repair(name: str) -> Repair:
    """Return how a run ends on a host with a fault, as it is declared."""
    declared = faults.get(name)
    assert declared.repair is not None, declared.gaps
    return declared.repair


@dataclass(frozen=True)
class Batch:
    """What is broken in one run: the faults of each host."""

    name: str
    hosts: tuple[tuple[str, ...], ...]


def batches() -> Iterator[Batch]:
    """Yield all faults one by one, then combinations of two and three, packed onto the hosts of a lab."""
    names = [one.name for one in faults.catalogue()]
    odd = [name for name in names if name in SLOW or not repair(name).is_reachable]
    usual = [name for name in names if name not in odd]
    yield from _packed("few", [(name,) for name in FEW])
    yield from _packed("alone", [(name,) for name in usual if name not in FEW])
    yield from _packed("odd", [(name,) for name in odd])
    # The choice is the same in every run of the tests.
    choice = random.Random(SEED)  # noqa: S311
    combined = [
        tuple(sorted(choice.sample(usual, 2 + number % 2), key=_when))
        for number in range(COMBINATIONS)
    ]
    yield from _packed("together", combined)


def _packed(name: str, hosts: list[tuple[str, ...]]) -> Iterator[Batch]:
    for number, group in enumerate(zip_longest(*[iter(hosts)] * HOSTS, fillvalue=()), 1):
        yield Batch(f"{name}-{number}", group)


def _when(name: str) -> tuple[int, str]:
    return faults.get(name).order, name


@pytest.fixture(scope="module")
def lab(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A lab of its own, with more hosts than the shared one, and with Docker."""
    with clusters(tmp_path_factory.mktemp("sweep")) as make:
        yield make(count=HOSTS, docker=True)


def break_(cluster: Cluster, batch: Batch) -> dict[str, list[str]]:
    """Break the hosts, and return what is broken where: of faults together one may exclude another."""
    broken: dict[str, list[str]] = {}
    for host, names in zip(cluster.hosts, batch.hosts, strict=True):
        broken[host] = []
        for name in names:
            try:
                cluster.fault(host, name)
            except LabError:
                if len(names) == 1:
                    raise
            else:
                broken[host].append(name)
    return broken


def usual_and_full() -> list[object]:
    """List a few faults alone; all others, what comes together, and hosts that are lost or slow with --full."""
    return [
        pytest.param(batch, marks=() if batch.name == "few-1" else pytest.mark.full, id=batch.name)
        for batch in batches()
    ]


@pytest.mark.parametrize("batch", usual_and_full())
def test_each_host_ends_right_or_says_why_not(lab: Cluster, batch: Batch) -> None:
    lab.reset()
    broken = break_(lab, batch)
    site = Site(lab)
    document = site.remedy("apply", "--yes", "--no-verify", "--json").document
    right, wrong = [], {}
    for host, names in broken.items():
        outcome = document["hosts"][host]
        words = [text for name in names if (text := repair(name).words)]
        if not words:
            right.append(host)
        if not ends_as_expected(host, outcome, words):
            wrong[host] = (names, outcome)
    assert wrong == {}
    assert document["converged"] or right != list(broken)
    site.assert_right(*right)
    quick = [host for host in right if not SLOW & set(broken[host])]
    if not quick:
        return
    again = site.remedy("check", "--json", "--limit", ",".join(quick)).document
    assert again["plan"]["changes"] == []
    assert {host: again["hosts"][host]["status"] for host in quick} == dict.fromkeys(quick, "ok")
    for host in right:
        assert lab.run(host, "ls /tmp/pwned").returncode != 0


def ends_as_expected(host: str, outcome: dict[str, Any], words: list[str]) -> bool:
    """Say whether a host is right, or says in these words what only its user can put right, and what to do."""
    if not words:
        return outcome["status"] in ("ok", "changed")
    text = f"{outcome['error']} {outcome['next_step']} {details(outcome)}"
    return (
        outcome["status"] in ("failed", "unreachable")
        and host in outcome["error"]
        and bool(outcome["next_step"])
        and any(word in text for line in words for word in line.split("|"))
    )


def details(outcome: dict[str, Any]) -> str:
    """Return what the changes and findings of a host say."""
    told = [change.get("detail", "") for change in outcome["changes"]]
    for finding in outcome["findings"]:
        told += [finding["title"], *finding["evidence"], finding["fix"]]
    return " ".join(told)


@pytest.mark.full
def test_hosts_that_were_broken_in_many_ways_are_proved(lab: Cluster) -> None:
    lab.reset()
    cured = [n for b in batches() for n in sum(b.hosts, ()) if not repair(n).words]
    choice = random.Random(SEED)  # noqa: S311
    # A proof by gloo starts a torch on each host, and this machine has to run them all.
    proved = lab.hosts[:3]
    for host in proved:
        for name in sorted(choice.sample(sorted(set(cured) - SLOW), 3), key=_when):
            try:
                lab.fault(host, name)
            except LabError:
                continue
    site = Site(lab)
    applied = site.remedy("apply", "--yes", "--json", "--limit", ",".join(proved), seconds=600)
    assert applied.code == 0, applied.text
    assert applied.document["verdict"]["passed"] is True


def test_every_fault_is_swept() -> None:
    swept = {name for batch in batches() for names in batch.hosts for name in names}
    assert swept == {one.name for one in faults.catalogue()}
