"""The controller's end of a channel to a gateway: ClusterShell's own, which believes nothing that it need not.

Of what a gateway prints only this counts: output, exit codes and timeouts of hosts that it was asked about, and
that it has got what it was sent. Output is bytes (``decoder``). Anything else, a line or a message that is too
long, a document type, names that were not asked for, ends the channel.

Before a channel is ready nothing was asked of its gateway, so its hosts move to another one; after that they
may have begun, and are told as lost.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import property_lexical_handler

import ClusterShell
from ClusterShell.Communication import (
    ErrorMessage,
    MessageProcessingError,
    RetcodeMessage,
    RoutingMessage,
    StartMessage,
    StdErrMessage,
    StdOutMessage,
    TimeoutMessage,
)
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.Propagation import PropagationChannel
from ClusterShell.Worker.Ssh import SshClient, WorkerSsh

from remedy.text import clipped, size, visible
from remedy.transport.gateways.decoder import PayloadError, output_of
from remedy.transport.gateways.endings import SHOWN, lacking, last_words, other_release
from remedy.transport.gateways.listener import TreeListener

MOST_MESSAGE = 24 << 20
"""Bytes of one message: what a host prints in a quarter of a second, in base64."""

LONGEST_LINE = 1 << 20
"""Bytes; gateways of ClusterShell break lines at 64 KiB."""

MESSAGES, MESSAGES_A_HOST = 1_000, 20_000
INSTALL = 1
"""The code of a gateway that needs another ClusterShell."""

_WORDS = 20
# Names as ClusterShell folds them, without its operators and groups.
_NAMES = re.compile(r"[A-Za-z0-9._,\[\]/-]{1,1000000}")
_TERM = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_RELEASE = re.compile(r"[0-9A-Za-z.]{1,20}")
_WORKERS_END = 255


class _NoDoctype:
    """Ends a document that declares a type: entities can make much of little (XML 1.0, 4.4)."""

    def startDTD(self, *_: object) -> None:  # noqa: N802 (the interface of xml.sax)
        raise MessageProcessingError("a document type")

    def endDTD(self) -> None:  # noqa: N802
        """Take no note."""

    def comment(self, _: str) -> None:
        """Take no note."""

    startCDATA = endCDATA = endDTD  # noqa: N815


class GatewayChannel(PropagationChannel):  # type: ignore[misc]  # ClusterShell comes without types
    """A channel to one gateway.

    Args:
        relay: hears of what becomes of it.
        task: of ClusterShell.
        gateway: its address in the tree.
    """

    def __init__(self, relay: TreeListener, task: Any, gateway: Any) -> None:
        super().__init__(task, gateway)
        self.name = str(gateway)
        self.opened = False
        self.age = 0.0
        self.fault = ""
        self.code = 0
        self._relay = relay
        self._words: deque[bytes] = deque(maxlen=_WORDS)
        self._came = self._messages = 0
        self._is_ready = False
        self._parser.setProperty(property_lexical_handler, _NoDoctype())

    # -- what comes ---------------------------------------------------------------------------------

    def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:  # noqa: ARG002
        """Take a line of the gateway."""
        if self.fault:
            return
        if sname == self.SNAME_ERROR:
            self._words.append(msg[:SHOWN])
            return
        try:
            self._came += len(msg) + 1
            if self._came > MOST_MESSAGE:
                raise MessageProcessingError(f"a message of more than {MOST_MESSAGE >> 20} MiB")
            self._parser.feed(msg + b"\n")
            if hasattr(self._parser, "flush"):
                self._parser.flush()
            while self._xml_reader.msg_available() and not self.fault:
                self._came = 0
                self.recv(self._xml_reader.pop_msg())
        except (
            *(SAXException, MessageProcessingError, PayloadError, NodeSetException),
            *(ValueError, TypeError, AttributeError, RecursionError),
        ) as error:
            shown = clipped(visible(msg[: SHOWN * 4].decode(errors="replace")), 60)
            self.fail(f"it printed what no gateway prints ({visible(str(error))[:SHOWN]}): {shown}")

    def recv(self, msg: Any) -> None:
        """Take a message of the gateway."""
        self._messages += 1
        if isinstance(msg, StartMessage):
            self._open_end()
        elif msg.type == ErrorMessage.ident:
            self.fail(f"it gave up: {visible(msg.reason)[:SHOWN]}")
        elif not self.opened:
            raise MessageProcessingError(f"a message of type {msg.type} before its channel")
        elif msg.type == "ACK":
            self._acknowledged(msg)
        elif msg.type == "END":
            self.fail("it ended its channel")
        elif not self._is_ready:
            raise MessageProcessingError(f"a message of type {msg.type} before it was asked")
        else:
            self._take(msg)

    def _open_end(self) -> None:
        if self.opened:
            raise MessageProcessingError("a second channel")
        release = str(self._xml_reader.version)
        if release != ClusterShell.__version__:
            shown = release if _RELEASE.fullmatch(release) else "another release"
            self.fail(other_release(shown, ClusterShell.__version__), INSTALL)
        self.opened = True

    def _acknowledged(self, msg: Any) -> None:
        if not self._is_ready:
            self._is_ready = True
            self.recv_cfg(msg)
        else:
            self._count(0)
            self.recv_ctl(msg)

    def _take(self, msg: Any) -> None:
        """Take what a host printed, or how its script ended."""
        worker = self.workers.get(getattr(msg, "srcid", None))
        if worker is None:
            raise MessageProcessingError(
                f"a message of type {msg.type} about nothing that was asked"
            )
        asked = worker.asked.get(self.name, frozenset())
        self._count(len(asked))
        if msg.type == RoutingMessage.ident:
            # A gateway behind it failed. It asks its hosts by another one, and has no input for them.
            for host in _hosts(str(msg.targets), asked):
                worker._settle("lost", host, self.name)
            return
        if msg.type == StdErrMessage.ident and msg.nodes in self._relay.inner - asked:
            return  # what ssh says of a gateway behind it
        hosts = _hosts(msg.nodes, asked)
        if msg.type in (StdOutMessage.ident, StdErrMessage.ident):
            stream = "out" if msg.type == StdOutMessage.ident else "err"
            worker.print_lines(stream, hosts, output_of(msg.data) + b"\n")
        elif msg.type == RetcodeMessage.ident:
            for host in hosts:
                worker._on_remote_node_close(host, msg.retcode, self.name)
        elif msg.type == TimeoutMessage.ident:
            for host in hosts:
                worker._on_remote_node_timeout(host, self.name)
        else:
            raise MessageProcessingError(f"a message of type {msg.type}")

    def _count(self, hosts: int) -> None:
        asked = max([hosts, *(len(w.asked.get(self.name, ())) for w in self.workers.values())])
        if self._messages > MESSAGES + MESSAGES_A_HOST * asked:
            raise MessageProcessingError("more messages than its hosts can have")

    # -- its end ------------------------------------------------------------------------------------

    def fail(self, reason: str, code: int = 0) -> None:
        """Give the gateway up.

        Args:
            reason: a sentence about it, without its name.
            code: ``INSTALL`` where another ClusterShell helps.
        """
        if not self.fault:
            self.fault, self.code = reason, code
            self.worker.abort()

    def ev_close(self, worker: Any, timedout: bool) -> None:  # noqa: ARG002
        """Take the end of the channel: hosts of a gateway that was not ready move to another."""
        workers = [w for w in self.task.gateways[self.name][1] if w.gwtargets.get(self.name)]
        if workers or self.fault:
            if not self.fault:
                self.fault, self.code = self._ending()
            self.task.router.mark_unreachable(self.name)
            self._relay.gateway_failed(self.name, self.fault, self.code)
            if not self._is_ready:
                for pending in workers:
                    pending._relaunch(self.name)
        worker.task._pchannel_close(self.name, worker)

    def _ending(self) -> tuple[str, int]:
        """Return why the gateway ended, and the code of what helps."""
        words = b"\n".join(self._words).decode(errors="replace")
        if lack := lacking(words, self._rc, self._relay.settings.python):
            return lack, INSTALL
        last = last_words(words)
        if self._rc == _WORKERS_END:
            return f"no connection, or it broke: {last}", 0
        return f"its ClusterShell ended ({self._rc}): {last}", 0


def _hosts(text: str, asked: Any) -> list[str]:
    """Return the hosts that a message names.

    Raises:
        MessageProcessingError: it names others than were asked for.
    """
    if text in asked:
        return [text]
    if not _NAMES.fullmatch(text) or sum(map(size, _TERM.findall(text))) > len(asked):
        raise MessageProcessingError("a message about hosts that were not asked for")
    hosts = list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    if not hosts or not asked.issuperset(hosts):
        raise MessageProcessingError("a message about hosts that were not asked for")
    return hosts


class DoorClient(SshClient):  # type: ignore[misc]
    """The ssh to a gateway: by this machine's ssh_config and the inventory, with strict host keys."""

    # By gateway, the words of ssh that lead there; the same for all channels of a process.
    doors: dict[str, list[str]] = {}  # noqa: RUF012
    options: tuple[str, ...] = ()

    def _build_cmd(self) -> tuple[list[str], None]:
        *words, address = self.doors[str(self.key)]
        return ["ssh", *self.options, *words, "--", address, self.command], None

    def _readlines(self, sname: str) -> Iterator[bytes]:
        """Yield the lines that are complete; ClusterShell would go through a long one with each piece of it."""
        chunk = self._read(sname)
        stream = self.streams[sname]
        if b"\n" not in chunk:
            stream.rbuf += chunk
            return
        *lines, rest = (stream.rbuf + chunk).split(b"\n")
        stream.rbuf = rest
        for line in lines:
            yield line.removesuffix(b"\r")

    def _handle_read(self, sname: str) -> None:
        super()._handle_read(sname)
        stream = self.streams.get(sname)
        if stream is not None and len(stream.rbuf) > LONGEST_LINE:
            stream.rbuf = b""
            self.worker.eh.fail(f"it printed a line of more than {LONGEST_LINE >> 20} MiB")


class DoorWorker(WorkerSsh):  # type: ignore[misc]
    """What connects to gateways."""

    SHELL_CLASS = DoorClient
