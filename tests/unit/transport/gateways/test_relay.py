"""The relay with gateways of ClusterShell's own: input arrives, also where a gateway takes over for another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.transport.gateways.channel import DoorClient
from tests.unit.transport.gateways import fake_ssh
from tests.unit.transport.gateways.relay_bench import hear, request

HOSTS = [f"h{number}" for number in range(1, 7)]
ROUTES = {"gw[1-2]": "h[1-6]"}
SAYS = "cat <<'X'\nnumber {}\nX\necho here is $HERE; exit {}\n"


def test_each_host_gets_the_input_of_its_own_request(tmp_path: Path) -> None:
    requests = [
        request(number, HOSTS[number % 6 :], SAYS.format(number, number), grooming=grooming)
        for number, grooming in enumerate([0.25, 0, 0.25, 0], 1)
    ]
    heard = hear(tmp_path, ROUTES, ["gw1", "gw2"], requests)
    for each in requests:
        for host in each.hosts:
            said = b"".join(
                e.content
                for e in heard.events
                if e.kind == "out" and e.request == each.id and host in e.hosts
            )
            assert said == f"number {each.id}\nhere is {host}\n".encode()
    assert sorted(heard.codes("h6")) == [1, 2, 3, 4]
    assert {way for ways in heard.ways.values() for way in ways} == {"gw1", "gw2"}


def test_hosts_of_a_gateway_that_is_dead_move_to_another_with_their_input(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "gw1", "echo 'ssh: no route' >&2; exit 255")
    requests = [request(1, HOSTS, SAYS.format(1, 1)), request(2, ["h1"], SAYS.format(2, 2))]
    heard = hear(tmp_path, ROUTES, ["gw1", "gw2"], requests)
    assert heard.faults == {"gw1": "no connection, or it broke: ssh: no route"}
    assert not heard.lost
    assert all(ways[-1] == "gw2" for ways in heard.ways.values())
    assert heard.output("h5") == b"number 1\nhere is h5\n"
    assert sorted(heard.codes("h1")) == [1, 2]


def test_without_a_gateway_that_is_left_hosts_are_lost_and_others_are_not(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "gw1", "exit 255")
    fake_ssh.put(tmp_path, "gw2", "exec python3 -m ClusterShell_is_not_here_ClusterShell")
    routes = {**ROUTES, "gw3": "other"}
    asked = [request(1, [*HOSTS, "other"], SAYS.format(1, 0))]
    heard = hear(tmp_path, routes, ["gw1", "gw2", "gw3"], asked)
    assert heard.lost == dict.fromkeys(HOSTS, "")
    assert heard.codes("other") == [0]
    assert "it has no ClusterShell for" in heard.faults["gw2"]


def test_a_gateway_reaches_hosts_through_another(tmp_path: Path) -> None:
    heard = hear(
        tmp_path,
        {"gw1": "inner", "inner": "h[1-2]"},
        ["gw1"],
        [request(1, ["h1", "h2"], SAYS.format(1, 5))],
    )
    assert heard.output("h2") == b"number 1\nhere is h2\n"
    assert (heard.codes("h1"), heard.codes("h2")) == ([5], [5])
    assert set(fake_ssh.calls(tmp_path)) == {"gw1", "inner", "h1", "h2"}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_of_a_gateway_are_whole_however_they_come(size: int) -> None:
    text = b"one\r\n\ntwo\rthree\n" + b"x" * 50 + b"\nrest"
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    client: Any = SimpleNamespace(
        streams={"out": SimpleNamespace(rbuf=b"")}, _read=lambda _: chunks.pop(0)
    )
    lines: list[bytes] = []
    while chunks:
        lines += DoorClient._readlines(client, "out")
    assert lines == [b"one", b"", b"two\rthree", b"x" * 50]
    assert client.streams["out"].rbuf == b"rest"
