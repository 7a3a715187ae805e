"""The process that speaks with gateways: ClusterShell's Task, fed by remedy and telling it what comes.

    python -m remedy.transport.gateways.relay

Its input is a line of settings and a line for each request, its output events (``wire``). It is a process of
its own, because ClusterShell's engine forks and waits by itself, and so that what a gateway can make it do ends
there: it holds no inventory and no plan, its memory is bounded, and nothing in it unpickles. It ends with its
input.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import ClusterShell.Task
from ClusterShell import Communication
from ClusterShell.Event import EventHandler
from ClusterShell.Topology import TopologyParser
from ClusterShell.Worker.Worker import StreamWorker

from remedy.transport.gateways.channel import DoorClient, DoorWorker, GatewayChannel
from remedy.transport.gateways.decoder import output_of
from remedy.transport.gateways.options import PLAIN
from remedy.transport.gateways.wire import (
    TreeEvent,
    TreeRequest,
    TreeSettings,
    pack_event,
    unpack_line,
    unpack_settings,
)
from remedy.transport.gateways.worker import ScriptWorker

TICK = 1.0
SIGNS = 3
"""Questions without an answer after which ssh gives a connection up (ssh_config(5), ServerAliveCountMax)."""


class Relay:
    """What remedy asks, and what becomes of it.

    Args:
        out: where events go.
    """

    def __init__(self, out: BinaryIO) -> None:
        self.settings = TreeSettings("", "", {})
        self.dead: set[str] = set()
        self.inner: frozenset[str] = frozenset()
        self._out = out
        self._workers: dict[int, ScriptWorker] = {}
        self._ended: list[ScriptWorker] = []
        self._task = ClusterShell.Task.task_self()

    def tell(self, event: TreeEvent) -> None:
        """Tell remedy something; this waits where it has not read what was told before."""
        self._out.write(pack_event(event))
        self._out.flush()

    def configure(self, settings: TreeSettings) -> None:
        """Take the settings, before the first request."""
        self.settings = settings
        resource.setrlimit(resource.RLIMIT_AS, (settings.memory, settings.memory))
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(settings.topology)
            file.flush()
            self._task.topology = TopologyParser(file.name).tree(settings.root)
        self.inner = frozenset(settings.inner)
        alive = max(1, round(settings.silence / SIGNS))
        signs = (f"-oServerAliveInterval={alive}", f"-oServerAliveCountMax={SIGNS}")
        DoorClient.doors = {name: list(words) for name, words in settings.doors.items()}
        DoorClient.options = (*PLAIN, *signs, f"-oConnectTimeout={settings.connect:.0f}")
        # What gateways connect to hosts with: they take it over with each command.
        self._task.set_info("ssh_options", " ".join((*PLAIN, *signs, f"-oPort={settings.port}")))
        self._task.set_info("connect_timeout", settings.connect)
        if settings.user:
            self._task.set_info("ssh_user", settings.user)

    def start(self, request: TreeRequest) -> None:
        """Begin a request."""
        worker = self._workers[request.id] = ScriptWorker(request, self)
        self._task.schedule(worker)

    def stop(self, request: int) -> None:
        """End a request: gateways end what they still run for it, when no other needs them."""
        worker = self._workers.get(request)
        if worker is not None:
            worker.abort()

    def over(self, worker: ScriptWorker) -> None:
        """Take note that nothing of a request is left."""
        if not worker.is_over:
            worker.is_over = True
            self._workers.pop(worker.request.id, None)
            self._ended.append(worker)
            self.tell(TreeEvent("over", worker.request.id))

    def gateway_failed(self, gateway: str, reason: str, code: int) -> None:
        """Take note of a gateway that is of no use any more."""
        self.dead.add(gateway)
        self.tell(TreeEvent("gateway", gateway=gateway, text=reason, code=code))

    def tick(self) -> None:
        """Give up gateways that are not ready in time, and let go of what has ended.

        A tick counts as a second, however long this process was kept from it.
        """
        for worker, _ in list(self._task.gateways.values()):
            channel = worker.eh
            channel.age += TICK
            if not channel.setup and channel.age > self.settings.setup:
                channel.fail(f"it was not ready within {self.settings.setup:.0f} s")
        ended, self._ended = self._ended, []
        for worker in ended:
            self._task.remove_port(worker._port)


class _Input(EventHandler):  # type: ignore[misc]
    """Reads what remedy asks; ends the process at its end."""

    def __init__(self, relay: Relay, end: Callable[[], None]) -> None:
        self._relay = relay
        self._end = end
        self._is_configured = False

    def ev_read(self, worker: Any, node: Any, sname: str, msg: bytes) -> None:  # noqa: ARG002
        if not self._is_configured:
            self._is_configured = True
            self._relay.configure(unpack_settings(msg))
            return
        asked = unpack_line(msg)
        if isinstance(asked, int):
            self._relay.stop(asked)
        else:
            self._relay.start(asked)

    def ev_close(self, worker: Any, timedout: bool) -> None:  # noqa: ARG002
        self._end()


class _Clock(EventHandler):  # type: ignore[misc]
    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick

    def ev_timer(self, timer: Any) -> None:  # noqa: ARG002
        self._tick()


class _WritesOnly:
    """What is left of pickle for ClusterShell: it writes what gateways read."""

    def __init__(self, module: Any) -> None:
        self.dumps = module.dumps
        self.UnpicklingError = module.UnpicklingError


def harden(relay: Relay) -> None:
    """Have ClusterShell use channels that believe little, and unpickle nothing.

    Raises:
        AttributeError: this ClusterShell has no such parts.
    """
    for module, name, ours in (
        (Communication, "cPickle", _WritesOnly(Communication.cPickle)),
        (Communication.Message, "data_decode", lambda message: output_of(message.data)),
        (ClusterShell.Task, "PropagationChannel", partial(GatewayChannel, relay)),
    ):
        getattr(module, name)
        setattr(module, name, ours)


def main() -> None:
    """Serve requests until the input ends."""
    logging.disable(logging.CRITICAL)
    for name in [name for name in os.environ if name.startswith("CLUSTERSHELL_")]:
        del os.environ[name]
    task = ClusterShell.Task.task_self()
    relay = Relay(sys.stdout.buffer)
    harden(relay)
    task.set_default("stdout_msgtree", False)
    task.set_default("stderr_msgtree", False)
    task.set_default("distant_worker", DoorWorker)
    worker = StreamWorker(handler=_Input(relay, task.abort))
    worker.set_reader("requests", sys.stdin.fileno(), closefd=False)
    task.schedule(worker)
    task.timer(TICK, _Clock(relay.tick), interval=TICK, autoclose=True)
    task.resume()


if __name__ == "__main__":
    main()
