"""The program that tests the ways of one host: it listens, and connects to others, on that host.

It travels in the text of a script: standard library only, Python >= 3.8, no file, one process. All hosts run it
at the same time. A way is good when the very program of this run answered on the other side, and then took a
message that is larger than any path's packets. At the end ``whole`` asks the next hosts with packets that must
not be cut.

What a failed way means is decided by the controller, which also hears the other side; this program says what it
saw: "refused" (a reset), "rejected" (an ICMP answer), "dropped" (nothing), "stalled" (a large message did not
arrive), "mute" (connected, and no answer), "foreign" (somebody else answered). A kernel acknowledges what
arrives, however busy its programs are: a large message all of which was acknowledged is no stalled one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import selectors
import signal
import socket
import struct
import sys
import termios
import time
from typing import Any

from remedy.verify.onhost import mtu

MARK = "REMEDY-REACH"
TICK = 0.05
AGAIN = 0.25  # between two attempts at a port on which nobody listens yet
LARGE = 40_000  # bytes; four of the largest packets that are in use
# What the packets that must not be cut take at most, when some get no answer.
WHOLE = mtu.TRIES * mtu.PATIENCE + 0.3
HEADER = struct.Struct("!16sII")
# An abortive close (socket(7), SO_LINGER with no time): no TIME_WAIT keeps a port when we are gone.
ABORT = struct.pack("ii", 1, 0)
SILENCE = {"connect": "dropped", "answer": "mute", "large": "stalled"}  # by stage
# EINVAL is what a route of the type blackhole gives (fib_props, net/ipv4/fib_semantics.c).
REJECTED = (
    *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM, errno.EPROTO),
    *(errno.EINVAL, errno.EADDRNOTAVAIL),
)


class Call:
    """One attempt at one port of one host."""

    def __init__(self, target: int, port: int, large: bool) -> None:
        self.target = target
        self.port = port
        self.large = large
        self.begun = 0.0
        self.until = 0.0
        self.stage = "connect"
        self.pending = b""
        self.received = b""
        self.sock: Any = None


class Visit:
    """One connection that somebody else opened."""

    def __init__(self, sock: Any, port: int) -> None:
        self.sock = sock
        self.port = port
        self.received = b""
        self.source = -1
        self.remaining = 0


class Knocker:
    """All connections of this host, in both directions."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.nonce = config["nonce"].encode("ascii")
        self.me = config["me"]
        self.connect: float = config["connect"]
        self.answer: float = config["answer"]
        self.end = time.monotonic() + config["seconds"]
        self.selector = selectors.DefaultSelector()
        self.listening: list[int] = []
        self.busy: list[list[Any]] = []
        self.visits: set[tuple[int, int]] = set()
        self.bad: list[list[Any]] = []
        self.good = 0
        self.slowest = 0.0
        self.times: list[list[Any]] = []
        self.flying = 0
        self.checked = 0.0
        self.queue: list[Call] = []
        self.later: list[tuple[float, Call]] = []
        self.addresses: dict[int, str] = {peer: address for peer, address, _ in config["calls"]}

    def listen(self) -> None:
        """Listen on every port that was drawn for this host."""
        address = self.config["address"]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for port in self.config["ports"]:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((address, port))
                sock.listen(4096)
            except OSError as error:
                self.busy.append([port, errno.errorcode.get(error.errno or 0, str(error))])
                sock.close()
                continue
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ, port)
            self.listening.append(port)

    def plan(self) -> None:
        """Queue the calls, in an order in which nobody is called by all at once."""
        for target, _, ports in self.config["calls"]:
            for number, port in enumerate(ports):
                self.queue.append(Call(target, port, large=number == 0))
        self.queue.reverse()

    def run(self) -> str:
        """Go on until everything is "answered" in both directions, or "time" is up; returns which it was."""
        reader = select.poll()
        reader.register(1, 0)
        expected = sum(self.config["visits"][str(port)] for port in self.listening)
        while time.monotonic() < self.end:
            self.launch()
            idle = not (self.queue or self.later or self.flying)
            if idle and len(self.visits) >= expected:
                return "answered"
            for key, mask in self.selector.select(TICK):
                if isinstance(key.data, Call):
                    self.step(key.data, mask)
                elif isinstance(key.data, Visit):
                    self.serve(key.data)
                else:
                    self.welcome(key.fileobj, key.data)
            self.expire()
            if reader.poll(0):
                os._exit(1)  # sshd closed its end: nobody is there to read it
        return "time"

    def launch(self) -> None:
        """Start as many calls as may be under way."""
        now = time.monotonic()
        due = [call for moment, call in self.later if moment <= now]
        if due:
            self.later = [(moment, call) for moment, call in self.later if moment > now]
            self.queue += due
        while self.queue and self.flying < self.config["flight"]:
            call = self.queue.pop()
            address = self.addresses[call.target]
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            call.sock = socket.socket(family, socket.SOCK_STREAM)
            call.sock.setblocking(False)
            call.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
            call.begun, call.until = now, now + self.connect
            call.stage, call.received = "connect", b""
            with contextlib.suppress(OSError):
                # Leaves from the address that the peers know.
                call.sock.bind((self.config["address"], 0))
            code = call.sock.connect_ex((address, call.port))
            self.flying += 1
            if code not in (0, errno.EINPROGRESS):
                self.close(call)
                self.failed(call, code, " at once, before a packet left this host")
                continue
            self.selector.register(call.sock, selectors.EVENT_WRITE, call)

    def close(self, call: Call) -> None:
        """Close a call's socket."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(call.sock)
        call.sock.close()
        self.flying -= 1

    def failed(self, call: Call, code: int, why: str = "") -> None:
        """Judge a call that ended with an error; a reset while others still start is tried again."""
        now = time.monotonic()
        if code in (errno.ECONNREFUSED, errno.ECONNRESET) and now + AGAIN < self.end - 1.0:
            self.later.append((now + AGAIN, call))
            return
        outcome = "rejected" if code in REJECTED else "refused"
        if code == errno.ETIMEDOUT:
            outcome = "dropped"
        detail = errno.errorcode.get(code, str(code)) + (why if outcome == "rejected" else "")
        self.bad.append([call.target, call.port, outcome, detail])

    def step(self, call: Call, mask: int) -> None:
        """Take a call one step on."""
        try:
            if call.stage == "connect":
                code = call.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    self.close(call)
                    self.failed(call, code)
                    return
                call.stage = "answer"
                call.until = time.monotonic() + self.answer
                call.pending = HEADER.pack(self.nonce, self.me, LARGE if call.large else 0)
            if call.pending and mask & selectors.EVENT_WRITE:
                call.pending = call.pending[call.sock.send(call.pending) :]
            if mask & selectors.EVENT_READ:
                data = call.sock.recv(64)
                if not data:
                    raise OSError(errno.ECONNRESET, "closed")
                call.received += data
                if len(call.received) >= HEADER.size and self.answered(call):
                    return
        except OSError as error:
            self.close(call)
            self.failed(call, error.errno or errno.ECONNRESET)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if call.pending else 0)
        self.selector.modify(call.sock, events, call)

    def answered(self, call: Call) -> bool:
        """Take an answer; whether the call is over."""
        nonce, target, _ = HEADER.unpack(call.received[: HEADER.size])
        call.received = call.received[HEADER.size :]
        if nonce != self.nonce or target != call.target:
            self.bad.append([call.target, call.port, "foreign", ""])
        elif call.large and call.stage == "answer":
            call.stage, call.until = "large", time.monotonic() + self.answer
            call.pending = bytes(LARGE)
            return False
        else:
            self.good += 1
            seconds = round(time.monotonic() - call.begun, 3)
            self.slowest = max(self.slowest, seconds)
            if self.config["timed"]:
                self.times.append([call.target, call.port, seconds])
        self.close(call)
        return True

    def welcome(self, listener: Any, port: int) -> None:
        """Accept whoever is waiting."""
        for _ in range(64):
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ, Visit(sock, port))

    def serve(self, visit: Visit) -> None:
        """Answer a visitor's greeting, and its large message once that is mtu."""
        try:
            data = visit.sock.recv(65536)
            if not data:
                raise OSError
            visit.received += data
            if visit.source < 0 and len(visit.received) >= HEADER.size:
                nonce, visit.source, visit.remaining = HEADER.unpack(visit.received[: HEADER.size])
                visit.received = visit.received[HEADER.size :]
                if nonce != self.nonce:
                    raise OSError
                visit.sock.send(HEADER.pack(self.nonce, self.me, 0))
                if not visit.remaining:
                    self.visits.add((visit.source, visit.port))
            if visit.source >= 0 and visit.remaining and len(visit.received) >= visit.remaining:
                visit.remaining = 0
                visit.sock.send(HEADER.pack(self.nonce, self.me, 0))
                self.visits.add((visit.source, visit.port))
        except OSError:
            self.selector.unregister(visit.sock)
            visit.sock.close()

    def expire(self) -> None:
        """Give up the calls that took too long."""
        now = time.monotonic()
        if now < self.checked + TICK:
            return
        self.checked = now
        for key in list(self.selector.get_map().values()):
            call = key.data
            if isinstance(call, Call) and now > call.until:
                outcome, why = silence(call)
                self.close(call)
                self.bad.append([call.target, call.port, outcome, f"{now - call.begun:.1f} s{why}"])

    def unfinished(self) -> None:
        """Record what time did not suffice for by the stage it last was at."""
        open_calls = [key.data for key in list(self.selector.get_map().values())]
        for call in open_calls:
            if isinstance(call, Call):
                outcome, why = silence(call)
                self.bad.append([call.target, call.port, outcome, f"at the deadline{why}"])
        for call in self.queue:
            self.bad.append([call.target, call.port, "untried", "at the deadline"])
        for _, call in self.later:
            self.bad.append([call.target, call.port, "refused", "at the deadline"])


def silence(call: Call) -> tuple[str, str]:
    """Return what it means that nothing came for a call, and what is known besides."""
    if call.stage != "large" or call.pending:
        return SILENCE[call.stage], ""
    with contextlib.suppress(OSError):
        # What the other kernel has not acknowledged: SIOCOUTQ, tcp(7).
        queue = fcntl.ioctl(call.sock, termios.TIOCOUTQ, bytes(4))
        if int.from_bytes(queue, sys.byteorder) == 0:
            return "mute", f", though all {LARGE:,} bytes were acknowledged"
    return SILENCE[call.stage], ""


def main(config: dict[str, Any]) -> None:
    """Run, and print one line.

    Args:
        config: of a host: its number ``me`` and ``address``, the ``ports`` to listen on and how many ``visits``
            come to each; the ``calls`` to make, how many of them in ``flight`` at a time; ``seconds`` in all,
            to ``connect`` and for an ``answer``; how many peers get an ``echo`` request that must not be cut;
            whether each good call is ``timed``.
    """
    # Whatever happens, the kernel ends this process: nothing else of it stays anywhere.
    signal.alarm(int(config["seconds"]) + 10)
    knocker = Knocker(config)
    knocker.listen()
    knocker.plan()
    began = time.monotonic()
    ended = knocker.run()
    knocker.unfinished()
    peers = {peer: address for peer, address, _ in config["calls"][: config["echo"]]}
    uncut = mtu.ask(config["address"], peers, time.monotonic() + WHOLE)
    answer = {
        "good": knocker.good,
        "bad": knocker.bad,
        "times": knocker.times,
        "slowest": knocker.slowest,
        "listening": knocker.listening,
        "busy": knocker.busy,
        "ended": ended,
        "mtu": uncut,
        "seconds": round(time.monotonic() - began, 3),
    }
    sys.stdout.write(f"{MARK} {config['nonce']} {json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)
