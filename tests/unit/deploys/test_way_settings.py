"""Kernel settings and prefixes by which a host does not get to its peers."""

from __future__ import annotations

import pytest

from remedy.probe import HostState, Neighbour, Network, Sysctls, SysctlSetting
from tests.unit.deploys.ways_bench import host, plan, routing, said

MAC = "02:00:00:00:00:02"
NEIGH = "net.ipv4.neigh.eth0"
TABLE = "net.ipv4.neigh.default.gc_thresh3"
GATEWAY = "default via 192.168.0.1 dev eth9"


def with_sysctls(live: dict[str, str], persisted: tuple[tuple[str, str], ...] = ()) -> HostState:
    """Return a host with these settings, now and in a file."""
    lines = tuple(
        SysctlSetting(key=key, value=value, path="/etc/sysctl.d/9.conf", line=at)
        for at, (key, value) in enumerate(persisted, 1)
    )
    sysctls = Sysctls(live=live, persisted=lines, unread=())
    return host("a", "10.0.0.1").model_copy(update={"sysctls": sysctls})


@pytest.mark.parametrize(
    ("live", "kind", "words"),
    [
        ({"mcast_solicit": "0"}, "blocked", "never asks"),
        ({"mcast_solicit": "0", "app_solicit": "3"}, "unknown", "leaves it to a daemon to ask"),
        ({"app_solicit": "100"}, "blocked", "only after 100 s"),
        ({"app_solicit": "3", "retrans_time_ms": "4000"}, "blocked", "only after 12 s"),
        ({"retrans_time_ms": "600000"}, "report", "asks again only after 600 s"),
        ({"retrans_time_ms": "0"}, "blocked", "gives peers 0 ms"),
        ({"ucast_solicit": "0"}, "report", "forgets peers"),
        ({"base_reachable_time_ms": "1"}, "report", "all the time"),
    ],
)
def test_a_setting_by_which_peers_are_not_asked_is_named(
    live: dict[str, str], kind: str, words: str
) -> None:
    state = with_sysctls({f"{NEIGH}.{name}": value for name, value in live.items()})
    of = plan("neighbours", state)
    ((found, title),) = said(of)
    assert (found, words in title) == (kind, True)
    (finding,) = (f for f in of.findings if f.host == "a")
    assert all(f"{NEIGH}.{name} = {value}" in finding.evidence for name, value in live.items())
    assert f"{NEIGH}.{next(iter(live))}=" in finding.fix


@pytest.mark.parametrize(
    ("state", "arp", "named"),
    [
        ("PERMANENT", True, False),  # nobody has to be asked
        ("NOARP", True, False),
        ("STALE", True, True),
        ("PERMANENT", False, False),  # another finding says that it does not take part in this
        ("STALE", False, False),
    ],
)
def test_who_has_an_entry_that_stays_need_not_be_asked(state: str, arp: bool, named: bool) -> None:
    entries = tuple(
        Neighbour(address=address, interface="eth0", mac=MAC, state=state)
        for address in ("10.0.0.2", "10.0.0.3")
    )
    of = routing().model_copy(update={"neighbours": entries})
    sysctls = Sysctls(live={f"{NEIGH}.mcast_solicit": "0"}, persisted=(), unread=())
    silent = host("a", "10.0.0.1", of, arp=arp).model_copy(update={"sysctls": sysctls})
    titles = [title for _, title in said(plan("neighbours", silent))]
    assert any("never asks" in title for title in titles) is named


def test_usual_settings_and_those_of_other_interfaces_are_not_mentioned() -> None:
    usual = {
        "mcast_solicit": "3",
        "ucast_solicit": "3",
        "app_solicit": "0",
        "retrans_time_ms": "1000",
    }
    live = {f"{NEIGH}.{name}": value for name, value in usual.items()}
    others = {"net.ipv4.neigh.eth9.mcast_solicit": "0", TABLE: "1024"}
    assert said(plan("neighbours", with_sysctls({**live, **others}))) == []


@pytest.mark.parametrize("key", [f"{NEIGH}.mcast_solicit", "net.ipv4.neigh.default.mcast_solicit"])
def test_a_setting_of_a_file_is_named_for_the_next_boot(key: str) -> None:
    of = plan("neighbours", with_sysctls({f"{NEIGH}.mcast_solicit": "3"}, ((key, "0"),)))
    assert said(of) == [
        (
            "blocked",
            (
                "after the next boot, eth0 never asks for the hardware addresses of peers: only who has just"
                " asked for its own is reached"
            ),
        )
    ]
    assert of.findings[0].evidence == (f"/etc/sysctl.d/9.conf:1: {key} = 0",)


@pytest.mark.parametrize(
    ("live", "persisted", "kind"),
    [("1", "", "blocked"), ("4", "", "report"), ("1024", "1", "blocked"), ("1024", "", None)],
)
def test_a_table_without_room_for_the_peers_is_named(
    live: str, persisted: str, kind: str | None
) -> None:
    lines = ((TABLE, persisted),) if persisted else ()
    found = said(plan("neighbours", with_sysctls({TABLE: live}, lines)))
    assert [of for of, _ in found] == ([kind] if kind else [])


def with_prefix(length: int, *routes: str) -> HostState:
    state = host("a", "10.0.0.1", routing(*routes))
    assert isinstance(state.network, Network)
    (interface,) = state.network.interfaces
    addresses = tuple(a.model_copy(update={"prefix": length}) for a in interface.addresses)
    interface = interface.model_copy(update={"addresses": addresses})
    return state.model_copy(
        update={"network": state.network.model_copy(update={"interfaces": (interface,)})}
    )


@pytest.mark.parametrize("length", [31, 32])
def test_a_prefix_that_takes_peers_for_far_ones_is_named(length: int) -> None:
    of = plan("peer_routes", with_prefix(length, GATEWAY))
    kind, title = said(of)[0]
    assert kind == "blocked"
    assert f"the prefix /{length} here and /24 on other hosts" in title
    assert f"ip addr: 10.0.0.1/{length} on eth0" in of.findings[0].evidence
    assert f"route: {GATEWAY}" in of.findings[0].evidence
    assert "ip addr add 10.0.0.1/24 dev eth0" in of.findings[0].fix


def test_a_prefix_is_right_where_a_route_leads_to_the_peers_all_the_same() -> None:
    routes = ("10.0.0.0/24 dev eth0 scope link src 10.0.0.1", GATEWAY)
    assert said(plan("peer_routes", with_prefix(32, *routes))) == []
