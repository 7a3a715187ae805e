"""One script on many hosts, through the gateways to them: ClusterShell's ``TreeWorker``."""

from __future__ import annotations

from typing import Any

from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from ClusterShell.Worker.Tree import TreeWorker

from remedy.transport.gateways.listener import TreeListener
from remedy.transport.gateways.wire import TreeEvent, TreeRequest


class _End(EventHandler):  # type: ignore[misc]
    """Hears when a worker is through."""

    def ev_close(self, worker: ScriptWorker, timedout: bool) -> None:  # noqa: ARG002
        worker.relay.over(worker)

    def _ev_routing(self, worker: ScriptWorker, arg: Any) -> None:
        """Take no note: hosts that move are told when they are asked anew."""


class ScriptWorker(TreeWorker):  # type: ignore[misc]
    """Runs the script of one request.

    A gateway has one place for the worker that input goes to, the last one (``GatewayChannel.recv_ctl``). So
    the command, the input and its end are sent at once, to each gateway by itself; also to one that takes over
    for another, which ClusterShell would leave without input.

    Args:
        request: what to run, and where.
        relay: hears of all.
    """

    def __init__(self, request: TreeRequest, relay: TreeListener) -> None:
        hosts = NodeSet.fromlist(request.hosts, resolver=RESOLVER_NOGROUP)
        super().__init__(hosts, _End(), request.seconds, command=request.line, stderr=True)
        self.request = request
        self.relay = relay
        self.asked: dict[str, set[str]] = {}
        self.is_over = False
        self._text = request.text.encode("utf-8", "surrogateescape")
        # A log in /tmp would be a file of a foreseeable name in a folder of everybody's.
        self.invoke_gateway = (
            f"env CLUSTERSHELL_GW_LOG_DIR=/dev/null {relay.settings.python} "
            "-m ClusterShell.Gateway -Bu"
        )

    def _tell(self, kind: str, hosts: Any, gateway: str = "", **more: Any) -> None:
        self.relay.tell(TreeEvent(kind, self.request.id, tuple(hosts), gateway, **more))

    # -- the way there --------------------------------------------------------------------------------

    def _launch(self, nodes: NodeSet) -> None:
        """Send hosts their script by gateways that are left; those without one are lost."""
        lost = NodeSet()
        for network, gateways in self.router.table:
            if all(str(gateway) in self.relay.dead for gateway in gateways):
                lost.update(network & nodes)
        if lost:
            self._target_count += len(lost)
            self._close_count += len(lost)
            self._tell("lost", lost)
        rest = nodes - lost
        if rest:
            super()._launch(rest)
        else:
            self._check_fini()

    def _execute_remote(self, cmd: str, targets: NodeSet, gateway: Any, timeout: float) -> None:
        name = str(gateway)
        self.asked.setdefault(name, set()).update(targets)
        self._tell("route", targets, name)
        self.task.set_info("fanout", self.request.fanout)
        self.task.set_info("grooming_delay", self.request.grooming)
        super()._execute_remote(cmd, targets, gateway, timeout)
        channel = self.task._pchannel(gateway, self)
        channel.write(nodes=(), buf=self._text, worker=self)
        channel.set_write_eof(nodes=(), worker=self)

    def _relaunch(self, previous_gateway: str) -> None:
        self.asked.pop(previous_gateway, None)
        super()._relaunch(previous_gateway)

    def _emit_pickup(self, node: str) -> None:
        """Take no note that a command was sent."""

    # -- the way back ---------------------------------------------------------------------------------

    def print_lines(self, stream: str, hosts: list[str], content: bytes) -> None:
        """Hand on what hosts printed."""
        self._tell(stream, hosts, content=content)

    def _settle(self, kind: str, node: str, gateway: str, **more: Any) -> None:
        """Take the end of one host's script; a second one counts for nothing."""
        targets = self.gwtargets.get(gateway, set())
        if node in targets:
            targets.remove(node)
            self._tell(kind, (node,), gateway, **more)
            self._close_count += 1
            self._check_fini(gateway)

    def _on_remote_node_close(self, node: str, rc: int, gateway: Any) -> None:
        self._settle("end", node, str(gateway), code=rc)

    def _on_remote_node_timeout(self, node: str, gateway: Any) -> None:
        self._settle("late", node, str(gateway))

    def _gateway_abort(self, gateway: str) -> None:
        """Tell the hosts of a gateway as lost that had not ended."""
        for node in list(self.gwtargets.get(gateway, ())):
            self._settle("lost", node, gateway)
