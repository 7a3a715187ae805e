"""How a script gets its rights on a host: as the inventory says, and with whose password."""

from __future__ import annotations

from dataclasses import replace

from pydantic import SecretStr

from remedy.inventory import Node
from remedy.transport.script import Root, Script


def privileges(node: Node, script: Script, typed: SecretStr | None) -> tuple[Script, str | None]:
    """Return a script as a host has to run it, and the password for its sudo; None where there is none.

    Args:
        node: the host.
        script: what it is to run.
        typed: the password that was typed for all hosts.
    """
    # A host that has a password of its own never learns the one that was typed for the others.
    password_of_host = node.data.get("_sudo_password")
    if node.data.get("_sudo") and script.root is Root.PREFERRED:
        # The inventory says that there is sudo: where it refuses, that is an error, and not less to read.
        script = replace(script, root=Root.REQUIRED)
    if password_of_host:
        return script, str(password_of_host)
    return script, None if typed is None else typed.get_secret_value()
