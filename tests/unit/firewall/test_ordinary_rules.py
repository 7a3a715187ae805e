"""Rules that programs of many hosts make, recorded: none is a doubt, and none drops what training sends.

Docker 20.10.24 with published ports and a network of its own, and fail2ban 1.0.2 with two banned addresses,
ran on a host. The rules of kube-proxy (iptables and nftables modes), Calico and Cilium were given to the kernel
as these programs write them, for a service with two endpoints, one without, a node port and a load balancer.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest

from remedy.plan import FindingKind
from remedy.probe import Firewalls
from tests.unit.firewall.firewall_bench import fleet_of, plan_of, walled
from tests.unit.probe_data import parse, recorded, replaced

FOLDER = Path(__file__).parents[1] / "data/firewalls"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@lru_cache(maxsize=32)
def firewalls(name: str, *, legacy: bool = False, more: str = "") -> Firewalls:
    """Return what the probe reads on a host with recorded rules.

    Args:
        name: of the recording.
        legacy: whether iptables keeps them in the kernel's old tables.
        more: a line of iptables that is added to its table ``filter``.
    """
    ruleset = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    saved = FOLDER / f"{name}.save"
    text = saved.read_text(encoding="utf-8") if saved.exists() else ""
    if more:
        text = text.replace("*filter\n", f"*filter\n{more}\n")
    body = recorded("lab-idle")
    if legacy:
        body = replaced(body, "iptables-legacy", text)
    else:
        body = replaced(body, "nft", ruleset)
        body = replaced(body, "iptables", text) if text else body
    found = parse(body).firewalls
    assert isinstance(found, Firewalls)
    return found


def test_there_is_a_recording_of_each_program() -> None:
    assert {name.partition("-")[0] for name in NAMES} == {
        "docker",
        "fail2ban",
        "kube",
        "calico",
        "cilium",
    }


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_rules_are_neither_doubts_nor_drops(name: str) -> None:
    state = walled("a", "10.0.0.1").model_copy(update={"firewalls": firewalls(name)})
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    assert [f for f in plan.findings if f.kind is not FindingKind.REPORT] == []
    assert plan.changes == ()


@pytest.mark.parametrize("name", [n for n in NAMES if (FOLDER / f"{n}.save").exists()])
def test_they_are_neither_in_the_old_tables(name: str) -> None:
    state = walled("a", "10.0.0.1").model_copy(update={"firewalls": firewalls(name, legacy=True)})
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    assert [f for f in plan.findings if f.kind is not FindingKind.REPORT] == []


@pytest.mark.parametrize("name", [n for n in NAMES if (FOLDER / f"{n}.save").exists()])
def test_a_rule_more_that_drops_or_may_drop_is_seen_among_them(name: str) -> None:
    for rule, kind in (
        ("-A INPUT -p tcp -m tcp --dport 29500 -j DROP", FindingKind.DRIFT),
        ("-A OUTPUT -d 10.0.0.0/24 -j REJECT", FindingKind.DRIFT),
        ("-A INPUT -p tcp -m connlimit --connlimit-above 9 -j DROP", FindingKind.UNKNOWN),
    ):
        found = firewalls(name, legacy=True, more=rule)
        if "*filter" not in str(found.iptables_legacy):
            continue
        state = walled("a", "10.0.0.1").model_copy(update={"firewalls": found})
        plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
        (finding,) = [f for f in plan.findings if f.kind is kind]
        assert rule in finding.evidence


def test_banned_addresses_of_the_cluster_are_seen() -> None:
    """fail2ban on ssh bans a peer for ssh alone; on all ports it keeps training out."""
    for banned, expected in (("198.51.100.7", False), ("203.0.113.9", True)):
        name = "fail2ban-nftables-multiport"
        found = firewalls(name)
        text = json.dumps(found.model_dump(mode="json")).replace(banned, "10.0.0.2")
        state = walled("a", "10.0.0.1").model_copy(
            update={"firewalls": Firewalls.model_validate_json(text)}
        )
        plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
        assert any(f.kind is FindingKind.DRIFT for f in plan.findings) is expected, name
