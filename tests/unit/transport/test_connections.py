"""Connections at rest: only so many are kept, they cost no work, and none is closed that is in use."""

from __future__ import annotations

from tests.unit.transport.process_bench import in_a_process

TRANSPORT = """
import pathlib, types, gevent
from remedy.transport import connections
from remedy.transport.reader import load_inventory
from remedy.transport.script import Output, Script
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __import__("tempfile").mkdtemp())
names = [f"h{n:03}" for n in range(300)]
(folder / "inventory.py").write_text(f"hosts = {names!r}")
transport = connections.Transport(load_inventory(folder / "inventory.py"))
closed = []
host = transport._state.inventory.get_host
class Client:
    def __init__(self, name): self.name = name
    def close(self): closed.append(self.name)
def run(name, scripts, stage):
    host(name).connected = True
    host(name).connector.client = Client(name)
    gevent.sleep(scripts[name].deadline)
    return Output(name)
transport._run_on = run
"""


def test_of_many_connections_at_rest_the_oldest_are_closed() -> None:
    shown = in_a_process(
        TRANSPORT
        + "transport.run(dict.fromkeys(names, Script('', 0)))\n"
        + "open_ = [n for n in names if host(n).connected]\n"
        + "print(connections.MOST_AT_REST == len(open_), closed == names[:300 - len(open_)])\n"
        + "transport.run({names[0]: Script('', 0)})\n"
        + "print(host(names[0]).connected, len([n for n in names if host(n).connected]) == len(open_))"
    )
    assert shown == "True True\nTrue True\n"


def test_a_host_is_made_ready_by_as_many_calls_in_a_larger_fleet() -> None:
    shown = in_a_process(
        TRANSPORT
        + "from tests.unit.growth import calls\n"
        + "def of_host(count):\n"
        + "    (folder / 'inventory.py').write_text(f'hosts = {names[:count]!r}')\n"
        + "    inventory = load_inventory(folder / 'inventory.py')\n"
        + "    return calls(lambda: connections.Transport(inventory)) / count\n"
        + "print(of_host(300) < 1.1 * of_host(100))"
    )
    assert shown == "True\n"


def test_a_connection_that_is_in_use_is_not_closed() -> None:
    shown = in_a_process(
        TRANSPORT
        + "long = gevent.spawn(transport.run, {'h000': Script('', 2)})\n"
        + "gevent.sleep(0)\n"
        + "transport.run({'h000': Script('', 0)})\n"  # the same host, meanwhile
        + "transport.run(dict.fromkeys(names[1:], Script('', 0)))\n"
        + "print('h000' in closed)\n"
        + "long.get()\n"
        + "print(host('h000').connected)"
    )
    assert shown == "False\nTrue\n"


def test_a_connection_at_rest_does_not_wake_up_and_closing_it_ends_it() -> None:
    """paramiko looks ten times a second whether a connection was closed; with thousands that is all it does."""
    shown = in_a_process(
        "import gevent, socket, paramiko\n"
        "from remedy.transport.hostkeys import KeyExchange\n"
        "here, there = socket.socketpair()\n"
        "transport = KeyExchange(here, algorithms=('ssh-ed25519',))\n"
        "print(here.gettimeout())\n"
        "transport.start()\n"
        "gevent.sleep(0.3)\n"
        "print(transport.is_alive())\n"
        "transport.active = True\n"
        "transport.close()\n"
        "gevent.sleep(0.1)\n"
        "print(transport.is_alive())\n"
        "here, there = socket.socketpair()\n"
        "alive = KeyExchange(here, algorithms=('ssh-ed25519',))\n"
        "alive.set_keepalive(30)\n"
        "print(here.gettimeout())"
    )
    assert shown == "None\nTrue\nFalse\n15.0\n"


def test_a_fleet_may_have_a_connection_to_each_host_as_far_as_the_machine_allows() -> None:
    shown = in_a_process(
        "import resource\n"
        "from remedy.transport.connections import allow_files\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 2000))\n"
        "for hosts in (8, 600, 4, 10_000):\n"
        "    allow_files(hosts)\n"
        "    print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    assert shown == "(272, 2000)\n(1456, 2000)\n(1456, 2000)\n(2000, 2000)\n"
