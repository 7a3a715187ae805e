"""Sets of ipset(8): what is in them, and what a rule asks that names one."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.firewall import spans
from remedy.firewall.ipsets import DEEPEST, MOST_ENTRIES, IpSet, condition_of, parse_ipsets
from remedy.firewall.packets import Condition, Either, Test

TWO = spans.of_networks(["10.0.0.2"])
NINE = spans.of_networks(["10.0.0.9"])


def asked(
    text: str | None,
    name: str = "s",
    sides: str = "src",
    *,
    negated: bool = False,
    family: str = "inet",
) -> Test:
    sets = None if text is None else parse_ipsets(text)
    return condition_of(sets, name, sides, negated=negated, family=family)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create s hash:ip", IpSet(("address",))),
        ("create s hash:net family inet6", IpSet(("address",), family="inet6")),
        ("create s hash:ip hashsize 8 family inet6 maxelem 9", IpSet(("address",), family="inet6")),
        ("create s hash:ip family", IpSet(("address",))),
        ("create s hash:ip,port,net", IpSet(("address", "port", "address"))),
        ("create s bitmap:port range 0-9", IpSet(("port",))),
        ("create s hash:mac", IpSet(("",), readable=False)),
        ("create s hash:net,iface", IpSet(("address", ""), readable=False)),
        ("create s list:set size 8\nadd s one\nadd s two", IpSet((), ("one", "two"))),
        ("create s hash:ip\nadd s 10.0.0.2\nadd t 10.0.0.3", IpSet(("address",), ("10.0.0.2",))),
        ("create s hash:ip\nadd s 10.0.0.2 timeout 5", IpSet(("address",), ("10.0.0.2",), expires=True)),
        ("create s hash:ip\nadd s 10.0.0.2 timeout 0", IpSet(("address",), ("10.0.0.2",))),
        ("create s hash:ip\nadd s 10.0.0.2 timeout", IpSet(("address",), ("10.0.0.2",))),
        ("create s hash:ip timeout 9\nadd s 10.0.0.2 packets 0", IpSet(("address",), ("10.0.0.2",))),
        ("create s hash:net\nadd s 10.0.0.2 nomatch", IpSet(("address",), ("10.0.0.2",), readable=False)),
        ("create s hash:net\nadd s nomatch", IpSet(("address",), ("nomatch",))),
        ("create s hash:ip\nadd s", IpSet(("address",))),
        ("create s hash:ip\ndel s 10.0.0.2", IpSet(("address",))),
    ],
)  # fmt: skip
def test_a_set_is_read_from_its_lines(text: str, expected: IpSet) -> None:
    assert parse_ipsets(text) == {"s": expected}


def test_lines_of_no_set_make_none() -> None:
    assert parse_ipsets("create s\nadd s 10.0.0.2\nCOMMIT\n\n") == {}


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_a_set_of_too_many_entries_is_not_read(more: int, is_read: bool) -> None:
    lines = "add s 10.0.0.2\n" * (MOST_ENTRIES + more)
    assert parse_ipsets(f"create s hash:ip\n{lines}")["s"].readable is is_read


PAIRS = (
    "create s hash:ip,port\nadd s 10.0.0.2,tcp:22\nadd s 10.0.0.9,udp:53\nadd s 10.0.0.9,6:80-90\n"
)


@pytest.mark.parametrize(
    ("text", "sides", "expected"),
    [
        ("create s hash:ip\nadd s 10.0.0.2\nadd s 10.0.0.9", "src", Condition("saddr", (*TWO, *NINE))),
        ("create s hash:ip\nadd s 10.0.0.2", "dst", Condition("daddr", TWO)),
        ("create s hash:ip\nadd s 10.0.0.2-10.0.0.3", "src", Condition("saddr", ((TWO[0][0], TWO[0][0] + 1),))),
        ("create s bitmap:port\nadd s 22\nadd s 80-90", "src", Condition("sport", ((22, 22), (80, 90)))),
        ("create s bitmap:port\nadd s 22", "dst", Condition("dport", ((22, 22),))),
        ("create s hash:ip\nadd s nonsense\nadd s 10.0.0.2", "src", Condition("saddr", TWO)),
        ("create s hash:ip\nadd s 10.0.0.2", "src,dst", Condition("saddr", TWO)),
        (PAIRS, "src,dst", Either((
            (Condition("saddr", TWO), Condition("dport", ((22, 22),))),
            (Condition("saddr", NINE), Condition("dport", ((80, 90),))),
        ))),
        (PAIRS, "dst,src", Either((
            (Condition("daddr", TWO), Condition("sport", ((22, 22),))),
            (Condition("daddr", NINE), Condition("sport", ((80, 90),))),
        ))),
        ("create s hash:ip,port\nadd s 10.0.0.2", "src,dst", Either(())),
    ],
)  # fmt: skip
def test_a_packet_is_in_a_set_by_its_side(text: str, sides: str, expected: Any) -> None:
    assert asked(text, sides=sides) == expected
    negated = asked(text, sides=sides, negated=True)
    assert (type(negated), negated.negated) == (type(expected), True)


NOT_KNOWN = Condition("the ipset s", None)


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        (None, "src"),
        ("create t hash:ip", "src"),
        ("create s hash:mac", "src"),
        (PAIRS, "src"),
        ("create s list:set\nadd s gone", "src"),
        ("create s list:set\nadd s ok\nadd s gone\ncreate ok hash:ip", "src"),
    ],
)
def test_a_set_that_cannot_be_read_has_no_answer(text: str | None, sides: str) -> None:
    assert asked(text, sides=sides) == NOT_KNOWN
    assert asked(text, sides=sides, negated=True) == Condition("the ipset s", None, True)


def test_a_set_of_another_family_holds_no_packet() -> None:
    six = "create s hash:ip family inet6\nadd s fd00::2\n"
    assert asked(six) == Condition("l4proto", frozenset())
    assert asked(six, family="inet6") == Condition("saddr", ((0xFD << 120 | 2, 0xFD << 120 | 2),))
    assert asked("create s hash:ip\n", family="inet6") == Condition("l4proto", frozenset())
    ports = "create s bitmap:port\nadd s 22\n"
    assert asked(ports, sides="dst", family="inet6") == Condition("dport", ((22, 22),))


def test_a_set_of_sets_holds_what_each_of_them_holds() -> None:
    text = "create a hash:ip\nadd a 10.0.0.2\ncreate b hash:ip family inet6\nadd b fd00::2\n"
    text += f"{PAIRS.replace(' s ', ' c ')}create s list:set\nadd s a\nadd s b\nadd s c\n"
    found = asked(text, sides="src,dst")
    assert isinstance(found, Either)
    assert found.alternatives[:2] == (
        (Condition("saddr", TWO),),
        (Condition("l4proto", frozenset()),),
    )
    assert len(found.alternatives) == 4
    six = asked(text, sides="src,dst", family="inet6")
    assert isinstance(six, Either)
    assert six.alternatives[0] == (Condition("l4proto", frozenset()),)


@pytest.mark.parametrize(("lists", "is_read"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_sets_of_sets_are_followed_only_so_deep(lists: int, is_read: bool) -> None:
    assert DEEPEST == 3
    text = "create l0 hash:ip\nadd l0 10.0.0.2\n"
    text += "".join(f"create l{n} list:set\nadd l{n} l{n - 1}\n" for n in range(1, lists + 1))
    found = asked(text, f"l{lists}")
    assert found == (
        Either(((Condition("saddr", TWO),),)) if is_read else Condition(f"the ipset l{lists}", None)
    )
