"""Ports as users write them, sets of ports and addresses, and how they are told."""

from __future__ import annotations

import json

import pytest

from remedy.firewall import spans
from remedy.firewall.ports import FRAMEWORKS, LISTENERS, VERIFICATION, Need, parse_ports
from remedy.firewall.step import Opening


@pytest.mark.parametrize(
    ("text", "ports"),
    [("8000", (8000, 8000)), ("9000-9100", (9000, 9100)), ("1", (1, 1)), ("65535", (65535, 65535)),
     ("1-65535", (1, 65535)), ("7-7", (7, 7))],
)  # fmt: skip
def test_ports_are_one_number_or_a_range(text: str, ports: tuple[int, int]) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["0", "65536", "9-8", "0-5", "1-65536"])
def test_ports_that_there_are_not_are_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(ValueError, match="65535") as caught:
        parse_ports(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["", "ssh", "1-", "-1", "1-x", "x-1", "1-2-3", "1.5", " 1"])
def test_what_is_no_port_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="8000") as caught:
        parse_ports(text)
    assert repr(text) in str(caught.value)


def test_a_need_names_its_ports_once_and_what_they_are_for() -> None:
    assert str(Need(80, 80, "web")) == "80: web"
    assert str(Need(80, 90, "web")) == "80-90: web"
    assert Need(80, 80, "web").fixed


def test_frameworks_need_the_ports_that_their_sources_name() -> None:
    needs = {name: [(need.low, need.high) for need in found] for name, found in FRAMEWORKS.items()}
    assert needs == {
        "torch": [(29500, 29500), (29400, 29400)],
        "mpi": [(22, 22)],
        "paddle": [(35100, 64000), (6070, 6085), (6767, 6767), (8090, 8090)],
        "mindspore": [(8118, 8118), (8118, 12213)],
        "hccl": [(60000, 60031)],
    }
    # Paddle takes any free ports of its range; everything else listens on exactly these. sshd is there anyway.
    needed = [need for found in FRAMEWORKS.values() for need in found]
    assert [n.low for n in needed if not n.fixed and not n.standing] == [35100]
    assert [n.low for n in needed if n.standing] == [22]
    assert all(need.why for found in FRAMEWORKS.values() for need in found)


def test_the_verification_needs_all_its_ports() -> None:
    assert (VERIFICATION.low, VERIFICATION.high) == (29500, 29563)


def test_ranges_that_touch_or_overlap_are_one() -> None:
    assert spans.merge([(5, 6), (1, 2), (3, 3)]) == ((1, 3), (5, 6))
    assert spans.merge([(1, 9), (2, 3), (9, 12)]) == ((1, 12),)
    assert spans.merge([(1, 2), (4, 5)]) == ((1, 2), (4, 5))


def test_networks_are_read_whatever_their_host_bits_and_written_short() -> None:
    found = spans.of_networks(["10.0.0.7/30", "10.0.0.9"])
    assert found == (((10 << 24) + 4, (10 << 24) + 7), ((10 << 24) + 9, (10 << 24) + 9))
    assert [spans.address_text(n) for n in spans.networks(found)] == ["10.0.0.4/30", "10.0.0.9"]
    assert spans.address_ranges(found) == ("10.0.0.4-10.0.0.7", "10.0.0.9")
    assert spans.port_texts(((1, 1), (3, 9)), ":") == ("1", "3:9")
    assert spans.port_texts(((3, 9),), "-") == ("3-9",)


def test_everything_is_every_address_and_every_port() -> None:
    assert spans.of_networks(["0.0.0.0/0"]) == spans.ALL_ADDRESSES
    assert spans.minus(spans.ALL_ADDRESSES, ()) == spans.ALL_ADDRESSES
    assert spans.minus(spans.ALL_PORTS, ((0, 65535),)) == ()
    assert spans.minus((), spans.ALL_PORTS) == ()
    assert spans.minus(spans.ALL_PORTS, ((1, 65534),)) == ((0, 0), (65535, 65535))


def test_an_opening_has_a_digest_of_its_own() -> None:
    a, b = spans.of_networks(["10.0.0.1"]), spans.of_networks(["10.0.0.2"])
    openings = [
        Opening(),
        Opening(a, ((1, 1),)),
        Opening(b, ((1, 1),)),
        Opening(a, ((1, 2),)),
        Opening(a),
    ]
    digests = {opening.incoming.digest for opening in openings}
    assert len(digests) == len(openings)
    assert all(len(digest) == 12 and int(digest, 16) >= 0 for digest in digests)
    assert Opening(a, ((1, 1),)).incoming.digest == Opening(a, ((1, 1),)).incoming.digest


DOCUMENT = json.loads(LISTENERS.read_text(encoding="utf-8"))


def test_what_launchers_were_seen_to_listen_on_is_what_is_opened() -> None:
    """``python -m benchmarks.clients`` measures the rows; what is opened has to hold every port of them."""
    measured = DOCUMENT["measured"]
    assert {row["framework"] for row in measured} >= {"torch", "mpi", "paddle", "mindspore"}
    for row in measured:
        assert row["version"], row["job"]
        assert row["document"].startswith("https://")
        spans = [(one["low"], one["high"]) for one in DOCUMENT["ports"][row["framework"]]]
        spans.append(tuple(row["kernel_range"]))
        ports = [port for host in row["by_host"] for port in host]
        assert ports, row["job"]
        for port in ports:
            assert any(low <= port <= high for low, high in spans), (row["job"], port)


def test_every_port_of_a_launcher_has_its_source() -> None:
    for framework, rows in DOCUMENT["ports"].items():
        assert rows, framework
        for row in rows:
            assert row["source"]
            assert 1 <= row["low"] <= row["high"] <= 65535
            assert not (row["meeting"] and not row["fixed"]), "who meets at a port needs that port"
