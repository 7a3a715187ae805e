"""What is said of firewalls where hosts of the cluster talk over IPv6, or could. Not a remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remedy.deploys._ipv6 import ipv6_peers, note
from remedy.deploys._packets import path_of
from remedy.deploys._walls import MOST_DOUBTS, Reasons, accept, evidence_of, look
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.walls import Wall
from remedy.firewall.walls_ipv6 import unknown_ipv6, walls_of_ipv6
from remedy.plan import Workbench
from remedy.probe import Firewalls


def note_walls_of_ipv6(
    bench: Workbench[Any], firewalls: Firewalls, question: PacketQuestion, reasons: Reasons
) -> None:
    """Say what firewalls drop, or may drop, of packets of IPv6 between a host and its peers.

    Args:
        bench: with the host.
        firewalls: its rules.
        question: what is asked of them about packets of IPv4; ports and accepted rules are the same.
        reasons: what the ports are needed for.
    """
    known = ipv6_peers(bench.fleet)
    peers, own = known.of_peers(bench.host.host), known.address_of(bench.host)
    if not peers or own is None:
        return
    if known.used:
        for name, reason in unknown_ipv6(firewalls):
            bench.unknown(f"could not read what {name} lets in", reason)
    traffic = replace(question.traffic, peers=peers)
    asked = PacketQuestion(traffic, path_of(bench.host, own, peers), question.accepted)
    for wall in walls_of_ipv6(bench.host, firewalls, asked):
        _note_dropped(bench, wall, reasons)
        _note_doubts(bench, wall)


def _note_dropped(bench: Workbench[Any], wall: Wall, reasons: Reasons) -> None:
    fix = "Let those addresses through ahead of that rule, or have the names lead to the cluster addresses."
    if wall.show:
        fix = f"{fix} To see all: {wall.show}"
    for dropped, what, needed in (
        (wall.incoming, "what the cluster's hosts send to this host", reasons.at_this_host),
        (wall.outgoing, "what this host sends to the cluster's", reasons.in_fleet),
        (wall.arp, "neighbour discovery (ICMPv6), without which hosts do not find each other", ()),
    ):
        if dropped and not (dropped is wall.arp and (wall.incoming or wall.outgoing)):
            note(bench, f"{wall.name} drops {what}", evidence_of(dropped, needed), fix)


def _note_doubts(bench: Workbench[Any], wall: Wall) -> None:
    known = ipv6_peers(bench.fleet)
    say = bench.unknown if known.used else bench.report
    if wall.exhausted:
        say(f"{wall.name} has more rules than can be judged, over IPv6", fix=look(wall))
    for doubt in wall.doubts[:MOST_DOUBTS]:
        title = (
            f"{wall.name}: a rule may drop packets between this host and the cluster's over IPv6"
        )
        reason = [f"depends on: {', '.join(doubt.unread)}"] if doubt.unread else []
        say(title, (doubt.words, *reason, f"over IPv6: {known.why}"), accept(doubt))
