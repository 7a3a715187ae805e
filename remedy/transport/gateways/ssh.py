"""One command on a gateway, by ssh from here, through the gateways that it stands behind."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from gevent import subprocess as cooperative

from remedy.spec import SshSpec
from remedy.transport.gateways.asking import Login
from remedy.transport.gateways.options import PLAIN
from remedy.transport.gateways.routes import Routes

MOST = 16 << 20
"""Bytes of what a gateway prints that are read."""


@dataclass(frozen=True)
class GatewayAnswer:
    """What a command on a gateway printed.

    Args:
        out: its standard output.
        errors: its errors, and those of ssh.
        code: its exit code; None where it was not over in time.
    """

    out: str
    errors: str
    code: int | None = None


def way_to(
    routes: Routes, spec: SshSpec, path: Sequence[str], login: Login, command: str, mark: str = ""
) -> list[str]:
    """Return the words that run a command on a gateway.

    Args:
        routes: of all gateways.
        spec: the deadlines.
        path: the gateways on the way, that one last.
        login: how a gateway's ssh reaches what is behind it.
        command: for the gateway's shell.
        mark: a word that each gateway on the way prints with its place on it, from 0; "" for none.
    """
    ssh = ["ssh", *PLAIN, f"-oConnectTimeout={spec.connect:.0f}", "-oServerAliveInterval=10"]
    for place, gateway in reversed([*enumerate(path)]):
        line = f"echo {mark} {place}; {command}" if mark else command
        if not place:
            *words, address = routes.door(gateway)
            return [*ssh, *words, "--", address, line]
        address = shlex.quote(routes.address(gateway))
        command = f"{shlex.join(ssh)} {login.words} -- {address} {shlex.quote(line)}"
    raise ValueError("no gateway")


def run_ssh(words: Sequence[str], text: str, seconds: float) -> GatewayAnswer:
    """Run ssh with a text as its input, while others of this process go on."""
    if shutil.which("ssh") is None:
        return GatewayAnswer("", "there is no ssh on this machine (openssh-client)")
    try:
        done = cooperative.run(
            [*words],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return GatewayAnswer("", f"no answer within {seconds:.0f} s")
    out, errors = (
        content[:MOST].decode("utf-8", "backslashreplace") for content in (done.stdout, done.stderr)
    )
    return GatewayAnswer(out, errors, done.returncode)
