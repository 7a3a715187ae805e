"""Connections that are opened while something else is done."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import gevent
import pytest

from remedy.errors import SpecError
from remedy.inventory import Inventory
from remedy.transport import HostEvent, Script
from remedy.transport.connections import Transport
from remedy.transport.reader import load_inventory
from tests.alone import COOPERATIVE

pytestmark = COOPERATIVE


@pytest.fixture
def server() -> socket.socket:
    """Return a socket that listens, and on which nobody says anything."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(20)
    return listening


def inventory_of(folder: Path, port: int) -> Inventory:
    path = folder / "inventory.py"
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": port, "ssh_user": "root"}
    path.write_text(f"hosts = [('gpu01', {data!r})]\n")
    return load_inventory(path)


def test_a_connection_is_opened_while_the_work_goes_on(
    tmp_path: Path, server: socket.socket
) -> None:
    transport = Transport(inventory_of(tmp_path, server.getsockname()[1]))

    callers: list[object] = []
    gevent.spawn(lambda: callers.append(server.accept()))

    def work() -> bool:
        began = time.monotonic()
        while not callers and time.monotonic() - began < 20:
            time.sleep(0.01)
        return bool(callers)

    assert transport.meanwhile(["gpu01"], work)
    server.close()


def test_how_it_went_is_said_once_and_with_the_first_script(
    tmp_path: Path, server: socket.socket
) -> None:
    port = server.getsockname()[1]
    server.close()
    events: list[HostEvent] = []
    transport = Transport(inventory_of(tmp_path, port), listener=events.append)
    transport.meanwhile(["gpu01"], lambda: None)
    assert events == []
    (output,) = transport.run({"gpu01": Script("true", deadline=5)}).values()
    assert output.error is not None
    assert str(port) in output.error.message + output.error.next_step
    assert [event.stage for event in events] == ["connecting", "failed"]
    assert transport.counts == {"connect:gpu01": 1}
    again = transport.run({"gpu01": Script("true", deadline=5)})
    assert again["gpu01"].error is not None
    assert transport.counts["connect:gpu01"] == 2


def test_what_the_work_raises_is_raised_and_not_shown(
    tmp_path: Path, server: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    transport = Transport(inventory_of(tmp_path, server.getsockname()[1]))

    def work() -> None:
        raise SpecError("wrong", next_step="Correct it.")

    with pytest.raises(SpecError, match="wrong"):
        transport.meanwhile(["gpu01"], work)
    assert capfd.readouterr() == ("", "")
    server.close()
