"""What is said of firewalls, and how they are switched off."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys import _walls, _walls_ipv6
from remedy.deploys.firewall import FirewallSpec
from remedy.firewall.ports import Need
from remedy.firewall.step import Amendment, CommandStep, FileStep, Note, Opening
from remedy.firewall.traffic import Doubt, Dropped
from remedy.firewall.walls import AT_BOOT, Wall
from remedy.plan import FindingKind, Workbench
from remedy.probe import Firewalls, HostState, Names, Sysctls
from remedy.values import Unknown
from tests.unit.build import NO_FIREWALL, fleet, host_state, record
from tests.unit.deploys.words_bench import Run, Said, planned, run, said

IN, OUT = Dropped((), ((22, 80),), ("1", "2", "3", "4")), Dropped((), ((90, 90),), ("out",))
HERE, THERE = [Need(22, 22, "ssh"), Need(81, 81, "x")], [Need(90, 95, "y")]
SEEN, SENT = ("1", "2", "3", "needed: 22: ssh"), ("out", "needed: 90-95: y")
STEPS = (FileStep("t", "/etc/x", b""), CommandStep("t", {}))  # type: ignore[typeddict-item]
AHEAD = "Remove that rule, or let the cluster's addresses through ahead of it."


def bench() -> Workbench[FirewallSpec]:
    state = host_state("a", "10.0.0.1")
    return Workbench(fleet(state), state, FirewallSpec(), "firewall", "firewall-ports")


def told(of: Workbench[Any]) -> list[Said]:
    return [Said(f.kind.value, f.title, f.evidence, f.fix) for f in of.findings]


def reasons(*, leaves: bool = False) -> _walls.Reasons:
    return _walls.Reasons(HERE, THERE, leaves)


KEEPS_OUT = "ufw keeps the cluster's hosts out of ports that training needs"
KEEPS_IN = "ufw keeps this host from connecting to the cluster's hosts, or from answering them"
NOTE = Note(FindingKind.BLOCKED, "x")


@pytest.mark.parametrize(
    ("wall", "proposal", "leaves", "expected"),
    [
        (Wall("ufw", IN, OUT), Amendment(steps=STEPS), False, [
            Said("drift", KEEPS_OUT, SEEN, ""), Said("drift", KEEPS_IN, SENT, ""),
        ]),
        (Wall("ufw", IN, OUT), Amendment(steps=STEPS), True, [
            Said(
                "report", title, lines,
                "Let the cluster's addresses through on these ports, or take firewall.mode: leave out.",
            )
            for title, lines in ((KEEPS_OUT, SEEN), (KEEPS_IN, SENT))
        ]),
        (Wall("ufw", IN, OUT), Amendment(), False, [
            Said(
                "blocked", "ufw keeps the cluster's hosts out, by a rule that comes before remedy's", SEEN,
                AHEAD,
            ),
            Said(
                "blocked",
                "ufw drops what this host sends to the cluster's, by a rule that comes before remedy's",
                SENT, AHEAD,
            ),
        ]),
        (Wall("ufw", IN), Amendment(notes=(NOTE,)), False, []),
        (Wall("ufw", IN), Amendment(notes=(Note(FindingKind.REPORT, "x"),)), False, [
            Said("blocked", "ufw keeps the cluster's hosts out, by a rule that comes before remedy's", SEEN,
            AHEAD),
        ]),
        (Wall("ufw"), Amendment(steps=STEPS), False, [
            Said("drift", "remedy's rules in ufw are not those that the cluster needs now", ("/etc/x",), ""),
        ]),
        (Wall(AT_BOOT), Amendment(steps=STEPS), False, [
            Said("drift", "what nftables loads at boot does not let in whom the cluster needs now", ("/etc/x",),
            ""),
        ]),
        (Wall("ufw"), Amendment(steps=STEPS), True, []),
        (Wall("ufw"), Amendment(), False, []),
    ],
)  # fmt: skip
def test_what_a_firewall_keeps_apart(
    wall: Wall, proposal: Amendment, leaves: bool, expected: list[Said]
) -> None:
    of = bench()
    _walls.explain(of, wall, proposal, reasons(leaves=leaves))
    assert told(of) == expected


@pytest.mark.parametrize(("leaves", "kind"), [(True, "report"), (False, "blocked")])
def test_a_table_that_remedy_does_not_change(leaves: bool, kind: str) -> None:
    of, arp = bench(), Dropped((), (), ("arp",))
    _walls.note_stuck(of, Wall("table x", IN, OUT, arp, show="nft list"), reasons(leaves=leaves))
    _walls.note_stuck(of, Wall("table x", show="nft list"), reasons(leaves=leaves))
    title = "table x drops {}; remedy does not change this table"
    assert told(of) == [
        Said(kind, title.format(what), lines, f"{AHEAD} To see all: nft list")
        for what, lines in (
            ("what the cluster's hosts send to this host", SEEN),
            ("what this host sends to the cluster's", SENT),
            ("ARP, without which this host and the cluster's find no way to each other", ("arp",)),
        )
    ]


MAY = "ufw: a rule may drop packets between this host and the cluster's"
ACCEPT = 'If it drops none of them, accept it in remedy.yaml: firewall: {accepted_rules: ["-m é"]}'
DOUBT = Doubt("-m é", ("a rate", "a set"), "-j DROP")


def test_rules_that_cannot_be_judged() -> None:
    of = bench()
    _walls.note_doubts(
        of, Wall("ufw", doubts=(DOUBT, Doubt("-m é")), exhausted=True, show="ufw status")
    )
    assert told(of) == [
        Said("unknown", "ufw has more rules than can be judged", (),
             "See whether they let the cluster's hosts through: ufw status"),
        Said("unknown", MAY, ("-m é", "depends on: a rate, a set", "then: -j DROP"), ACCEPT),
        Said("unknown", MAY, ("-m é",), ACCEPT),
    ]  # fmt: skip
    of = bench()
    _walls.note_doubts(of, Wall("ufw", exhausted=True))
    assert (
        of.findings[0].fix == "See whether they let the cluster's hosts through: nft list ruleset"
    )


@pytest.mark.parametrize(("number", "more"), [(20, ""), (21, "1 rule"), (23, "3 rules")])
def test_twenty_doubts_are_shown(number: int, more: str) -> None:
    of = bench()
    _walls.note_doubts(of, Wall("ufw", doubts=(DOUBT,) * number))
    assert len(of.findings) == 20 + bool(more)
    title = f"ufw: {more} more may drop packets between this host and the cluster's"
    assert [f.title for f in of.findings[20:]] == [title] * bool(more)


@pytest.mark.parametrize(
    ("update", "walls", "is_named"),
    [
        ({"firewalld": "public"}, (), True), ({"firewalld": "public"}, (Wall("ufw"),), True),
        ({"firewalld": "public"}, (Wall("firewalld"),), False), ({"firewalld": None}, (), False),
        ({"firewalld": "public", "nft": Unknown(reason="x")}, (), False),
    ],
)  # fmt: skip
def test_a_firewalld_without_power(
    update: dict[str, Any], walls: tuple[Wall, ...], is_named: bool
) -> None:
    of = bench()
    firewalls: Firewalls = NO_FIREWALL.model_copy(update=update)
    _walls.report_powerless(of, firewalls, walls)
    assert told(of) == [
        Said(
            "report", "firewalld runs, but none of its rules is in force: every port is open to everybody", (),
            "See why: journalctl -u firewalld; its rules come back with: firewall-cmd --reload",
        )
    ] * is_named  # fmt: skip


def test_rules_of_a_firewall_that_is_off() -> None:
    of = bench()
    _walls.note_leftover(of, Wall("ufw", Dropped(words=("1", "2")), Dropped(words=("3", "4"))))
    _walls.note_leftover(of, Wall("ufw"))
    assert told(of) == [
        Said(
            "blocked", "ufw is off, but its rules are in force and keep the cluster's hosts out", ("1", "2",
            "3"),
            "Start ufw and run the command again, or stop it in good order to have its rules removed.",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wall", "now", "ways"),
    [
        (Wall("x"), None, ()), (Wall("x", IN), None, ("in",)), (Wall("x", IN, OUT), None, ("in", "out")),
        (Wall("x", outgoing=OUT), None, ("out",)), (Wall(AT_BOOT), None, ("in", "out")),
        (Wall("x"), Opening(sources=((1, 2),)), ("in",)), (Wall("x"), Opening(targets=((1, 2),)), ("out",)),
        (Wall("x"), Opening(), ("in",)), (Wall("x"), Opening(((1, 2),), (), ((1, 2),)), ("in", "out")),
    ],
)  # fmt: skip
def test_the_ways_in_which_a_firewall_has_rules(
    wall: Wall, now: Opening | None, ways: tuple[str, ...]
) -> None:
    assert _walls.ways_of(wall, now) == ways


# ---- IPv6


@pytest.mark.parametrize(("show", "rest"), [("", ""), ("nft list", " To see all: nft list")])
def test_what_is_said_over_ipv6(show: str, rest: str) -> None:
    state = host_state("a", "10.0.0.1").model_copy(
        update={"names": record(Names, peers={"b": ("fd00::2",)})}
    )
    hosts = fleet(state, host_state("b", "10.0.0.2"))
    of = Workbench(hosts, state, FirewallSpec(), "firewall", "firewall-ports")
    wall = Wall("ufw", IN, OUT, doubts=(DOUBT, Doubt("-m é")), exhausted=True, show=show)
    _walls_ipv6._note_dropped(of, wall, reasons())
    _walls_ipv6._note_doubts(of, wall)
    why = "over IPv6: b resolves to fd00::2 on a"
    through = "Let those addresses through ahead of that rule, or have the names lead to the cluster addresses."
    assert told(of)[:2] == [
        Said("report", f"ufw drops {what} over IPv6", (*lines, why), through + rest)
        for what, lines in (
            ("what the cluster's hosts send to this host", SEEN),
            ("what this host sends to the cluster's", SENT),
        )
    ]
    assert told(of)[2:] == [
        Said(
            "report", "ufw has more rules than can be judged, over IPv6", (),
            f"See whether they let the cluster's hosts through: {show or 'nft list ruleset'}",
        ),
        Said("report", f"{MAY} over IPv6", ("-m é", "depends on: a rate, a set", why), ACCEPT),
        Said("report", f"{MAY} over IPv6", ("-m é", why), ACCEPT),
    ]  # fmt: skip


# ---- switching off


OPEN = "every port of this host is open to everybody"


def walled(**walls: Any) -> HostState:
    state = host_state("a", "10.0.0.1")
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "firewalls": NO_FIREWALL.model_copy(update=walls),
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


def test_ufw_is_switched_off() -> None:
    text = (
        "*filter\n:INPUT DROP [0:0]\n:ufw-user-input - [0:0]\n-A INPUT -j ufw-user-input\nCOMMIT\n"
    )
    plan = planned(
        "firewall", walled(iptables=text, ufw=True), host_state("b", "10.0.0.2"), mode="off"
    )
    assert ("drift", "ufw is on, the spec says off") in [f[:2] for f in said(plan)]
    assert Run(
        "switch ufw off", "high", True, OPEN, "sed -n 's/^ENABLED=//p' /etc/ufw/ufw.conf", "yes", "no",
        "ufw --force disable", "ufw --force enable",
    ) in run(plan)  # fmt: skip
