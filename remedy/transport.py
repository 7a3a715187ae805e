"""Running scripts on hosts, over pyinfra: the only module that imports its connection machinery.

A ``Script`` is POSIX sh text that travels on the standard input of one ``sh -s`` on the host: no
temporary file, no argument list that others can read, no limit on its size. The host itself ends it at
its deadline. Everything that goes wrong with one host is that host's ``Output.error``; nothing is raised.

pyinfra is used through its connector (connect, run one command) and its operation runner. It is about
to replace gevent and paramiko (pyinfra pull request 1957), so neither name is used elsewhere.
"""

from __future__ import annotations

import remedy.cooperative  # noqa: F401  (first, before others import sockets)

# isort: split
import enum
import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gevent
from gevent.lock import BoundedSemaphore
from pydantic import SecretStr
from pyinfra.api.command import StringCommand
from pyinfra.api.config import Config
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.operations import run_host_op
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from remedy.contact import NO_SUDO, explain_connect_error, explain_exit
from remedy.errors import RemedyError, UnreachableError
from remedy.inventory import Inventory, Node

# pyinfra reports each failed host on its own logger; remedy reports hosts itself, once.
logging.getLogger("pyinfra").addHandler(logging.NullHandler())
logging.getLogger("pyinfra").propagate = False

# sshd drops connections above MaxStartups (10:30:100) only while they are not yet authenticated, and
# that is counted per host; what limits us is the controller: about 2 MB and one key exchange each.
PARALLEL = 128
CONNECT_TIMEOUT = 10
# How long after the host's own deadline the controller goes on waiting for the last output.
PATIENCE = 15
# Between the polite and the certain end of a script.
KILL_AFTER = 5


class Root(enum.Enum):
    """Whether a script runs as root, by sudo where the ssh user is another."""

    NO = "no"
    PREFERRED = (
        "preferred"  # as the ssh user where there is no sudo: what needs root is then unknown
    )
    REQUIRED = "required"


@dataclass(frozen=True)
class Script:
    """A shell text to run on one host.

    Args:
        text: POSIX sh, given to ``sh -s``.
        deadline: seconds after which the host ends it.
        root: whether it has to run as root.
    """

    text: str
    deadline: float
    root: Root = Root.NO


@dataclass(frozen=True)
class Output:
    """What one script gave on one host.

    ``error`` is None when the script ran to its end by itself, whatever its exit code; ``ended_at`` is when
    that was heard, by this machine's clock (epoch nanoseconds).
    """

    host: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    error: RemedyError | None = None
    ended_at: int = 0


@dataclass(frozen=True)
class HostEvent:
    """A host went from one stage to the next: connecting, running, done or failed."""

    host: str
    stage: str
    detail: str = ""


Listener = Callable[[HostEvent], None]


class Transport:
    """Connections to the hosts of one inventory, opened when first used and kept.

    Args:
        inventory: where the hosts are.
        sudo_password: for users whose sudo asks for one.
        listener: is told of each host's stages.
    """

    def __init__(
        self,
        inventory: Inventory,
        *,
        sudo_password: SecretStr | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.inventory = inventory
        self.counts: Counter[str] = Counter()
        self._sudo_password = sudo_password
        self._listen = listener or (lambda _: None)
        self._state = _make_state(inventory)
        self._connecting = BoundedSemaphore(PARALLEL)

    def run(
        self, scripts: Mapping[str, Script], heard: Callable[[Output], None] | None = None
    ) -> dict[str, Output]:
        """Run each host's script, all hosts at once, and return when all have ended.

        Connecting is limited to ``PARALLEL`` at a time, running is not: the ranks of a collective wait for
        each other.

        Args:
            scripts: by host.
            heard: is called with each host's output when it is there, while others are still at work.
        """

        def one(name: str, script: Script) -> Output:
            output = self._run_one(name, script)
            if heard is not None:
                heard(output)
            return output

        jobs = {name: gevent.spawn(one, name, script) for name, script in scripts.items()}
        gevent.joinall(list(jobs.values()), raise_error=True)
        return {name: job.value for name, job in jobs.items()}

    def carry(self, deploy: Callable[..., Any], scripts: Mapping[str, Script]) -> dict[str, Output]:
        """Run a pyinfra deploy that carries each host's script, on the hosts that can be reached.

        Args:
            deploy: a pyinfra ``@deploy``; called for each host with a function that gives the host's
                command and the text of its standard input, it must make one operation of them.
            scripts: what to carry, by host.
        """
        self._state.is_executing = False  # pyinfra prepares operations first and runs them then
        jobs = {name: gevent.spawn(self._connect, self.inventory.node(name)) for name in scripts}
        outputs = {
            name: failure for name, job in jobs.items() if (failure := job.get()) is not None
        }
        operations = {
            name: self._prepare(name, deploy, script)
            for name, script in scripts.items()
            if name not in outputs
        }
        self._state.is_executing = True
        with ctx_state.use(self._state):
            running = {
                name: gevent.spawn(self._operate, name, operation)
                for name, operation in operations.items()
            }
            outputs.update((name, job.get()) for name, job in running.items())
        return outputs

    def _prepare(self, name: str, deploy: Callable[..., Any], script: Script) -> str:
        """Have ``deploy`` make its operation for a host; return the operation's id."""
        host = self._state.inventory.get_host(name)
        before = set(self._state.ops[host])

        def parcel() -> tuple[StringCommand, str]:
            command, text = self._command(self.inventory.node(name), script)
            return StringCommand(command), text

        add_deploy(self._state, deploy, parcel, script.deadline + KILL_AFTER + PATIENCE, host=host)
        (operation,) = set(self._state.ops[host]) - before
        return operation

    def _operate(self, name: str, operation: str) -> Output:
        self._listen(HostEvent(name, "changing"))
        host = self._state.inventory.get_host(name)
        self.counts[f"exec:{name}"] += 1
        started = time.monotonic()
        try:
            with ctx_host.use(host):
                run_host_op(self._state, host, operation)
            meta = self._state.ops[host][operation].operation_meta
            stdout, stderr = meta.stdout, meta.stderr
        except Exception:
            # A connection that breaks shows as any of OSError, EOFError, SSHException, RuntimeError.
            return self._lost(name, time.monotonic() - started)
        code = 0 if meta.did_succeed() else None
        seconds = time.monotonic() - started
        output = self._output(self.inventory.node(name), stdout, stderr, code, seconds)
        self._listen(HostEvent(name, "failed" if output.error else "changed"))
        return output

    def reconnect(self, name: str) -> None:
        """Forget the connection to a host, so that the next script opens a new one."""
        host = self._state.inventory.get_host(name)
        client = getattr(host.connector, "client", None)
        if client is not None:
            client.close()
        host.connected = False

    def close(self) -> None:
        """Close every connection."""
        for name in self.inventory.names:
            self.reconnect(name)

    def _connect(self, node: Node) -> Output | None:
        host = self._state.inventory.get_host(node.name)
        if host.connected:
            return None
        self._listen(HostEvent(node.name, "connecting"))
        started = time.monotonic()
        self.counts[f"connect:{node.name}"] += 1
        error: RemedyError
        try:
            with self._connecting:
                host.connect(show_errors=False, raise_exceptions=True)
        except ConnectError as failure:
            error = explain_connect_error(
                self.inventory.path, node, str(failure.args[0] if failure.args else failure)
            )
        except Exception as failure:
            # paramiko and the crypto below it raise what they like on a broken peer or key file.
            error = explain_connect_error(
                self.inventory.path, node, f"{type(failure).__name__}: {failure}"
            )
        else:
            return None
        self._listen(HostEvent(node.name, "failed", error.message))
        return Output(host=node.name, error=error, seconds=time.monotonic() - started)

    def _run_one(self, name: str, script: Script) -> Output:
        node = self.inventory.node(name)
        failure = self._connect(node)
        if failure is not None:
            return failure
        self._listen(HostEvent(name, "running"))
        host = self._state.inventory.get_host(name)
        command, text = self._command(node, script)
        started = time.monotonic()
        self.counts[f"exec:{name}"] += 1
        try:
            ok, output = host.connector.run_shell_command(
                StringCommand(command),
                print_output=False,
                print_input=False,
                _stdin=text,
                _timeout=int(script.deadline) + KILL_AFTER + PATIENCE,
            )
        except Exception:
            # A connection that breaks shows as any of OSError, EOFError, SSHException, TimeoutError.
            return self._lost(name, time.monotonic() - started)
        seconds = time.monotonic() - started
        result = self._output(node, output.stdout, output.stderr, 0 if ok else None, seconds)
        self._listen(HostEvent(name, "failed" if result.error else "answered"))
        return result

    def _lost(self, name: str, seconds: float) -> Output:
        self.reconnect(name)
        error = UnreachableError(
            f"{name}: the connection broke, or the host went silent for {seconds:.0f} s",
            next_step=f"Look at the host's console and network, then run the command again: ssh {name}.",
        )
        self._listen(HostEvent(name, "failed", error.message))
        return Output(host=name, seconds=seconds, error=error)

    def _command(self, node: Node, script: Script) -> tuple[str, str]:
        """Return the command line for a script, and what goes to its standard input."""
        shell = f"timeout -k {KILL_AFTER} {script.deadline:.0f} sh -s"
        if script.root is Root.NO or node.data.get("ssh_user") == "root":
            return f"exec {shell}", script.text
        # Who refuses reads the script to its end first: else the connection breaks while it is still sent,
        # and the reason is lost. The reason is on one line with a mark in front: pyinfra would answer sudo's
        # own line with a question of its own, in the middle of a run.
        refuse = 'printf "%s" "remedy: $said" | tr "\\n" " " >&2; cat >/dev/null; exit 1'
        preferred = script.root is Root.PREFERRED
        lacking = f"exec {shell}" if preferred else f"said={shlex.quote(NO_SUDO)}; {refuse}"
        plain = (
            f'if [ "$(id -u)" = 0 ]; then exec {shell}; fi; '
            f"command -v sudo >/dev/null || {{ {lacking}; }}; "
        )
        password = self._sudo_password or _as_secret(node.data.get("_sudo_password"))
        if password is not None:
            # The password is the first line of the standard input: it is in no argument list and in no
            # file. `read` takes that line alone, and so does sudo -S (sudo(8)). It is tried by itself first,
            # since sudo would take lines of the script for further attempts; -k has sudo ask both times.
            ask = "sudo -k -S -p ''"
            command = (
                f"IFS= read -r p || exit 1; {plain}"
                f"if sudo -k -n true </dev/null 2>/dev/null; then exec sudo -n {shell}; fi; "
                f'said=$(printf "%s\\n" "$p" | {ask} true 2>&1) || {{ {refuse}; }}; '
                f'{{ printf "%s\\n" "$p"; cat; }} | {ask} {shell}'
            )
            return command, f"{password.get_secret_value()}\n{script.text}"
        otherwise = f"exec {shell}" if preferred else refuse
        ask = f"said=$(sudo -n true 2>&1 </dev/null) || {{ {otherwise}; }}"
        return f"{plain}{ask}; exec sudo -n {shell}", script.text

    def _output(
        self, node: Node, stdout: str, stderr: str, code: int | None, seconds: float
    ) -> Output:
        error = None if code == 0 else explain_exit(node, stdout, stderr)
        return Output(node.name, stdout, stderr, code, seconds, error, time.time_ns())


def _make_state(inventory: Inventory) -> State:
    source = inventory.source
    defaults = {
        # pyinfra's own default accepts any new key, even where ssh_config says to be strict.
        "ssh_strict_host_key_checking": "yes",
        "ssh_connect_retries": 1,
    }
    for node in inventory.nodes:
        own = source.host_data[node.name]
        for key, value in defaults.items():
            if key not in node.data:
                own[key] = value
    config = Config(
        CONNECT_TIMEOUT=CONNECT_TIMEOUT,
        PARALLEL=min(PARALLEL, len(inventory.nodes)),
        FAIL_PERCENT=100,
    )
    return State(source, config, check_for_changes=False)


def _as_secret(value: object) -> SecretStr | None:
    return SecretStr(str(value)) if value else None
