"""A relay of a test's own, with ssh that goes nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import remedy
from remedy.text import expand
from remedy.transport.gateways.wire import (
    EventReader,
    TreeEvent,
    TreeRequest,
    TreeSettings,
    pack_request,
    pack_settings,
)
from tests.unit.transport.gateways import fake_ssh

ROOT = "controller"


@dataclass
class Heard:
    """What a relay told.

    Args:
        events: all of it.
    """

    events: list[TreeEvent] = field(default_factory=list)

    def output(self, host: str, stream: str = "out") -> bytes:
        """Return what a host printed."""
        said = (e.content for e in self.events if e.kind == stream and host in e.hosts)
        return b"".join(said)

    def codes(self, host: str) -> list[int]:
        """Return the ends of a host's scripts."""
        return [e.code for e in self.events if e.kind == "end" and host in e.hosts]

    @property
    def lost(self) -> dict[str, str]:
        """The hosts that were lost, each with the gateway that it was lost through, if it had begun."""
        return {h: e.gateway for e in self.events if e.kind == "lost" for h in e.hosts}

    @property
    def faults(self) -> dict[str, str]:
        """Why gateways were given up."""
        return {e.gateway: e.text for e in self.events if e.kind == "gateway"}

    @property
    def ways(self) -> dict[str, list[str]]:
        """The gateways that each host was sent through, in order."""
        ways: defaultdict[str, list[str]] = defaultdict(list)
        for event in self.events:
            for host in event.hosts if event.kind == "route" else ():
                ways[host].append(event.gateway)
        return ways


class Relay:
    """A relay that carries requests out.

    Args:
        folder: of the fake ssh.
        routes: as in a topology file, without the root's.
        gateways: those that are reached from here.
        requests: what is asked.
        setup: seconds for a gateway to be ready.
    """

    def __init__(
        self,
        folder: Path,
        routes: Mapping[str, str],
        gateways: Iterable[str],
        requests: Iterable[TreeRequest],
        setup: float = 30,
    ) -> None:
        names = list(gateways)
        lines = [f"{ROOT}: {','.join(names)}", *(f"{a}: {b}" for a, b in routes.items())]
        doors = {name: (name,) for name in names}
        topology = "\n".join(["[routes]", *lines, ""])
        environment = {
            **fake_ssh.install(folder),
            "PYTHONPATH": str(Path(remedy.__file__).parents[1]),
        }
        # A pipe of its own: where sockets give way to each other, those of subprocess do, too.
        self._source, sink = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "remedy.transport.gateways.relay"],
            stdin=subprocess.PIPE,
            stdout=sink,
            env=environment,
        )
        os.close(sink)
        inner = [name for ends in routes for name in expand(ends) if name not in names]
        settings = TreeSettings(
            topology, ROOT, doors, python=sys.executable, setup=setup, inner=inner
        )
        asked = list(requests)
        self._open = {request.id for request in asked}
        assert self._process.stdin is not None
        self._process.stdin.write(pack_settings(settings) + b"".join(map(pack_request, asked)))
        self._process.stdin.flush()

    def hear(self) -> Heard:
        """Return what it told until all requests were over."""
        heard, reader = Heard(), EventReader()
        while self._open:
            chunk = os.read(self._source, 1 << 16)
            assert chunk, "the relay ended"
            for event in reader.feed(chunk):
                heard.events.append(event)
                if event.kind == "over":
                    self._open.discard(event.request)
        assert self._process.stdin is not None
        self._process.stdin.close()
        os.close(self._source)
        assert self._process.wait(30) == 0
        return heard


def hear(
    folder: Path,
    routes: Mapping[str, str],
    gateways: Iterable[str],
    requests: Iterable[TreeRequest],
    setup: float = 30,
) -> Heard:
    """Have a relay carry requests out, and return what it told until all were over."""
    return Relay(folder, routes, gateways, requests, setup).hear()


def request(number: int, hosts: Iterable[str], text: str, *, grooming: float = 0.25) -> TreeRequest:
    """Return a request that runs a text of the shell."""
    return TreeRequest(number, tuple(hosts), "sh -s", text, 60, 64, grooming)
