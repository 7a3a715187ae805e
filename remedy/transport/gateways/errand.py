"""One script for hosts behind gateways, and how far each of them is with it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gevent.event import Event

from remedy.errors import RemedyError
from remedy.inventory import Node
from remedy.transport.failures import explain_exit, explain_flood, explain_no_start
from remedy.transport.gateways.failures import explain_break, explain_ssh
from remedy.transport.gateways.packing import EndMark, packed, unpacked
from remedy.transport.gateways.wire import TreeRequest
from remedy.transport.script import Output, Script
from remedy.transport.wrapper import Flood, Marks, Sending, Stream, command_line

# Of ssh itself, ssh(1), and of a gateway whose own gateway failed (sysexits.h, EX_PROTOCOL).
INNER_FAILED = 76
_OWN_CODES = (255, INNER_FAILED)
_ASKS = ("password is required", "authentication is required")


@dataclass
class HostErrand:
    """How far one host is.

    Args:
        node: the host.
        out: its standard output.
        err: its standard error.
        started: when it was asked (monotonic).
        gateway: the outermost that it is reached through.
        last: the gateway that logs in to it; several, folded, where it may be any of them.
        door: the ssh to that, as a user types it.
        routed: when that was chosen, by the clock of the tree.
        began: when its script began, by the same; None before.
        code: the exit code of its script.
        text: what the script printed; ``errors``: as errors.
        asks: whether its sudo asked for a password that was not sent.
        is_in_doubt: whether it has ended, and the reason is sought.
        is_over: whether nothing more is waited for.
    """

    node: Node
    out: Stream
    err: Stream
    started: float = field(default_factory=time.monotonic)
    gateway: str = ""
    last: str = ""
    door: str = ""
    routed: float = 0.0
    began: float | None = None
    code: int | None = None
    text: str = ""
    errors: str = ""
    asks: bool = False
    is_in_doubt: bool = False
    is_over: bool = False

    def ending(self, code: int, errand: Errand) -> RemedyError | None:
        """Take the end of the ssh to the host, and return why the script did not come to its own.

        Args:
            code: of ssh.
            errand: whose script it was.
        """
        self.errors, self.code = errand.end.split(self.err.text)
        if not self.out.shell:
            printed = f"{self.err.noise.decode(errors='replace')}\n{self.err.text}"
            if code in _OWN_CODES:
                return explain_ssh(self.node, self.last, self.door, printed)
            return explain_no_start(self.node, f"{self.out.text}\n{printed}")
        if not self.out.script:
            self.asks = errand.sending is Sending.LATER and any(w in self.errors for w in _ASKS)
            return None if self.asks else explain_exit(self.node, "", self.errors)
        if self.code is None:
            return explain_break(self.node, self.last, self.errors)
        try:
            self.text = unpacked(self.out, errand.script)
        except Flood as flood:
            return explain_flood(self.node, str(flood))
        except ValueError as error:
            return explain_break(self.node, self.last, f"{self.errors}\n{error}")
        return None if self.code == 0 else explain_exit(self.node, self.text, self.errors)


class Errand:
    """One script for some hosts, by one request.

    Args:
        script: what they run.
        nodes: the hosts, all with one way to log in.
        password: for their sudo; None where there is none.
        sending: when it is sent.
        stage: what listeners hear while a host is at it.
        deliver: takes each host's output.
    """

    def __init__(
        self,
        script: Script,
        nodes: Sequence[Node],
        password: str | None,
        sending: Sending,
        stage: str,
        deliver: Callable[[Output], None],
    ) -> None:
        self.id = 0
        self.script = script
        self.sending = sending
        self.stage = stage
        self.end = EndMark()
        self.over = Event()
        self.fanout = 1
        self.round_seconds = self.began = 0.0
        self.login = (str(nodes[0].data.get("ssh_user") or ""), nodes[0].ssh_port)
        self.peaks: Counter[str] = Counter()
        self._password = password
        self._deliver = deliver
        self._marks = Marks()
        marks = self._marks
        self.hosts = {
            node.ssh_address: HostErrand(
                node, Stream(marks.shell, marks.script), Stream(marks.shell)
            )
            for node in nodes
        }
        self._left = len(self.hosts)

    def request(self, grooming: float) -> TreeRequest:
        """Return what the relay is asked.

        Args:
            grooming: seconds for which gateways gather output.
        """
        command = command_line(
            self.script,
            self._marks,
            is_root=self.login[0] == "root",
            password=self._password,
            sending=self.sending,
            shell=packed(self.script, self.end),
        )
        return TreeRequest(
            self.id,
            tuple(address for address, host in self.hosts.items() if not host.is_over),
            command.line,
            command.content(with_password=self.sending is Sending.FIRST).decode(),
            self.round_seconds,
            self.fanout,
            grooming,
        )

    @property
    def asking(self) -> list[Node]:
        """The hosts whose sudo asked for the password."""
        return [host.node for host in self.hosts.values() if host.asks]

    def with_password(self, nodes: Sequence[Node]) -> Errand:
        """Return the same errand for some of its hosts, with the password."""
        return Errand(self.script, nodes, self._password, Sending.FIRST, self.stage, self._deliver)

    def forgo(self, host: HostErrand) -> None:
        """Wait for a host no more, which is to be asked once more."""
        host.is_over = True
        self._left -= 1
        if not self._left:
            self.over.set()

    def settle(self, host: HostErrand, output: Output) -> None:
        """Deliver what a host said."""
        host.out = host.err = Stream("")
        host.text = host.errors = ""
        self._deliver(output)
        self.forgo(host)
