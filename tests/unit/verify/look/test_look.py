"""A close look: what a host prints is read, compared with the others, and shown; hostile text stays text."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remedy.transport import Output
from remedy.verify.look.compare import compare
from remedy.verify.look.reading import Look, new_nonce, read, script

NONCE = "0123456789abcdef"
NAMES = {"gpu01": "gpu01", "10.0.0.1": "gpu01", "gpu02": "gpu02", "10.0.0.2": "gpu02"}
RULE = "iifname != lo tcp dport 1024-65535 counter packets {} bytes 60 drop"
SAVED = "[{}:60] -A INPUT -p tcp -m length --length 1200:65535 -j DROP"


def look(host: str, **lines: tuple[str, ...]) -> Look:
    return Look(host=host, lines=lines)


def nft(packets: int) -> tuple[str, ...]:
    return ("table inet odd {", "chain input {", RULE.format(packets), "}", "}")


def test_a_rule_whose_counter_moves_is_shown_with_its_chain() -> None:
    before = look("gpu01", nft=nft(3), count=("IpExt.InNoRoutes 0", "Tcp.OutRsts 1"))
    after = look("gpu01", nft=nft(9), count=("IpExt.InNoRoutes 2", "Tcp.OutRsts 7"))
    (view,) = compare([before], {"gpu01": after}, NAMES)
    rule, number = view.moved
    assert rule == "nft inet odd input: iifname != lo tcp dport 1024-65535 counter drop: 6 more"
    assert number == "IpExt.InNoRoutes: 2 more"


@pytest.mark.parametrize(
    ("section", "before", "after", "word"),
    [
        (
            "iptables",
            ("*filter", SAVED.format(1)),
            ("*filter", SAVED.format(4)),
            "--length 1200:65535",
        ),
        ("iptables", (":INPUT DROP [1:60]",), (":INPUT DROP [4:60]",), "policy of INPUT DROP"),
        (
            "queue",
            ("qdisc netem 8001: root", "Sent 10 bytes 1 pkt (dropped 2, overlimits 0 requeues 0)"),
            ("qdisc netem 8001: root", "Sent 10 bytes 1 pkt (dropped 5, overlimits 0 requeues 0)"),
            "netem",
        ),
    ],
)
def test_everything_that_counts_is_compared(
    section: str, before: tuple[str, ...], after: tuple[str, ...], word: str
) -> None:
    (view,) = compare(
        [look("gpu01", **{section: before})], {"gpu01": look("gpu01", **{section: after})}, {}
    )
    (moved,) = view.moved
    assert word in moved
    assert moved.endswith(": 3 more")


def test_what_only_one_host_has_is_shown_there_and_names_and_interfaces_are_no_difference() -> None:
    first = look(
        "gpu01",
        interface=("eno1",),
        route=("10.0.0.0/24 dev eno1 src 10.0.0.1", "unreachable 10.0.0.2"),
        sysctl=("/proc/sys/net/ipv4/conf/eno1/arp_ignore:8",),
        file=("/etc/ld.so.preload 12 4", "/etc/hosts 3 4"),
    )
    second = look(
        "gpu02",
        interface=("enp2s0",),
        route=("10.0.0.0/24 dev enp2s0 src 10.0.0.2",),
        sysctl=("/proc/sys/net/ipv4/conf/enp2s0/arp_ignore:0",),
        file=("/etc/hosts 3 4",),
    )
    one, two = compare([first, second], {}, NAMES)
    assert one.differs == (
        "routes, here only: unreachable 10.0.0.2",
        "settings of the kernel, here only: /proc/sys/net/ipv4/conf/eno1/arp_ignore:8",
        "files that differ: /etc/ld.so.preload",
    )
    assert not any("route" in line for line in two.differs)


def test_what_all_others_have_is_missing_here() -> None:
    route = ("default via 10.0.0.254",)
    looks = [
        look("a", limit=("x",)),
        look("b", route=route, limit=("x",)),
        look("c", route=route, limit=("x",)),
    ]
    views = compare(looks, {}, {})
    assert views[0].differs == ("routes, not here: default via 10.0.0.254",)
    assert views[1].empty
    assert views[2].empty


def test_words_of_a_broken_interpreter_are_shown() -> None:
    said = "/usr/bin/python3 -c pass: ended with 134; File sitecustomize.py, line 1 in <module>"
    (view,) = compare(
        [look("a", python=(said, "/usr/bin/python3 -I -S -c pass: ended with 0"))], {}, {}
    )
    assert view.says == (said,)


def test_secrets_are_not_shown() -> None:
    lines = ("HF_TOKEN=abc", "http_proxy=http://me:abc@proxy:1", "NCCL_DEBUG=INFO")
    text = "".join(f"{NONCE} environment {line}\n" for line in lines) + f"{NONCE} end of look\n"
    seen = read("a", NONCE, Output("a", stdout=text))
    assert seen.failure == ""
    assert seen.lines["environment"] == (
        "HF_TOKEN=***",
        "http_proxy=http://me:***@proxy:1",
        "NCCL_DEBUG=INFO",
    )


@given(st.text(max_size=400))
@example("²")
def test_what_a_host_prints_is_bounded_and_never_raises(text: str) -> None:
    output = Output("a", stdout=f"{NONCE} nft {text}\n{NONCE} count {text}\n")
    seen = read("a", NONCE, output)
    assert seen.failure  # there was no end
    assert all(
        len(line) <= 240 and line.isprintable() for lines in seen.lines.values() for line in lines
    )
    compare([seen], {"a": seen}, {})


@pytest.mark.parametrize("again", [False, True])
def test_the_text_comes_to_its_end_on_this_machine(again: bool) -> None:
    nonce = new_nonce()
    text = script(nonce, "127.0.0.1", ["127.0.0.1"], "/nonexistent '; false", again=again)
    done = subprocess.run(
        ["/bin/sh", "-s"], input=text, capture_output=True, text=True, check=False, timeout=120
    )
    seen = read("a", nonce, Output("a", stdout=done.stdout, stderr=done.stderr))
    assert seen.failure == ""
    assert "Ip.InHdrErrors" in seen.counts
    assert ("limit" in seen.lines) is not again
