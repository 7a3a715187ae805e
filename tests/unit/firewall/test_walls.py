"""Which firewalls a host has: what each is called, how it is shown, and of which nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.firewall import nftables, ufw
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.hooks import Path
from remedy.firewall.packets import Condition
from remedy.firewall.reading import ReadRule
from remedy.firewall.step import Amendment, CommandStep, Note, Opening, Side
from remedy.firewall.traffic import NOTHING, Chain, Doubt, Dropped, Judgement, Rule
from remedy.firewall.walls import AT_BOOT, Wall, any_rules, unknowns, walls_of
from remedy.firewall.walls_ipv6 import unknown_ipv6, walls_of_ipv6
from remedy.plan import FindingKind
from remedy.probe import Firewalls, HostState, LoginSession, NftChain, NftRuleset
from remedy.values import Unknown
from tests.unit.firewall.firewall_bench import (
    FIREWALLD,
    NO_NFT,
    TRAFFIC,
    UFW_LIVE,
    UFW_RULES,
    WAY,
    file,
    nft,
    saved,
    walled,
)

BRIDGED = Path("br0", "10.0.0.1", ("eth0",), bridged=True, symmetric=True)
RAW = "*raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n-A {} -p tcp -j DROP\nCOMMIT\n"
CLOSED = ":INPUT DROP\n:OUTPUT ACCEPT\n"


def facts(state: HostState) -> Firewalls:
    assert isinstance(state.firewalls, Firewalls)
    return state.firewalls


def found(path: Path = WAY, **walls: Any) -> list[Wall]:
    state = walled("a", "10.0.0.1", **walls)
    return [wall for wall in walls_of(state, facts(state), TRAFFIC, path) if wall.name != AT_BOOT]


def described(walls: list[Wall]) -> list[tuple[str, str, str, bool, bool]]:
    return [(w.name, w.show, w.switch, w.leftover, w.propose is not None) for w in walls]


ARP_CHAIN = NftChain("arp", "filter", "input", "input", 0, "drop", ())


@pytest.mark.parametrize(
    ("walls", "expected"),
    [
        ({"iptables": saved()}, [("iptables", "", "", False, True)]),
        ({"iptables_legacy": saved()}, [("iptables (legacy tables)", "", "", False, True)]),
        ({"iptables": saved(), "iptables_legacy": saved()},
         [("iptables (legacy tables)", "", "", False, True)]),
        ({"iptables": saved(), "iptables_legacy": saved("-A INPUT -j DROP")},
         [("iptables", "", "", False, True), ("iptables (legacy tables)", "", "", False, True)]),
        ({"iptables": UFW_LIVE, "ufw": True}, [("ufw", "", "ufw", False, True)]),
        ({"iptables": UFW_LIVE, "ufw": False}, [("ufw", "", "ufw", True, True)]),
        ({"iptables": UFW_LIVE, "ufw": None}, [("ufw", "", "ufw", True, True)]),
        ({"iptables": saved(), "firewalld": "running"}, [("firewalld", "", "firewalld", False, True)]),
        ({"nft": FIREWALLD, "firewalld": "running"}, [("firewalld", "", "firewalld", False, True)]),
        ({"nft": FIREWALLD, "firewalld": None}, [("firewalld", "", "firewalld", True, True)]),
        ({"nft": nft()}, [("nftables (inet filter input)", "nft list table inet filter", "", False, True)]),
        ({"nft": NftRuleset(tables=(), chains=(ARP_CHAIN,), sets=())},
         [("nftables (arp filter input)", "nft list table arp filter", "", False, False)]),
        ({"arptables": f"*filter\n{CLOSED}COMMIT\n"}, [("arptables", "arptables-legacy -L", "", False, False)]),
        ({"iptables": RAW.format("PREROUTING")},
         [("iptables, table raw, chain PREROUTING", "iptables -t raw -S", "", False, False)]),
        ({"iptables_legacy": RAW.format("OUTPUT")},
         [("iptables (legacy tables), table raw, chain OUTPUT", "iptables-legacy -t raw -S", "", False,
           False)]),
        ({"iptables": saved("-A INPUT -p udp -j DROP", policy="ACCEPT")}, [("iptables", "", "", False, True)]),
        ({}, []),
    ],
)  # fmt: skip
def test_a_firewall_is_named_as_its_tool_is(walls: dict[str, Any], expected: list[object]) -> None:
    assert described(found(**walls)) == expected


def test_frames_are_judged_where_the_address_is_on_a_bridge() -> None:
    text = f"*filter\n{CLOSED}COMMIT\n"
    assert described(found(BRIDGED, ebtables=text)) == [
        ("ebtables", "ebtables-legacy -L", "", False, False)
    ]
    assert found(WAY, ebtables=text) == []


def test_what_drops_arp_is_told_apart_from_what_drops_tcp() -> None:
    (wall,) = found(arptables=f"*filter\n{CLOSED}COMMIT\n")
    assert (wall.drops, wall.incoming, wall.outgoing) == (True, NOTHING, NOTHING)
    assert wall.arp.words == ("chain filter INPUT: policy drop",)
    (wall,) = found(iptables=saved())
    assert (bool(wall.incoming), bool(wall.outgoing), bool(wall.arp)) == (True, False, False)


LOST = Unknown(reason="lost")


@pytest.mark.parametrize(
    ("fact", "name", "only_bridged"),
    [
        ("nft", "nftables", False),
        ("iptables", "iptables", False),
        ("iptables_legacy", "iptables (legacy tables)", False),
        ("firewalld", "firewalld", False),
        ("ufw", "ufw", False),
        ("arptables", "arptables", False),
        ("ebtables", "ebtables", True),
    ],
)
def test_a_firewall_of_which_nothing_is_known(fact: str, name: str, only_bridged: bool) -> None:
    state = walled("a", "10.0.0.1", **{fact: LOST})  # type: ignore[arg-type]
    assert list(unknowns(state, facts(state), bridged=True)) == [(name, "lost")]
    assert list(unknowns(state, facts(state))) == ([] if only_bridged else [(name, "lost")])


@pytest.mark.parametrize(("programs", "is_said"), [({}, False), ({"nft": "/sbin/nft"}, True)])
def test_without_its_tool_nftables_has_no_rules(programs: dict[str, str], is_said: bool) -> None:
    session = LoginSession(uid=0, homes=(), path="", programs=programs, present=frozenset())
    state = walled("a", "10.0.0.1", nft=LOST, iptables=LOST)
    state = state.model_copy(update={"session": session})
    names = [name for name, _ in unknowns(state, facts(state))]
    assert names == (["nftables", "iptables"] if is_said else ["iptables"])


@pytest.mark.parametrize(
    ("fact", "name"),
    [("ip6tables", "ip6tables"), ("ip6tables_legacy", "ip6tables (legacy tables)")],
)
def test_a_firewall_of_ipv6_of_which_nothing_is_known(fact: str, name: str) -> None:
    assert list(unknown_ipv6(facts(walled("a", "10.0.0.1", **{fact: LOST})))) == [(name, "lost")]  # type: ignore[arg-type]
    assert list(unknown_ipv6(facts(walled("a", "10.0.0.1")))) == []


@pytest.mark.parametrize(
    ("walls", "there"),
    [
        ({}, False),
        ({"firewalld": "running"}, True),
        ({"firewalld": LOST}, False),
        ({"iptables": "*filter\n:INPUT ACCEPT\nCOMMIT\n"}, True),
        ({"iptables_legacy": "*nat\n:INPUT DROP\nCOMMIT\n"}, True),
        ({"iptables": "*nat\n:INPUT ACCEPT\nCOMMIT\n"}, False),
        ({"iptables": "*nat\n:INPUT ACCEPT\n-A INPUT -j ACCEPT\nCOMMIT\n"}, True),
        ({"iptables": LOST, "iptables_legacy": LOST, "nft": LOST}, False),
        ({"nft": nft()}, True),
        ({"nft": NO_NFT}, False),
        ({"arptables": "*filter\n"}, True),
        ({"ebtables": "*filter\n"}, True),
        ({"arptables": LOST, "ebtables": LOST}, False),
        ({"files": [file(nftables.INCLUDED, b"")]}, True),
        ({"ufw": True, "files": [file(ufw.RULES, UFW_RULES)]}, True),
    ],
)  # fmt: skip
def test_whether_there_is_anything_to_look_at(walls: dict[str, Any], there: bool) -> None:
    state = walled("a", "10.0.0.1", **walls)
    units: dict[str, Any] = {}
    if walls.get("ufw"):
        assert isinstance(state.units, Unknown)  # it may start
    else:
        state = state.model_copy(update={"units": units})
    assert any_rules(state, facts(state)) is there


SIX = Path("eth0", "fd00::1", symmetric=True)


@pytest.mark.parametrize(
    ("walls", "name", "show"),
    [
        ({"ip6tables": saved()}, "ip6tables, table filter, chain INPUT", "ip6tables -t filter -S"),
        ({"ip6tables_legacy": saved()}, "ip6tables-legacy, table filter, chain INPUT",
         "ip6tables-legacy -t filter -S"),
        ({"ip6tables": saved(), "ip6tables_legacy": saved()},
         "ip6tables-legacy, table filter, chain INPUT", "ip6tables-legacy -t filter -S"),
        ({"ip6tables": LOST, "ip6tables_legacy": saved()},
         "ip6tables-legacy, table filter, chain INPUT", "ip6tables-legacy -t filter -S"),
        ({"nft": nft()}, "nftables (inet filter input)", "nft list table inet filter"),
    ],
)  # fmt: skip
def test_a_firewall_of_ipv6_is_named_by_its_chain(
    walls: dict[str, Any], name: str, show: str
) -> None:
    state = walled("a", "10.0.0.1", **walls).model_copy(update={"units": {}})
    question = PacketQuestion(TRAFFIC, SIX)
    (wall,) = walls_of_ipv6(state, facts(state), question)
    assert (wall.name, wall.show, wall.propose) == (name, show, None)


@pytest.mark.parametrize(
    ("made", "whole"),
    [
        (ReadRule("x"), ReadRule("x", (), "pass", "", (), None, False, False, False, ())),
        (Rule("drop"), Rule("drop", "", Rule("x").box, True, "", (), (), None, False, (), False)),
        (Chain(()), Chain((), "")),
        (Condition("x"), Condition("x", None, False, 2**32 - 1)),
        (Doubt("x"), Doubt("x", (), "")),
        (Dropped(), Dropped((), (), ())),
        (Judgement(), Judgement(Dropped(), (), (), False)),
        (Side("in"), Side("in", (), ())),
        (Opening(), Opening((), (), (), ())),
        (Note(FindingKind.REPORT, "all is well here"), Note(FindingKind.REPORT, "all is well here", (), "")),
        (Amendment(), Amendment(None, (), (), False)),
        (CommandStep("x", {}), CommandStep("x", {}, (), "")),  # type: ignore[typeddict-item]
        (Wall("x"), Wall("x", NOTHING, NOTHING, NOTHING, (), False, None, "", False, "")),
        (Path(), Path(None, None, (), False, None)),
    ],
)  # fmt: skip
def test_what_is_not_said_is_nothing(made: object, whole: object) -> None:
    assert made == whole
