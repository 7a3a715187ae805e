"""Connections to hosts, and running scripts over them, all hosts at once.

pyinfra is used through its connector: connect, run one command. It is about to replace gevent and paramiko
(pyinfra pull request 1957), so neither name is used outside of this package.
"""

from __future__ import annotations

import remedy.transport.cooperative  # noqa: F401  (first, before others import sockets)

# isort: split
import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping

import gevent
from gevent.lock import BoundedSemaphore
from pydantic import SecretStr
from pyinfra.api.command import StringCommand
from pyinfra.api.config import Config
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.state import State

from remedy.errors import RemedyError, UnreachableError
from remedy.inventory import Inventory, Node
from remedy.transport.failures import NO_SUDO, explain_connect_error, explain_exit
from remedy.transport.script import HostEvent, Listener, Output, Root, Script

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


class Transport:
    """Connections to the hosts of one inventory, opened when first used and kept.

    Args:
        inventory: where the hosts are.
        sudo_password: for users whose sudo asks for one.
        listener: hears of each host's stages.
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
        self,
        scripts: Mapping[str, Script],
        on_output: Callable[[Output], None] | None = None,
        *,
        stage: str = "running",
    ) -> dict[str, Output]:
        """Run each host's script, all hosts at once, and return when all have ended.

        Connecting is limited to ``PARALLEL`` at a time, running is not: the ranks of a collective wait for
        each other.

        Args:
            scripts: by host.
            on_output: is called with each host's output when it is there, while others are still at work.
            stage: what listeners hear while a host is at it.
        """

        def run_on(name: str, script: Script) -> Output:
            output = self._run_on(name, script, stage)
            if on_output is not None:
                on_output(output)
            return output

        jobs = {name: gevent.spawn(run_on, name, script) for name, script in scripts.items()}
        gevent.joinall(list(jobs.values()), raise_error=True)
        return {name: job.value for name, job in jobs.items()}

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

    def _run_on(self, name: str, script: Script, stage: str) -> Output:
        node = self.inventory.node(name)
        failure = self._connect(node)
        if failure is not None:
            return failure
        self._listen(HostEvent(name, stage))
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
            f"{name}: the connection broke, or nothing came over it for {seconds:.0f} s",
            next_step=f"Check the host's console and network, then run the command again: ssh {name}.",
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
        data = source.host_data[node.name]
        for key, value in defaults.items():
            if key not in node.data:
                data[key] = value
    config = Config(
        CONNECT_TIMEOUT=CONNECT_TIMEOUT,
        PARALLEL=min(PARALLEL, len(inventory.nodes)),
        FAIL_PERCENT=100,
    )
    return State(source, config, check_for_changes=False)


def _as_secret(value: object) -> SecretStr | None:
    return SecretStr(str(value)) if value else None
