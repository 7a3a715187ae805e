"""What is said of neighbours, and which commands are run."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.neighbours import hardware_addresses, observation
from remedy.probe import HostState, Interface, Names, Neighbour, Network, Routing, Sysctls
from remedy.values import Unknown
from tests.unit.build import fleet, record
from tests.unit.deploys.ways_bench import LINK, PEER, THIRD, host, routing
from tests.unit.deploys.words_bench import Run, Said, planned, run, said

WRONG = "02:00:00:00:00:99"
ENTRY = f"{PEER} lladdr {WRONG} PERMANENT"
STRAY = "this host sends what is for b to a hardware address that b does not have"
FIXED = "the hardware address of gone is fixed here, and whether it is right is not known"
DEAF = "eth0 does not answer who asks for its hardware address, so peers do not reach it"
NOARP = ("ip link: eth0 has NOARP; 10.0.0.1 is on it",)


def entry(address: str = PEER, state: str = "PERMANENT", mac: str = WRONG) -> Neighbour:
    return Neighbour(address=address, mac=mac, interface="eth0", state=state)


def knowing(*entries: Neighbour) -> HostState:
    return host("a", "10.0.0.1", routing(LINK).model_copy(update={"neighbours": entries}))


@pytest.mark.parametrize(
    ("state", "settings", "expected"),
    [
        (knowing(entry()), {}, [Said("drift", STRAY, (
            f"ip neigh: {ENTRY}", "b itself has 02:00:00:00:00:02",
        ), "")]),
        (knowing(entry()), {"repair": False}, [Said("report", STRAY, (
            f"ip neigh: {ENTRY}", "b itself has 02:00:00:00:00:02",
        ), "Remove it: ip neigh del 10.0.0.2 dev eth0")]),
        (knowing(entry("10.0.0.200")), {}, [Said(
            "unknown", FIXED, (f"ip neigh: 10.0.0.200 lladdr {WRONG} PERMANENT",),
            f'Read gone too, or add to neighbours.accept in remedy.yaml: "10.0.0.200 lladdr {WRONG} PERMANENT"',
        )]),
        (knowing(entry("10.0.0.200")), {"accept": (f"10.0.0.200 lladdr {WRONG} PERMANENT",)}, []),
        (knowing(entry("10.0.0.200", "STALE")), {}, []),
        (knowing(entry(mac="02:00:00:00:00:02")), {}, []),
        (knowing(entry(PEER, "FAILED", ""), entry(THIRD, "FAILED", "")), {}, [Said(
            "report", "b,c did not answer when this host asked for the hardware address",
            ("FAILED in the neighbour table, on eth0",),
            "See why there: ip link; by hand from here: arping -I eth0 ADDRESS",
        )]),
        (knowing(entry("10.0.0.200", "FAILED", "")), {}, [Said(
            "report", "gone did not answer when this host asked for the hardware address",
            ("FAILED in the neighbour table, on eth0",),
            "See why there: ip link; by hand from here: arping -I eth0 ADDRESS",
        )]),
        (host("a", "10.0.0.1", arp=False), {}, [Said("drift", DEAF, NOARP, "")]),
        (host("a", "10.0.0.1", arp=False), {"repair": False}, [
            Said("report", DEAF, NOARP, "Switch it on: ip link set dev eth0 arp on"),
        ]),
    ],
)  # fmt: skip
def test_what_an_operator_reads(
    state: HostState, settings: dict[str, Any], expected: list[Said]
) -> None:
    states = (state, host("b", PEER), host("c", THIRD))
    assert said(planned("neighbours", *states, absent=("gone",), **settings)) == expected


@pytest.mark.parametrize(
    ("state", "word"), [("PERMANENT", "permanent"), ("NOARP", "noarp")]
)  # fmt: skip
def test_a_wrong_entry_is_removed_under_guard(state: str, word: str) -> None:
    plan = planned("neighbours", knowing(entry(state=state)), host("b", PEER))
    text = f"{PEER} lladdr {WRONG} {state}"
    assert run(plan) == [
        Run(
            f"remove the neighbour entry {text}, so that the kernel asks", "medium", True, "",
            f"if ip -4 neigh show to 10.0.0.2 dev eth0 nud {word} 2>/dev/null | grep -q lladdr; "
            "then echo there; else echo absent; fi",
            "there", "absent", "ip neigh del 10.0.0.2 dev eth0",
            f"ip neigh replace 10.0.0.2 dev eth0 lladdr {WRONG} nud {word}",
        )
    ]  # fmt: skip


def test_answering_is_switched_on_under_guard() -> None:
    plan = planned("neighbours", host("a", "10.0.0.1", arp=False), host("b", PEER))
    assert run(plan) == [
        Run(
            "have eth0 answer who asks for its address (arp on)", "medium", True, "",
            "if ip link show dev eth0 | grep -q NOARP; then echo off; else echo on; fi",
            "off", "on", "ip link set dev eth0 arp on", "ip link set dev eth0 arp off",
        )
    ]  # fmt: skip
    (change,) = plan.for_host("a")
    assert observation(host("a", "10.0.0.1", arp=False), change) == "off"
    assert observation(host("a", "10.0.0.1"), change) == "on"
    bare = host("a", "10.0.0.1").model_copy(update={"network": record(Network)})
    assert observation(bare, change) == "off"


@pytest.mark.parametrize("name", ["all", "eth0"])
def test_a_host_that_answers_nobody(name: str) -> None:
    key = f"net.ipv4.conf.{name}.arp_ignore"
    sysctls = Sysctls(live={key: "8"}, persisted=(), unread=())
    state = host("a", "10.0.0.1").model_copy(update={"sysctls": sysctls})
    assert said(planned("neighbours", state, host("b", PEER))) == [
        Said(
            "blocked", "this host answers nobody who asks for its hardware address", (f"{key} = 8",),
            f"Set it to 0, or to 1 on a host with rails: sysctl -w {key}=0",
        )
    ]  # fmt: skip
    alone = host("a", "10.0.0.1").model_copy(update={"sysctls": sysctls})
    assert said(planned("neighbours", alone)) == []


def test_a_name_with_a_dot_has_its_setting_with_a_slash() -> None:
    key = "net.ipv4.conf.eth0/7.arp_ignore"
    state = host("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    links = tuple(i.model_copy(update={"name": "eth0.7"}) for i in state.network.interfaces)
    network = state.network.model_copy(update={"interfaces": links})
    sysctls = Sysctls(live={key: "8"}, persisted=(), unread=())
    state = state.model_copy(update={"network": network, "sysctls": sysctls})
    assert [f.evidence for f in said(planned("neighbours", state, host("b", PEER)))] == [
        (f"{key} = 8",)
    ]


def test_twins_are_told_of_the_fleet() -> None:
    states = [host("a", "10.0.0.1"), host("b", PEER), host("c", THIRD)]
    assert isinstance(states[2].network, Network)
    (link,) = states[2].network.interfaces
    network = record(Network, interfaces=(link.model_copy(update={"mac": "02:00:00:00:00:01"}),))
    states[2] = states[2].model_copy(update={"network": network})
    assert said(planned("neighbours", *states), None) == [
        Said(
            "report", "the cluster interfaces of a,c have one hardware address",
            ("02:00:00:00:00:01 on 2 hosts",),
            "In one network all but one must change: a cloned virtual machine gets another from its host.",
        )
    ]  # fmt: skip


def test_what_is_known_of_hardware_addresses() -> None:
    blind = host("b", PEER).model_copy(update={"network": Unknown(reason="no ip")})
    nowhere = host("c", THIRD).model_copy(
        update={"network": record(Network, interfaces=(record(Interface, name="lo"),))}
    )
    whole = fleet(host("a", "10.0.0.1"), host("b", PEER), host("c", THIRD), absent=("gone",))
    states = {**whole.states, "b": blind, "c": nowhere}
    whole = type(whole)(whole.inventory, states, whole.spec, whole.missing)
    assert hardware_addresses(whole) == {
        "10.0.0.1": ("02:00:00:00:00:01", "a"),
        "10.0.0.200": ("", "gone"),
    }


# ---- IPv6

SIX = "fd00::2"


def reached_over_ipv6(mac: str = WRONG, state: str = "PERMANENT", at: str = SIX) -> list[HostState]:
    """Return hosts of which b is reached over IPv6, with an entry of a's."""
    one = Neighbour(address=at, mac=mac, interface="eth 0", state=state)
    beyond = Routing(routes=(), rules=(), neighbours=(one,), ipsec=())
    first = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipv6": beyond}))
    names = record(Names, peers={"b": (SIX,)})
    second = host("b", PEER)
    assert isinstance(second.network, Network)
    (link,) = second.network.interfaces
    address = link.addresses[0].model_copy(update={"address": SIX, "prefix": 64})
    links = (link.model_copy(update={"addresses": (*link.addresses, address)}),)
    network = second.network.model_copy(update={"interfaces": links})
    return [
        first.model_copy(update={"names": names}),
        second.model_copy(update={"network": network}),
    ]


def test_an_entry_of_ipv6_is_named_and_stays() -> None:
    plan = planned("neighbours", *reached_over_ipv6())
    assert said(plan) == [
        Said(
            "report",
            "this host sends what is for b to a hardware address that b does not have, over IPv6",
            (
                f"ip neigh: fd00::2 lladdr {WRONG} PERMANENT", "b itself has 02:00:00:00:00:02",
                "over IPv6: b resolves to fd00::2 on a",
            ),
            "Remove it: ip neigh del fd00::2 dev 'eth 0'",
        )
    ]  # fmt: skip
    assert plan.changes == ()
    assert len(said(planned("neighbours", *reached_over_ipv6(state="NOARP")))) == 1
    accepted = f"fd00::2 lladdr {WRONG} PERMANENT"
    for states, settings in (
        (reached_over_ipv6(), {"accept": (accepted,)}),
        (reached_over_ipv6(mac="02:00:00:00:00:02".upper()), {}),
        (reached_over_ipv6(state="STALE"), {}),
        (reached_over_ipv6(at="fd00::3"), {}),
    ):
        assert said(planned("neighbours", *states, **settings)) == []


@pytest.mark.parametrize(
    ("live", "key"),
    [
        ({"net.ipv4.conf.eth0.proxy_arp_pvlan": "1"}, "net.ipv4.conf.eth0.proxy_arp_pvlan"),
        (
            {"net.ipv4.conf.eth0.proxy_arp": "1"},
            "",
        ),  # asked for a peer by the way to it, it is silent
        ({}, ""),
    ],
)
@pytest.mark.parametrize("forwards", ["0", "1"])
def test_a_host_that_answers_for_its_peers_is_named(
    live: dict[str, str], key: str, forwards: str
) -> None:
    settings = {**live, "net.ipv4.ip_forward": forwards}
    state = host("a", "10.0.0.1").model_copy(update={"sysctls": record(Sysctls, live=settings)})
    found = said(planned("neighbours", state, host("b", PEER)))
    assert len(found) == (1 if key and forwards == "1" else 0)
    for each in found:
        assert (
            each.title == "this host answers by eth0 who asks for the hardware addresses of peers"
        )
        assert each.evidence == (f"{key} = 1", "net.ipv4.ip_forward = 1")
        assert each.fix == f"Switch it off: sysctl -w {key}=0"
