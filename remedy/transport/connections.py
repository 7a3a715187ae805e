"""Connections to hosts, and running scripts over them, all hosts at once.

pyinfra is used through its connector: connect, run one command. It is about to replace gevent and paramiko
(pyinfra pull request 1957), so neither name is used outside of this package.
"""

from __future__ import annotations

import remedy.transport.cooperative  # noqa: F401  (first, before others import sockets)

# isort: split
import logging
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import gevent
from gevent.lock import BoundedSemaphore
from pydantic import SecretStr
from pyinfra.api.config import Config
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.state import State

from remedy.errors import InventoryError, RemedyError
from remedy.inventory import Inventory, Node
from remedy.spec import SshSpec
from remedy.transport import client
from remedy.transport.command import CommandAnswer, execute, marked
from remedy.transport.failures import (
    explain_connect_error,
    explain_exit,
    explain_flood,
    explain_loss,
    explain_no_start,
    explain_stuck,
)
from remedy.transport.privileges import privileges
from remedy.transport.refused import KeyRefusedError, explain_key
from remedy.transport.script import HostEvent, Listener, Output, Script
from remedy.transport.spare import SpareTime
from remedy.transport.stages import Stage
from remedy.transport.watch import Overdue, Watch, Watchman
from remedy.transport.wrapper import KILL_AFTER, Flood, Marks, command_line

if TYPE_CHECKING:
    from remedy.transport.gateways.tree import Tree

# pyinfra reports each failed host on its own logger, and so does paramiko; remedy reports hosts itself, once.
for _name in ("pyinfra", "paramiko"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False
client.install()

T = TypeVar("T")

# sshd drops connections above MaxStartups (10:30:100) only while they are not yet authenticated, and
# that is counted per host; what limits us is the controller: about 2 MB and one key exchange each.
PARALLEL = 128
# Connections at rest that are kept, so that the next script on a host needs no new login; each is an open file
# and some 100 KB of memory.
MOST_AT_REST = 256
# In seconds, how soon a thread that works gives way to the connections; Python's own is 5 ms.
SWITCH_INTERVAL = 0.0005
# How long after the host's own deadline the controller goes on waiting for the last output.
PATIENCE = 15


# What is open besides connections: files, pipes of programs that connect.
OTHER_FILES = 256


def allow_files(hosts: int) -> None:
    """Let this process have a connection to each host open, as far as it may: shells allow 1,024 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * hosts + OTHER_FILES
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Transport:
    """Connections to the hosts of one inventory, opened when first used and kept, the last ``MOST_AT_REST``.

    Hosts behind gateways are reached through those (``gateways.tree``), each time by a new connection.

    Args:
        inventory: where the hosts are.
        sudo_password: for users whose sudo asks for one.
        listener: hears of each host's stages.
        spec: how long a host may take for each stage, and which stand behind gateways.

    Raises:
        SpecError: the gateways are no tree.
    """

    def __init__(
        self,
        inventory: Inventory,
        *,
        sudo_password: SecretStr | None = None,
        listener: Listener | None = None,
        spec: SshSpec | None = None,
    ) -> None:
        self.inventory = inventory
        self.counts: Counter[str] = Counter()
        self._sudo_password = sudo_password
        self._listen = listener or (lambda _: None)
        self._state = _make_state(inventory)
        allow_files(len(inventory.nodes))
        self._slots = BoundedSemaphore(PARALLEL)
        self._ahead: dict[str, gevent.Greenlet] = {}
        self.spare = SpareTime()
        self._in_use: Counter[str] = Counter()
        self._at_rest: dict[str, None] = {}
        spec = spec or SshSpec()
        self._watchman = Watchman(spec, self._slow)
        self.notes: tuple[str, ...] = ()
        self._tree = self._plant(spec)
        # Names are looked up in threads, and one whose name server is dead keeps its thread for a while.
        gevent.get_hub().threadpool.maxsize = PARALLEL

    def _plant(self, spec: SshSpec) -> Tree | None:
        """Return the tree of gateways, where the settings have one.

        Raises:
            SpecError: it is no tree.
        """
        if spec.gateways is None:
            return None
        from remedy.transport.gateways.routes import read_routes
        from remedy.transport.gateways.tree import Tree
        from remedy.transport.gateways.unused import unused

        routes = read_routes(spec.gateways, self.inventory)
        self.notes = unused(routes)
        return Tree(routes, spec, self._sudo_password, self._listen, self.counts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was seen of the ways to hosts so far that no host's output says, in sentences."""
        return self._tree.warnings if self._tree is not None else ()

    def meanwhile(self, hosts: Iterable[str], work: Callable[[], T]) -> T:
        """Open connections to hosts while ``work`` is done in a thread of its own, and return what it returns.

        How a connection went is said when the first script is to run there, as if it were opened then.
        """
        flat, behind = self._divided(hosts)
        for name in flat:
            self._ahead[name] = gevent.spawn(self._open, self.inventory.node(name))
        if self._tree is not None and behind:
            self._tree.warm()
        done: Future[T] = Future()

        def do() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # raised here, and not shown by the thread
                done.set_exception(error)

        # Each word of a host would wait that long for the thread: a connection takes a dozen.
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            gevent.get_hub().threadpool.apply(do)
        finally:
            sys.setswitchinterval(usual)
        return done.result()

    def run(
        self,
        scripts: Mapping[str, Script],
        on_output: Callable[[Output], None] | None = None,
        *,
        stage: str = "running",
        together: bool = False,
    ) -> dict[str, Output]:
        """Run each host's script, all hosts at once, and return when all have ended.

        Connecting is limited to ``PARALLEL`` at a time, running is not: the ranks of a collective wait for
        each other.

        Args:
            scripts: by host; each is looked up once its host is connected, so that it may be written then.
            on_output: is called with each host's output when it is there, while others are still at work; what
                is returned is then without its text.
            stage: what listeners hear while a host is at it.
            together: whether the scripts wait for each other: then each gateway runs all of its at once.
        """

        def delivered(output: Output) -> Output:
            if on_output is None:
                return output
            on_output(output)
            # Who has heard it wants it no more, and thousands of answers take more room than all else.
            return replace(output, stdout="", stderr="")

        def run_on(name: str) -> Output:
            self._in_use[name] += 1
            self._at_rest.pop(name, None)
            try:
                output = self._run_on(name, scripts, stage)
            finally:
                self._rest(name)
            return delivered(output)

        flat, behind = self._divided(scripts)
        jobs = {name: gevent.spawn(run_on, name) for name in flat}
        if self._tree is not None and behind:

            def deliver(output: Output) -> None:
                jobs[output.host] = gevent.spawn(delivered, output)

            self._tree.run(behind, scripts, deliver, stage=stage, together=together)
        with self.spare.used():
            gevent.joinall(list(jobs.values()), raise_error=True)
        return {name: jobs[name].value for name in scripts}

    def _divided(self, hosts: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the hosts that are reached from here, and those that gateways reach."""
        names = list(hosts)
        if self._tree is None:
            return names, []
        return [n for n in names if n not in self._tree], [n for n in names if n in self._tree]

    def reconnect(self, name: str) -> None:
        """Forget the connection to a host, so that the next script opens a new one."""
        host = self._state.inventory.get_host(name)
        self._at_rest.pop(name, None)
        known = getattr(host.connector, "client", None)
        if known is not None:
            known.close()
            setattr(host.connector, "client", None)  # noqa: B010 - a connector of ssh has one
        host.connected = False

    def _rest(self, name: str) -> None:
        """Keep a host's connection for what is to be run there next, and close the one that rests longest."""
        self._in_use[name] -= 1
        if self._in_use[name] or not self._state.inventory.get_host(name).connected:
            return
        self._at_rest[name] = None
        if len(self._at_rest) > MOST_AT_REST:
            self.reconnect(next(iter(self._at_rest)))

    def close(self) -> None:
        """Close every connection."""
        for name in self.inventory.names:
            self.reconnect(name)
        if self._tree is not None:
            self._tree.close()

    def _slow(self, watch: Watch) -> None:
        """Say where a host is that takes some time."""
        assert watch.stage is not None
        at = f" at its jump host {watch.via}" if watch.via else ""
        self._listen(HostEvent(watch.host, f"waiting: {watch.stage.value}{at}"))

    def _run_on(self, name: str, scripts: Mapping[str, Script], stage: str) -> Output:
        node = self.inventory.node(name)
        started = time.monotonic()
        marks = Marks()
        answer = marked(marks)
        # In a greenlet of its own: what the watch raises there late finds it ended.
        error = gevent.spawn(self._try, node, scripts, stage, marks, answer).get()
        if error is None and (answer.code != 0 or not answer.out.script):
            error = _explain_code(node, answer)
        seconds = time.monotonic() - started
        self._listen(
            HostEvent(name, "failed" if error else "answered", error.message if error else "")
        )
        code = 0 if answer.code == 0 else None
        out, err = answer.out.text, answer.err.text
        return Output(name, out, err, code, seconds, error, time.time_ns())

    def _try(
        self,
        node: Node,
        scripts: Mapping[str, Script],
        stage: str,
        marks: Marks,
        answer: CommandAnswer,
    ) -> RemedyError | None:
        """Run a script on a host and fill ``answer``; return why that did not come to its end."""
        ahead = self._ahead.pop(node.name, None)
        if ahead is not None or not self._state.inventory.get_host(node.name).connected:
            self._listen(HostEvent(node.name, "connecting"))
        failure: RemedyError | None = ahead.get() if ahead is not None else None
        if failure is not None:
            return failure
        try:
            with self._watchman.over(node.name) as watch:
                error = self._connect(node, watch)
                if error is not None:
                    return error
                script = scripts[node.name]
                self._listen(HostEvent(node.name, stage, seconds=script.deadline))
                return self._execute(node, watch, script, marks, answer)
        except Overdue as overdue:
            self.reconnect(node.name)
            return explain_stuck(node, overdue.stuck)
        except Flood as flood:
            self.reconnect(node.name)
            return explain_flood(node, str(flood))

    def _open(self, node: Node) -> RemedyError | None:
        """Connect to a host without a script; return why that did not go well."""
        try:
            with self._watchman.over(node.name) as watch:
                return self._connect(node, watch)
        except Overdue as overdue:
            self.reconnect(node.name)
            return explain_stuck(node, overdue.stuck)

    def _connect(self, node: Node, watch: Watch) -> RemedyError | None:
        host = self._state.inventory.get_host(node.name)
        if host.connected:
            return None
        self.counts[f"connect:{node.name}"] += 1
        try:
            watch.take_slot(self._slots)
            watch.enter(Stage.NAME)  # ssh_config, too, may have names looked up
            host.connect(show_errors=False, raise_exceptions=True)
        except KeyRefusedError as refused:
            self.reconnect(node.name)
            return explain_key(self.inventory.path, node, refused)
        except ConnectError as failure:
            text = str(failure.args[0] if failure.args else failure)
        except Exception as failure:
            # paramiko and the crypto below it raise what they like on a broken peer or key file.
            text = f"{type(failure).__name__}: {failure}"
        else:
            return None
        finally:
            watch.give_slot()
        self.reconnect(node.name)
        return explain_connect_error(node, text, via=watch.via, proxy=watch.proxy)

    def _execute(
        self, node: Node, watch: Watch, script: Script, marks: Marks, answer: CommandAnswer
    ) -> RemedyError | None:
        script, password = privileges(node, script, self._sudo_password)
        command = command_line(
            script, marks, is_root=node.data.get("ssh_user") == "root", password=password
        )
        self.counts[f"exec:{node.name}"] += 1
        connection = getattr(self._state.inventory.get_host(node.name).connector, "client", None)
        seconds = script.deadline + KILL_AFTER + PATIENCE
        try:
            execute(connection, watch, command, answer, seconds)
        except Exception as failure:
            # A connection that breaks shows as any of OSError, EOFError, SSHException, TimeoutError.
            self.reconnect(node.name)
            stage = Stage.OUTPUT if answer.out.shell else watch.stage
            return explain_loss(node, stage, f"{type(failure).__name__}: {failure}")
        return None


def _explain_code(node: Node, answer: CommandAnswer) -> RemedyError | None:
    """Return what the exit status of a command means that did not end well."""
    if not answer.out.shell:
        return explain_no_start(node, f"{answer.out.text}\n{answer.err.text}")
    return explain_exit(node, answer.out.text, answer.err.text)


def _make_state(inventory: Inventory) -> State:
    source = inventory.source
    defaults = {
        # pyinfra's own default accepts any new key, even where ssh_config says to be strict.
        "ssh_strict_host_key_checking": "yes",
        "ssh_connect_retries": 1,
    }
    for node in inventory.nodes:
        data = source.host_data[node.name]
        for key, value in defaults.items():
            if key not in node.data:
                data[key] = value
    config = Config(
        CONNECT_TIMEOUT=0,  # the watch has the deadlines
        PARALLEL=min(PARALLEL, len(inventory.nodes)),
        FAIL_PERCENT=100,
    )
    client.forget()
    try:
        return State(source, config, check_for_changes=False)
    except Exception as error:
        # pyinfra looks at the types of a host's data here, and raises what its checker raises.
        raise InventoryError(
            f"{inventory.path}: pyinfra cannot use a host's data: {error}",
            next_step="Correct the values that begin with ssh_.",
        ) from error
