"""Gateways behind gateways: which of them can be used, asked over the way that their hosts' scripts go.

ClusterShell's gateway ends, with all that it runs, where the last one behind it fails, and says nothing of it;
where there is a different one it has lost the input. So those are asked before there is anything to lose, and
once more where something was.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace

import ClusterShell
import gevent
from gevent.event import Event

from remedy.answers import read_answer
from remedy.spec import SshSpec
from remedy.text import clipped, visible
from remedy.transport.gateways.asking import Login
from remedy.transport.gateways.endings import SHOWN, lacking, last_words, other_release
from remedy.transport.gateways.failures import GatewayFault
from remedy.transport.gateways.losses import Losses
from remedy.transport.gateways.routes import Routes
from remedy.transport.gateways.ssh import GatewayAnswer, run_ssh, way_to

_RELEASE = "import ClusterShell; print(ClusterShell.__version__)"


class InnerGateways:
    """Asks the gateways that stand behind others.

    Args:
        routes: to all hosts.
        spec: the deadlines, and the interpreter on gateways.
        losses: takes those that cannot be used.
    """

    def __init__(self, routes: Routes, spec: SshSpec, losses: Losses) -> None:
        self._routes = routes
        self._spec = spec
        self._losses = losses
        self._asked: dict[tuple[str, int], Event] = {}
        self._nonce = secrets.token_hex(16)

    def checked(self, user: str, port: int) -> Routes:
        """Return the ways that are left, once all gateways have been asked by a login, as ``check`` has it."""
        asked = self._asked.get((user, port))
        if asked is None:
            asked = self._asked[(user, port)] = Event()
            try:
                self.check(user, port)
            finally:
                asked.set()
        asked.wait()
        return self.usable()

    def check(self, user: str, port: int, names: Iterable[str] | None = None) -> None:
        """Ask gateways, those that are nearer to this machine first, and note each that cannot be used.

        Args:
            user: of the hosts behind them, "" for whoever ssh takes.
            port: of these.
            names: of the gateways; None for all that stand behind others.
        """
        routes = self._routes
        known = routes.gateways if names is None else frozenset(names)
        inner = sorted(name for name in known if routes.through(name))
        login = Login(user, port, self._spec.connect)
        for level in sorted({len(routes.way(name)) for name in inner}):
            jobs = [
                gevent.spawn(self._ask, name, login)
                for name in inner
                if len(routes.way(name)) == level and name not in self._losses.faults
            ]
            gevent.joinall(jobs, raise_error=True)

    def usable(self) -> Routes:
        """Return the ways that are left without the gateways behind others that cannot be used."""
        routes, faults = self._routes, self._losses.faults

        def is_open(name: str) -> bool:
            outer = routes.through(name)
            return not outer or (name not in faults and any(map(is_open, outer)))

        branches = (
            replace(branch, gateways=tuple(filter(is_open, branch.gateways)))
            for branch in routes.routes
        )
        return Routes(routes.inventory, tuple(branch for branch in branches if branch.gateways))

    def _ask(self, name: str, login: Login) -> None:
        """Ask one gateway through the first way to it that comes up to its last gateway."""
        way = self._routes.way(name)
        faults = self._losses.faults
        outer = [next((g for g in gateways if g not in faults), "") for gateways in way[:-1]]
        if not all(outer):
            return
        for last in way[-1]:
            if last in faults:
                continue
            path = [*outer, last, name]
            command = f"exec {self._spec.gateway_python} -c '{_RELEASE}'"
            words = way_to(self._routes, self._spec, path, login, command, self._nonce)
            answer = run_ssh(words, "", self._spec.reach)
            places = read_answer(answer.out, self._nonce).words
            if (str(len(path) - 2),) not in places:
                continue  # what failed is before it
            is_there = (str(len(path) - 1),) in places
            fault = self._fault(last, answer, is_there=is_there)
            if fault is not None:
                self._losses.note(name, fault)
            return

    def _fault(self, outer: str, answer: GatewayAnswer, *, is_there: bool) -> GatewayFault | None:
        """Return what keeps a gateway from being used; None for nothing.

        Args:
            outer: the gateway before it.
            answer: what came.
            is_there: whether the command has begun on it.
        """
        if not is_there:
            return GatewayFault(f"no connection from {outer}: {last_words(answer.errors)}")
        python = self._spec.gateway_python
        if lack := lacking(answer.errors, answer.code, python):
            return GatewayFault(lack, needs_install=True)
        if answer.code != 0:
            return GatewayFault(f"its {python} ended ({answer.code}): {last_words(answer.errors)}")
        release = clipped(visible(answer.out.strip().splitlines()[-1]), SHOWN)
        if release != ClusterShell.__version__:
            words = other_release(release, ClusterShell.__version__)
            return GatewayFault(words, needs_install=True)
        return None
