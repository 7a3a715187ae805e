"""What is said of disciplines and filters, and which commands are run."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.traffic_control import observation, promise
from remedy.plan import CommandAction
from remedy.probe import Address, Discipline, HostState, Interface, Network, Queueing, TrafficFilter
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.ways_bench import PEER, host
from tests.unit.deploys.words_bench import Run, Said, planned, run, said

NETEM = "qdisc netem 8001: dev eth0 root limit 1000 loss 10%"
BLACKHOLE = "qdisc blackhole 8002: dev eth0 root"
INNER = "qdisc netem 8001: dev eth0 parent 1:1 limit 1000 loss 10%"
TBF = "qdisc tbf 8001: dev eth0 root rate 1500Kbit burst 32Kb lat 400ms"
HTB = "qdisc htb 8: dev eth0 root r2q 10 default 0x10"
LOSES = "loses, delays or damages what leaves by eth0"
ACCEPT = 'add to traffic_control.accept in remedy.yaml: "{}"'
DELETE = "Remove it: tc qdisc del dev eth0 root; if it is right, "
INSTALL = "Install tc (iproute2 or iproute-tc)"


def queued(*texts: str, interface: str = "eth0") -> HostState:
    disciplines = tuple(
        Discipline(
            interface=interface, kind=text.split()[1], text=text,
            place="root" if " root" in text else "parent",
        )
        for text in texts
    )  # fmt: skip
    return host("a", "10.0.0.1", queueing=Queueing(disciplines=disciplines, filters=()))


def filtered(*lines: str, direction: str = "ingress") -> HostState:
    rule = TrafficFilter(interface="eth0", direction=direction, text=lines)
    return host("a", "10.0.0.1", queueing=Queueing(disciplines=(), filters=(rule,)))


def blind(*kinds: str) -> HostState:
    """Return a host without tc whose interfaces in the cluster's network have these disciplines."""
    state = host("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    (link,) = state.network.interfaces
    links = tuple(
        link.model_copy(
            update={
                "name": f"eth{at}", "discipline": kind,
                "addresses": (Address(address=f"10.0.0.{1 + 10 * at}", prefix=24, scope="global"),),
            }
        )
        for at, kind in enumerate(kinds)
    )  # fmt: skip
    network = state.network.model_copy(update={"interfaces": links})
    unread = Unknown(reason="tc is not installed")
    return state.model_copy(update={"network": network, "queueing": unread})


DROP = "action order 1: gact action drop"
MATCHALL = "filter protocol all pref 1 matchall chain 0 handle 0x1"
ALL = f"eth0 ingress: {MATCHALL} {DROP}"
SOME = "filter protocol ip pref 2 fw chain 0"


@pytest.mark.parametrize(
    ("state", "settings", "expected"),
    [
        (queued(NETEM), {}, Said("drift", f"netem {LOSES}", (NETEM,), "")),
        (queued(BLACKHOLE), {}, Said("drift", f"blackhole {LOSES}", (BLACKHOLE,), "")),
        (queued(NETEM), {"repair": False}, Said(
            "report", f"netem {LOSES}", (NETEM,), DELETE + ACCEPT.format(NETEM),
        )),
        (queued(INNER), {}, Said(
            "blocked", f"netem {LOSES}", (INNER,), DELETE + ACCEPT.format(INNER),
        )),
        (queued(TBF), {}, Said(
            "blocked", "tbf holds what leaves by eth0 to 1.5 Mbit/s", (TBF,), DELETE + ACCEPT.format(TBF),
        )),
        (queued(HTB), {}, Said(
            "unknown", "htb shapes what leaves by eth0, and what it drops is not known", (HTB,),
            "If that is right, " + ACCEPT.format(HTB),
        )),
        (host("a", "10.0.0.1", xdp="filter"), {}, Said(
            "unknown", "an eBPF program decides about each packet that eth0 gets", ("xdp filter on eth0",),
            "If that is right, " + ACCEPT.format("xdp filter on eth0"),
        )),
        (blind("netem", "tbf"), {}, Said(
            "unknown", "eth0 and eth1 shape what is sent, and what it drops is not known",
            ("tc is not installed", "qdisc netem on eth0", "qdisc tbf on eth1"),
            f"{INSTALL}, and run the command again.",
        )),
        (blind("mq", "tbf"), {}, Said(
            "unknown", "eth1 shapes what is sent, and what it drops is not known",
            ("tc is not installed", "qdisc tbf on eth1"), f"{INSTALL}, and run the command again.",
        )),
        (blind("mq", "fq"), {}, Said(
            "report", "filters of traffic control were not read", ("tc is not installed",),
            f"{INSTALL} to have them judged.",
        )),
        (blind("mq", ""), {}, Said(
            "unknown", "could not read what queues packets on the cluster interface",
            ("tc is not installed",), "",
        )),
        (filtered(MATCHALL, DROP), {}, Said(
            "blocked", "a filter of traffic control on eth0 drops packets of peers (ingress)", (ALL,),
            "If nothing needs it: tc filter del dev eth0 ingress protocol all pref 1; if it is right, "
            + ACCEPT.format(ALL),
        )),
        (filtered(SOME, DROP), {}, Said(
            "unknown", "a filter of traffic control on eth0 may drop packets of peers",
            (f"eth0 ingress: {SOME} {DROP}",),
            "If that is right, " + ACCEPT.format(f"eth0 ingress: {SOME} {DROP}"),
        )),
    ],
)  # fmt: skip
def test_what_an_operator_reads(state: HostState, settings: dict[str, Any], expected: Said) -> None:
    assert said(planned("traffic_control", state, host("b", PEER), **settings)) == [expected]
    (text,) = expected.evidence[-1:]
    if ACCEPT.format(text) in expected.fix:
        settings = {**settings, "accept": (text,)}
        assert said(planned("traffic_control", state, host("b", PEER), **settings)) == []


@pytest.mark.parametrize(
    ("text", "back"),
    [
        (NETEM, "tc qdisc replace dev eth0 root handle 8001: netem limit 1000 loss 10%"),
        (BLACKHOLE, "tc qdisc replace dev eth0 root handle 8002: blackhole"),
    ],
)  # fmt: skip
def test_a_discipline_is_removed_under_guard_and_comes_back_as_it_was(text: str, back: str) -> None:
    kind = text.split()[1]
    state = queued(text)
    plan = planned("traffic_control", state, host("b", PEER))
    assert run(plan) == [
        Run(
            f"remove {kind} from eth0", "medium", True, "",
            r"tc qdisc show dev eth0 | sed -n 's/^qdisc \(netem\|blackhole\) .*/\1/p'",
            kind, "", "tc qdisc del dev eth0 root", back,
        )
    ]  # fmt: skip
    (change,) = plan.for_host("a")
    assert observation(state, change) == kind
    gone = promise(state, change)
    assert isinstance(gone.queueing, Queueing)
    assert gone.queueing.disciplines == ()
    assert observation(gone, change) == ""
    assert isinstance(change.action, CommandAction)
    inverse = change.model_copy(update={"action": change.action.inverse()})
    assert promise(gone, inverse).queueing == state.queueing


def test_what_a_change_is_about_is_told_from_the_rest() -> None:
    one = planned("traffic_control", queued(NETEM), host("b", PEER)).for_host("a")[0]
    other = Discipline(
        interface="eth9", kind="netem", place="root", text="qdisc netem 1: dev eth9 root"
    )
    inner = Discipline(
        interface="eth0", kind="fq", place="parent", text="qdisc fq 2: dev eth0 parent 1:"
    )
    state = host("a", "10.0.0.1", queueing=Queueing(disciplines=(other, inner), filters=()))
    assert observation(state, one) == ""
    assert promise(state, one).queueing == state.queueing


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("filter parent 1: protocol ip pref 7 matchall chain 0", "root protocol ip pref 7;"),
        ("filter protocol ip pref 7 matchall chain 0", "egress protocol ip pref 7;"),
    ],
)  # fmt: skip
def test_a_filter_is_removed_where_it_hangs(line: str, words: str) -> None:
    (found,) = said(
        planned("traffic_control", filtered(line, DROP, direction="egress"), host("b", PEER))
    )
    assert f"tc filter del dev eth0 {words}" in found.fix
    assert found.title.endswith("drops packets of peers (egress)")


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((MATCHALL, "police 0x1 rate 999Mbit burst 10Kb action drop"), "blocked"),
        ((MATCHALL, "police 0x1 rate 1Gbit burst 10Kb action drop"), "unknown"),
        ((MATCHALL, "police 0x1 burst 10Kb"), "unknown"),
        ((MATCHALL, "action order 1: gact action shot"), "blocked"),
        ((MATCHALL, "action order 1: skbedit priority 1"), None),
        ((MATCHALL, "action order 12: vlan pop"), "unknown"),
        ((MATCHALL,), None),
    ],
)  # fmt: skip
def test_what_a_filter_does(lines: tuple[str, ...], kind: str | None) -> None:
    found = said(planned("traffic_control", filtered(*lines), host("b", PEER)))
    assert [f.kind for f in found] == ([kind] if kind else [])


U32 = "filter protocol ip pref 5 u32 chain 0"


@pytest.mark.parametrize(
    ("match", "direction", "kind"),
    [
        ("match 0a000002/ffffffff at 12", "ingress", "blocked"),
        ("match 0a000002/ffffffff at 16", "ingress", None),
        ("match 0a000001/ffffffff at 16", "ingress", "blocked"),
        ("match 0a000001/ffffffff at 12", "egress", "blocked"),
        ("match 0a000002/ffffffff at 12", "egress", None),
        ("match 0a000000/ffffff00 at 16", "egress", "blocked"),
        ("match 0a000002/ff0000ff at 12", "ingress", "unknown"),
        ("match 0a000002/ffffffff at 20", "ingress", "unknown"),
        ("match 0a800000/ff800000 at 12", "ingress", None),
        ("match 00060000/00ff0000 at 8", "ingress", "blocked"),
        ("match 00010000/00ff0000 at 8", "ingress", None),
        ("match 00060000/00ff0000 at 12", "ingress", "unknown"),
        ("match 00060000/000f0000 at 8", "ingress", "unknown"),
    ],
)  # fmt: skip
def test_what_a_match_of_u32_looks_at(match: str, direction: str, kind: str | None) -> None:
    found = said(
        planned("traffic_control", filtered(U32, match, DROP, direction=direction), host("b", PEER))
    )
    assert [f.kind for f in found] == ([kind] if kind else [])


def test_members_and_other_interfaces_of_the_network_count() -> None:
    state = queued(NETEM.replace("eth0", "eth1"), interface="eth1")
    assert isinstance(state.network, Network)
    for more, is_named in (
        (record(Interface, name="eth1", master="eth0"), True),
        (record(Interface, name="eth1", master="eth9"), False),
        (record(Interface, name="eth1"), False),
    ):
        network = state.network.model_copy(update={"interfaces": (*state.network.interfaces, more)})
        here = state.model_copy(update={"network": network})
        found = said(planned("traffic_control", here, host("b", PEER)))
        assert bool(found) is is_named


SHORT = "qdisc bfifo 8001: dev eth0 root refcnt 2 limit 1000b"
NARROW = "qdisc bfifo 8001: dev eth0 root refcnt 2 limit 4000b"
CLOSED = "qdisc pfifo 8001: dev eth0 root refcnt 2 limit 0p"
LITTLE = (
    "qdisc fq_codel 0: dev eth0 root limit 10240p flows 1024 quantum 1514 memory_limit 1000b ecn"
)
PACED = (
    "qdisc fq 8001: dev eth0 root limit 10000p flow_limit 100p quantum 3028b maxrate 1Mbit "
    "low_rate_threshold 550Kbit"
)
FQ = (
    "qdisc fq 8001: dev eth0 root refcnt 2 limit 10000p flow_limit 100p buckets 1024 quantum 3028b "
    "initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us"
)
FQ_CODEL = (
    "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms "
    "interval 100ms memory_limit 32Mb ecn drop_batch 64"
)
PFIFO_FAST = "qdisc pfifo_fast 0: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1"
SFQ = "qdisc sfq 8001: dev eth0 root limit 127p quantum 1514b depth 127 divisor 1024"


def with_mtu(state: HostState) -> HostState:
    """Return a host whose interface carries packets of 1500 bytes."""
    assert isinstance(state.network, Network)
    interfaces = tuple(i.model_copy(update={"mtu": 1500}) for i in state.network.interfaces)
    network = state.network.model_copy(update={"interfaces": interfaces})
    return state.model_copy(update={"network": network})


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (SHORT, "blocked", "bfifo drops packets that leave by eth0: limit 1000b"),
        (CLOSED, "blocked", "pfifo drops packets that leave by eth0: limit 0p"),
        (LITTLE, "blocked", "fq_codel drops packets that leave by eth0: memory_limit 1000b"),
        (NARROW, "unknown", "bfifo holds few packets that leave by eth0 (limit 4000b), and drops the others"),
        (PACED, "blocked", "fq holds each connection by eth0 to 1 Mbit/s"),
    ],
)  # fmt: skip
def test_a_queue_without_room_or_with_a_rate_is_no_usual_one(
    text: str, kind: str, words: str
) -> None:
    states = (with_mtu(queued(text)), host("b", PEER))
    (found,) = said(planned("traffic_control", *states))
    assert (found.kind, found.title, found.evidence) == (kind, words, (text,))
    assert ACCEPT.format(text) in found.fix
    assert said(planned("traffic_control", *states, accept=(text,))) == []


def test_the_usual_room_of_queues_is_not_named() -> None:
    for text in (FQ, FQ_CODEL, PFIFO_FAST, SFQ):
        assert said(planned("traffic_control", with_mtu(queued(text)), host("b", PEER))) == []


@pytest.mark.parametrize(
    "action",
    [
        "action order 1: gact action pass random type netrand drop val 10",
        "action order 1: skbedit ptype otherhost pipe",
    ],
)
def test_an_action_that_lets_most_pass_is_not_one_that_lets_all_pass(action: str) -> None:
    text = ("filter protocol ip pref 7 matchall chain 0 handle 0x1", action)
    (found,) = said(planned("traffic_control", filtered(*text), host("b", PEER)))
    assert found.kind == "unknown"
    assert action in found.evidence[0]
