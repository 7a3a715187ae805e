"""What a failed connection or a script that could not run means, and what to do about it.

Pure: texts of paramiko, sudo and the shell go in, errors come out.
"""

from __future__ import annotations

from pathlib import Path

from remedy.errors import HostKeyError, RemedyError, UnreachableError
from remedy.inventory import Node

# What the wrapper says on stderr where the ssh user is not root and the host has no sudo.
NO_SUDO = "this host has no sudo"


def explain_connect_error(inventory: Path, node: Node, text: str) -> RemedyError:
    """Return the error for the text of a failed connection, with what to do about it."""
    at = f"{node.name} ({node.ssh_address}:{node.ssh_port})"
    if "No host key for" in text:
        return HostKeyError(
            f"{at}: the ssh host key is not known, and remedy connects to known hosts only",
            next_step=f"Compare and record it: remedy trust {inventory} --limit {node.name}",
        )
    if "host key" in text.lower() and "does not match" in text:
        return HostKeyError(
            f"{at}: the ssh host key has CHANGED: another machine, or somebody in between",
            next_step="If the host was replaced, accept its new key: "
            f"remedy trust {inventory} --replace {node.name}",
        )
    if "Authentication" in text or "auth" in text.lower():
        return UnreachableError(
            f"{at}: the host refused to log us in: {text}",
            next_step="Check ssh_user and ssh_key of the inventory, and the key in the host's "
            "~/.ssh/authorized_keys.",
        )
    if "resolve" in text:
        return UnreachableError(
            f"{at}: this machine cannot resolve {node.ssh_address!r}",
            next_step="Set ssh_hostname of that host to an address in the inventory.",
        )
    return UnreachableError(
        f"{at}: no connection: {text}",
        next_step=f"Is the host up and its sshd reachable from here? ssh -p {node.ssh_port} "
        f"{node.ssh_address}",
    )


def explain_exit(node: Node, stdout: str, stderr: str) -> RemedyError | None:
    """Return the error of a script that did not exit with 0, or None when the script itself reported it.

    Scripts of remedy exit with 0 when they could say what they had to; anything else is a host that could
    not run them.
    """
    if "incorrect password" in stderr or "Sorry, try again" in stderr:
        return RemedyError(
            f"{node.name}: sudo did not accept the password",
            next_step="Type it again; all hosts of a run must share it.",
        )
    if "password is required" in stderr or "authentication is required" in stderr:
        return RemedyError(
            f"{node.name}: sudo asks for a password",
            next_step="Give it once with --ask-sudo-password, or allow the user NOPASSWD in sudoers.",
        )
    if NO_SUDO in stderr:
        return RemedyError(
            f"{node.name}: the ssh user is not root, and the host has no sudo",
            next_step="Install sudo there, or connect as root: ssh_user in the inventory.",
        )
    if (
        "not in the sudoers" in stderr
        or "may not run sudo" in stderr
        or "not allowed to execute" in stderr
    ):
        return RemedyError(
            f"{node.name}: the ssh user may not use sudo",
            next_step="Connect as root or as a user that may: ssh_user in the inventory.",
        )
    if not stdout and not stderr:
        return RemedyError(
            f"{node.name}: the script printed nothing, or ran out of time",
            next_step="Check the host's load, then run the command again.",
        )
    if not stdout:
        return RemedyError(
            f"{node.name}: the host could not run the script: {stderr.strip().splitlines()[-1]}",
            next_step="Log in with ssh and try `sh -s` there.",
        )
    return None
