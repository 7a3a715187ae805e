"""Running scripts on hosts behind gateways: one request for all hosts that get the same, deadlines kept here.

What an unresponsive gateway does not say is told by this side: a gateway of which nothing is heard for as long
as a host may take, and a host whose script is not over past its deadline.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

import gevent
from gevent.lock import BoundedSemaphore
from pydantic import SecretStr

from remedy.errors import RemedyError
from remedy.inventory import Node
from remedy.spec import SshSpec
from remedy.text import fold, quoted, to_paste
from remedy.transport.failures import explain_flood
from remedy.transport.gateways.doubts import Doubts, LostHost
from remedy.transport.gateways.errand import INNER_FAILED, Errand, HostErrand
from remedy.transport.gateways.failures import (
    GatewayFault,
    explain_late,
    explain_relay,
    explain_stall,
)
from remedy.transport.gateways.inner import InnerGateways
from remedy.transport.gateways.keys import GatewayKeys
from remedy.transport.gateways.losses import Losses
from remedy.transport.gateways.overdue import overdue
from remedy.transport.gateways.process import RelayProcess
from remedy.transport.gateways.routes import ROOT, Routes
from remedy.transport.gateways.wire import TreeEvent, TreeSettings
from remedy.transport.privileges import privileges
from remedy.transport.script import HostEvent, Listener, Output, Script
from remedy.transport.watch import AwakeClock
from remedy.transport.wrapper import KILL_AFTER, Flood, Sending

TICK = 0.5
PAUSE = TICK / 1000
"""Seconds between two looks at the deadlines of hosts, for each of them: to look takes time, too."""
PATIENCE = 15.0
GROOMING = 0.25
"""Seconds for which a gateway gathers output, so that what is equal is one message."""
MOST_GROOMED = 8
"""Requests at once above which it does not: it looks through all output for each of them."""

Login = tuple[str, int]


class Tree:
    """Scripts on the hosts behind gateways.

    Args:
        routes: which those are.
        spec: the deadlines.
        sudo_password: that was typed for all hosts.
        listener: hears of each host's stages.
        counts: of logins and scripts, by host.
    """

    def __init__(
        self,
        routes: Routes,
        spec: SshSpec,
        sudo_password: SecretStr | None,
        listener: Listener,
        counts: Counter[str],
    ) -> None:
        self._routes = routes
        self._behind = routes.behind
        self._spec = spec
        self._sudo_password = sudo_password
        self._listen = listener
        self._counts = counts
        self._ids = count(1)
        self._relays: dict[Login, RelayProcess] = {}
        self._errands: dict[int, Errand] = {}
        self._losses = Losses(routes, spec.gateway_python)
        self._inner = InnerGateways(routes, spec, self._losses)
        self._doubts = Doubts(routes, self._inner, self._losses, self._settle)
        self._clock = AwakeClock()
        self._heard: defaultdict[str, float] = defaultdict(float)
        self._round: gevent.Greenlet | None = None
        self._names = {routes.address(name): name for name in routes.gateways}

    def __contains__(self, host: object) -> bool:
        """Say whether a host is reached through gateways."""
        return host in self._behind

    def warm(self) -> None:
        """Start the processes that speak with gateways, before there is something to ask."""
        for login in {_login(self._routes.inventory.node(name)) for name in self._behind}:
            self._relay(login)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The gateways that failed and that no error of a host names, in sentences."""
        return self._losses.warnings

    def level(self, host: str) -> int:
        """Return how many gateways behind others are on the way to a host."""
        return max(len(self._routes.way(host)) - 1, 0)

    def keys(self) -> GatewayKeys:
        """Return what reads and records the host keys of hosts behind gateways."""
        return GatewayKeys(self._routes, self._spec)

    def close(self) -> None:
        """End all channels."""
        relays, self._relays = self._relays, {}
        for relay in relays.values():
            relay.close()

    # -- asking -------------------------------------------------------------------------------------

    def run(
        self,
        hosts: Iterable[str],
        scripts: Mapping[str, Script],
        deliver: Callable[[Output], None],
        *,
        stage: str = "running",
        together: bool = False,
    ) -> None:
        """Run each host's script, and return when all have ended.

        Args:
            hosts: their names.
            scripts: by host; a mapping that is no ``dict`` writes each when it is looked up, which is then done
                once a gateway has a place for it.
            deliver: is called with each host's output when it is there.
            stage: what listeners hear while a host is at it.
            together: whether the scripts wait for each other, and so have to run at once.
        """
        names = list(hosts)
        if together or isinstance(scripts, dict):
            self._run_alike({name: scripts[name] for name in names}, deliver, stage, together)
            return
        fanout = max(self._spec.gateway_fanout, 1)
        places = BoundedSemaphore(fanout * len(self._routes.gateways))

        def run_on(name: str) -> None:
            with places:
                node = self._routes.inventory.node(name)
                script, password = privileges(node, scripts[name], self._sudo_password)
                errand = _errand(script, [node], password, stage, deliver)
                self._do(_login(node), errand, fanout, len(names))

        gevent.joinall([gevent.spawn(run_on, name) for name in names], raise_error=True)

    def _run_alike(
        self,
        scripts: Mapping[str, Script],
        deliver: Callable[[Output], None],
        stage: str,
        together: bool,
    ) -> None:
        """Run scripts by one request for all hosts that get the same."""
        groups: defaultdict[tuple[Login, Script, str | None, int], list[Node]] = defaultdict(list)
        gateways = self._routes.gateways
        for name, script in scripts.items():
            node = self._routes.inventory.node(name)
            own, password = privileges(node, script, self._sudo_password)
            # A gateway sends what is for one behind it, and for hosts behind that, to the latter: it would
            # log in to itself. So gateways are asked apart, a level at a time.
            level = len(self._routes.way(name)) if name in gateways else 0
            groups[(_login(node), own, password, level)].append(node)
        fanout = max(len(scripts) if together else self._spec.gateway_fanout, 1)
        ends = [
            gevent.spawn(
                self._do,
                login,
                _errand(script, nodes, password, stage, deliver),
                fanout,
                len(groups),
            )
            for (login, script, password, _), nodes in groups.items()
        ]
        gevent.joinall(ends, raise_error=True)

    def _do(self, login: Login, errand: Errand, fanout: int, groups: int) -> None:
        """Carry one errand out, and once more for hosts whose sudo asked for the password."""
        self._ask(login, errand, fanout, groups)
        asking = errand.asking
        if asking:
            again = errand.with_password(asking)
            self._ask(login, again, fanout, groups)

    def _ask(self, login: Login, errand: Errand, fanout: int, groups: int) -> None:
        errand.id = next(self._ids)
        errand.fanout = fanout
        errand.round_seconds = self._spec.reach + errand.script.deadline + KILL_AFTER + PATIENCE
        errand.began = self._clock.seconds
        for host in errand.hosts.values():
            self._counts[f"connect:{host.node.name}"] += 1
            self._counts[f"exec:{host.node.name}"] += 1
            self._listen(HostEvent(host.node.name, "connecting"))
        self._errands[errand.id] = errand
        if self._round is None:
            self._clock.tick()
            self._round = gevent.spawn(self._rounds)
        try:
            if shutil.which("ssh") is None:
                self._break_off(errand, "there is no ssh on this machine (openssh-client)")
            else:
                few = max(groups, len(self._errands)) <= MOST_GROOMED
                grooming = GROOMING if few else 0.0
                self._drop(errand, self._inner.checked(*login))
                if not errand.over.is_set():
                    self._relay(login).ask(errand.request(grooming))
            errand.over.wait()
        finally:
            del self._errands[errand.id]
            relay = self._relays.get(login)
            if relay is not None:
                relay.stop(errand.id)

    def _drop(self, errand: Errand, usable: Routes) -> None:
        """Settle the hosts of an errand to which no way is left."""
        for host in list(errand.hosts.values()):
            if host.node.name not in usable.behind:
                self._settle(errand, host, self._losses.of_host(host.node))

    def _relay(self, login: Login) -> RelayProcess:
        relay = self._relays.get(login)
        if relay is not None:
            return relay
        user, port = login
        inventory, spec = self._routes.inventory, self._spec
        usable = self._inner.usable()
        hosts = [name for name in usable.behind if _login(inventory.node(name)) == login]
        gateways = usable.gateways
        settings = TreeSettings(
            usable.topology(hosts),
            ROOT,
            {self._routes.address(name): self._routes.door(name) for name in gateways},
            user or None,
            port,
            spec.gateway_python,
            spec.connect,
            spec.reach,
            spec.silence,
            inner=[self._routes.address(name) for name in gateways if self._routes.through(name)],
        )

        def ended(reason: str) -> None:
            relay = self._relays.pop(login, None)
            if relay is not None:
                gevent.spawn(relay.close)
            for errand in list(self._errands.values()):
                if errand.login == login:
                    self._break_off(errand, reason)

        self._relays[login] = RelayProcess(settings, self._hear, ended)
        return self._relays[login]

    # -- hearing ------------------------------------------------------------------------------------

    def _hear(self, event: TreeEvent) -> None:
        """Take an event of a relay."""
        gateway = self._names.get(event.gateway, event.gateway)
        if event.kind == "gateway":
            self._losses.note(gateway, GatewayFault(event.text, bool(event.code)))
            return
        errand = self._errands.get(event.request)
        if errand is None:
            return  # given up
        for address in event.hosts:
            host = errand.hosts.get(address)
            if host is not None and not host.is_over and not host.is_in_doubt:
                self._take(errand, host, event, gateway)
        if event.kind == "over":
            # Every host has had its end, unless the relay forgot one.
            self._break_off(errand, "no word of the host")

    def _take(self, errand: Errand, host: HostErrand, event: TreeEvent, gateway: str) -> None:
        node = host.node
        if event.kind == "route":
            host.gateway, host.routed = gateway, self._clock.seconds
            inner = self._routes.way(node.name)[1:]
            host.last = fold(inner[-1]) if inner else gateway
            host.door = self._routes.typed(inner[-1][0] if inner else gateway)
            errand.peaks[gateway] += 1
            self._heard[gateway] = max(self._heard[gateway], host.routed)
            self._listen(HostEvent(node.name, "connecting", f"through {gateway}"))
            return
        self._heard[host.gateway] = self._clock.seconds
        if event.kind in ("out", "err"):
            self._take_output(errand, host, event)
        elif event.kind == "end":
            error = host.ending(event.code, errand)
            if event.code == INNER_FAILED and error is not None and host.last != host.gateway:
                self._doubts.add(LostHost(errand, host, ""))
            elif error is not None or not host.asks:
                self._settle(errand, host, error)
            else:
                errand.forgo(host)
        elif event.kind == "late":
            self._settle(
                errand, host, explain_late(node, host.last, host.door, errand.round_seconds)
            )
        elif event.kind == "lost":
            if self._routes.gateways_behind(gateway):
                lost = gateway if gateway in self._losses.faults else ""
                self._doubts.add(LostHost(errand, host, lost))
            else:
                self._settle(errand, host, self._losses.of_host(node, gateway))

    def _take_output(self, errand: Errand, host: HostErrand, event: TreeEvent) -> None:
        stream = host.out if event.kind == "out" else host.err
        try:
            stream.take(event.content)
        except Flood as flood:
            self._settle(errand, host, explain_flood(host.node, str(flood)))
            return
        if event.kind == "out" and stream.script and host.began is None:
            host.began = self._clock.seconds
            seconds = errand.script.deadline
            self._listen(HostEvent(host.node.name, errand.stage, seconds=seconds))

    def _settle(self, errand: Errand, host: HostErrand, error: RemedyError | None) -> None:
        """Hand on what a host said, or why it did not."""
        name = host.node.name
        if error is not None:
            error.next_step = to_paste(error.next_step, quoted(self._routes.inventory.path))
        code = 0 if error is None and host.code == 0 else None
        out, err = ("", "") if error is not None and not host.text else (host.text, host.errors)
        seconds = time.monotonic() - host.started
        self._listen(
            HostEvent(name, "failed" if error else "answered", error.message if error else "")
        )
        errand.settle(host, Output(name, out, err, code, seconds, error, time.time_ns()))

    def _break_off(self, errand: Errand, reason: str) -> None:
        """Settle what is left of an errand that nothing more will be heard of."""
        for host in list(errand.hosts.values()):
            if not host.is_over and not host.is_in_doubt:
                self._settle(errand, host, explain_relay(host.node, reason))

    # -- deadlines ----------------------------------------------------------------------------------

    def _rounds(self) -> None:
        looked = self._clock.seconds
        while self._errands:
            gevent.sleep(TICK)
            self._clock.tick()
            hosts = sum(len(errand.hosts) for errand in self._errands.values())
            if self._clock.seconds - looked < PAUSE * hosts:
                continue
            looked = self._clock.seconds
            load = Counter(
                host.gateway
                for errand in self._errands.values()
                for host in errand.hosts.values()
                if not host.is_over
            )
            for errand in list(self._errands.values()):
                self._look(errand, load)
        self._round = None

    def _look(self, errand: Errand, load: Mapping[str, int]) -> None:
        """Give up hosts that are overdue."""
        now = self._clock.seconds
        running = errand.script.deadline + KILL_AFTER + PATIENCE
        for host in list(errand.hosts.values()):
            if host.is_over or host.is_in_doubt:
                continue
            age = overdue(errand, host, now, self._heard[host.gateway], load, running)
            if age is not None:
                name = host.last or fold(self._routes.way(host.node.name)[-1])
                door = host.door or self._routes.typed(self._routes.way(host.node.name)[-1][0])
                began = host.began is not None
                error = explain_stall(host.node, name, door, age, began=began)
                self._settle(errand, host, error)


def _errand(
    script: Script,
    nodes: Sequence[Node],
    password: str | None,
    stage: str,
    deliver: Callable[[Output], None],
) -> Errand:
    sending = Sending.ASKED if password is None else Sending.LATER
    return Errand(script, nodes, password, sending, stage, deliver)


def _login(node: Node) -> Login:
    """Return what gateways are told of a host's ssh beside its address."""
    return str(node.data.get("ssh_user") or ""), node.ssh_port
