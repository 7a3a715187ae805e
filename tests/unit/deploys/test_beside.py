"""What routes, loopback, limits, start-up files and libraries do that no rule of a firewall says."""

from __future__ import annotations

import pytest

from remedy.edit.assignments import shell_assignments
from remedy.probe import (
    Address,
    Discipline,
    File,
    HostState,
    Interface,
    Kernel,
    LoginSession,
    Mention,
    Names,
    Network,
    Queueing,
    TrafficFilter,
)
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys.ways_bench import LINK, MAIN, PEER, host, plan, routing, rule, said
from tests.unit.deploys.words_bench import planned
from tests.unit.deploys.words_bench import said as all_said

AWAY = "default dev docker0 table 77"


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("uidrange 0-65535", "unknown"),
        ("dport 40000-40010", "unknown"),
        ("dport 443", None),
        ("sport 500-600", None),
        ("dport 22", "unknown"),
        ("fwmark 0x7", None),
        ("ipproto udp", None),
    ],
)
def test_a_rule_for_some_packets_that_leads_elsewhere_is_unknown(
    condition: str, kind: str | None
) -> None:
    away = rule(93, table="77", conditions=(condition,))
    findings = said(
        plan("peer_routes", host("a", "10.0.0.1", routing(LINK, AWAY, rules=(away, MAIN))))
    )
    assert [found for found, _ in findings] == ([kind] if kind else [])


def test_a_rule_for_some_packets_that_leads_the_same_way_is_fine() -> None:
    same = rule(93, table="77", conditions=("uidrange 0-65535",))
    of = routing(LINK, "10.0.0.0/24 dev eth0 table 77 src 10.0.0.1", rules=(same, MAIN))
    assert said(plan("peer_routes", host("a", "10.0.0.1", of))) == []


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("window 2000", "a route has peers send few bytes at a time (window 2000)"),
        ("window 65536", ""),
        ("advmss 88", "a route has peers send small packets (advmss 88)"),
        ("advmss 1460", ""),
        ("cwnd 2", "at most 2 segments are on their way at once (cwnd)"),
        ("cwnd 4000", ""),
        ("rto_min 20000", "is sent once more (rto_min 20000)"),
        ("rttvar 1500", "is sent once more (rttvar 1500)"),
        ("rto_min 200", ""),
        ("rtt 1000", ""),
        ("nexthop dev eth0 nexthop via 10.0.0.250 dev eth0", "goes through 10.0.0.250, though"),
        ("nexthop dev eth0 nexthop dev eth0", ""),
    ],
)
def test_what_a_route_does_besides(words: str, title: str) -> None:
    of = routing(LINK, f"{PEER} dev eth0 proto boot")
    device = "" if "nexthop" in words else "dev eth0 "
    odd = of.routes[1].model_copy(
        update={
            "text": f"{PEER} {device}proto boot {words}",
            "plain": False,
            "interface": "" if "nexthop" in words else "eth0",
        }
    )
    of = of.model_copy(update={"routes": (of.routes[0], odd)})
    findings = said(plan("peer_routes", host("a", "10.0.0.1", of)))
    assert [(kind, title in text) for kind, text in findings] == (
        [("unknown", True)] if title else []
    )


# --- loopback -----------------------------------------------------------------------------------------------


def with_loopback(*, up: bool = True, address: str = "127.0.0.1") -> HostState:
    own = (Address(address=address, prefix=8, scope="host"),) if address else ()
    lo = record(
        Interface,
        name="lo",
        kind="loopback",
        state="UNKNOWN",
        up=up,
        addresses=own,
        mtu=65536,
        arp=False,
    )
    state = host("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    network = state.network.model_copy(update={"interfaces": (*state.network.interfaces, lo)})
    return state.model_copy(update={"network": network})


@pytest.mark.parametrize(
    ("up", "address", "words"),
    [
        (True, "127.0.0.1", ""),
        (False, "127.0.0.1", "lo is down"),
        (True, "", "lo does not have 127.0.0.1"),
        (True, "127.0.0.2", "lo does not have 127.0.0.1"),
    ],
)
def test_a_loopback_by_which_nobody_is_reached(up: bool, address: str, words: str) -> None:
    findings = said(plan("network_health", with_loopback(up=up, address=address)))
    assert [(kind, words in title) for kind, title in findings] == (
        [("blocked", True)] if words else []
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("qdisc noqueue 0: dev lo root refcnt 2", None),
        ("qdisc blackhole 8001: dev lo root refcnt 2", "drift"),
        ("qdisc bfifo 8001: dev lo root refcnt 2 limit 9000b", "blocked"),
        ("qdisc bfifo 8001: dev docker0 root refcnt 2 limit 100b", None),
    ],
)
def test_queues_of_loopback_count(text: str, kind: str | None) -> None:
    words = text.split()
    queue = Discipline(interface=words[4], kind=words[1], place="root", text=text)
    state = with_loopback().model_copy(
        update={"queueing": Queueing(disciplines=(queue,), filters=())}
    )
    assert [found for found, _ in said(plan("traffic_control", state))] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("match", "kind"),
    [("0a000001/ffffffff at 12", "blocked"), ("0a000002/ffffffff at 12", None)],
)
def test_filters_of_loopback_are_about_the_own_address(match: str, kind: str | None) -> None:
    lines = (
        "filter protocol ip pref 7 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 terminal",
        f"match {match}",
        "action order 1: gact action drop",
    )
    each = TrafficFilter(interface="lo", direction="ingress", text=lines)
    state = with_loopback().model_copy(
        update={"queueing": Queueing(disciplines=(), filters=(each,))}
    )
    assert [found for found, _ in said(plan("traffic_control", state))] == ([kind] if kind else [])


# --- sessions -----------------------------------------------------------------------------------------------


def with_lines(*lines: tuple[str, str]) -> HostState:
    mentions = tuple(
        Mention(path=path, line=at, text=text) for at, (path, text) in enumerate(lines, 1)
    )
    kernel = record(Kernel, memory=64 << 30, cpus="0-15")
    return host("a", "10.0.0.1").model_copy(update={"mentions": mentions, "kernel": kernel})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ulimit -v 60000", "only 58.6 MiB of memory (as)"),
        ("ulimit -Sn 16", "only 16 open files"),
        ("test -z x || ulimit -H -n 16", "only 16 open files"),
        ("ulimit -n 65536", ""),
        ("ulimit -n unlimited", ""),
        ("# ulimit -n 16", ""),
        ("ulimit -t 60", "only 60 seconds of CPU"),
    ],
)
def test_a_limit_of_a_start_up_file(text: str, words: str) -> None:
    findings = said(plan("limits", with_lines(("/etc/profile", text))))
    assert [words in title for _, title in findings if "gives shells" in title] == (
        [True] if words else []
    )


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        ("AllowedCPUs=0", True),
        ("AllowedCPUs=0-15", False),
        ("CPUAffinity=0 1", True),
        ("CPUAffinity=numa", False),
    ],
)
def test_few_cpus_for_sessions(line: str, is_named: bool) -> None:
    state = with_lines(("/etc/systemd/system/user.slice.d/a.conf", line))
    assert bool(said(plan("unit_network", state))) is is_named


def test_a_library_that_each_program_loads_is_unknown_until_it_is_accepted() -> None:
    path = "/etc/ld.so.preload"
    state = host("a", "10.0.0.1")
    file = File(path=path, real_path=path, exists=True, content=b"/a.so /b.so\n")
    state = state.model_copy(update={"files": {**state.files, path: file}})
    other = host_state("b", "10.0.0.2")
    findings = all_said(planned("launching", state, other))
    assert [(f.kind, f.evidence) for f in findings] == [
        ("unknown", (f"{path}: /a.so",)),
        ("unknown", (f"{path}: /b.so",)),
    ]
    assert all_said(planned("launching", state, other, accept=("/a.so", "/b.so"))) == []


@pytest.mark.parametrize(("user", "kind"), [("root", "report"), ("", "report"), ("me", "blocked")])
def test_a_file_that_keeps_users_out(user: str, kind: str) -> None:
    session = record(LoginSession, present=frozenset({"/etc/nologin"}))
    state = host("a", "10.0.0.1").model_copy(
        update={"session": session, "names": record(Names, user=user)}
    )
    (finding,) = all_said(planned("launching", state, host_state("b", "10.0.0.2")))
    assert (finding.kind, finding.title) == (
        kind,
        "nobody but root can log in: /etc/nologin is there",
    )


def test_connections_of_one_host_that_sshd_drops() -> None:
    text = "PerSourceMaxStartups {}"
    for number, is_named in (("2", True), ("40", False), ("none", False)):
        state = with_lines(("/etc/ssh/sshd_config", text.format(number)))
        findings = all_said(planned("launching", state, host_state("b", "10.0.0.2")))
        assert bool(findings) is is_named, number


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        (': "${NCCL_SOCKET_IFNAME:=eth9}"', (("NCCL_SOCKET_IFNAME", "eth9"),)),
        (": ${A=b}", (("A", "b"),)),
        ("export A=${A:-b}", (("A", "b"),)),
        ('export A="${A-b}"', (("A", "b"),)),
        ("export A=${B:-b}", ()),
        ("export A=$B", ()),
    ],
)
def test_what_a_shell_sets_where_nothing_else_does(line: str, pairs: tuple[object, ...]) -> None:
    assert shell_assignments(line) == pairs


def test_unknown_facts_say_nothing_here() -> None:
    state = host("a", "10.0.0.1").model_copy(update={"session": Unknown(reason="x")})
    assert all_said(planned("launching", state, host_state("b", "10.0.0.2"))) == []
