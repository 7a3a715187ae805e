"""What a failed connection or a script that could not run means, and what to do about it.

Pure: texts of paramiko, sudo and the shell go in, errors come out.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from remedy.errors import RemedyError, UnreachableError
from remedy.inventory import Node
from remedy.text import SSHD_LOG, TRACE_START_UP, quoted
from remedy.transport.stages import Stage, Stuck
from remedy.transport.wrapper import FORGETS, NO_SUDO

# Of what a host printed, a message shows this much.
_SHOWN = 200
# sudo(8), and sudo-rs 0.2: src/sudo/pam.rs, src/common/error.rs.
_WRONG_PASSWORD = ("incorrect password", "Sorry, try again", "Authentication failed, try again")
# What the wrapper says where sudo refused, and the script runs without root.
_REFUSED = re.compile(r"^remedy: (?P<words>.+)$", re.MULTILINE)


def explain_stuck(node: Node, stuck: Stuck) -> RemedyError:
    """Return the error of a host that is stuck in a stage."""
    return UnreachableError(
        f"{at_host(node, stuck.via)}: stuck in the stage {stuck.stage.value!r}: {stuck.reason}",
        next_step=stuck.next_step,
    )


def explain_loss(node: Node, stage: Stage | None, text: str) -> RemedyError:
    """Return the error of a connection that broke after the login."""
    if stage is Stage.CHANNEL:
        return UnreachableError(
            f"{at_host(node)}: the login was accepted, and then sshd opened no session: {_shown(text)}",
            next_step=f"PAM's session part or MaxSessions refuses it. On its console: {SSHD_LOG}",
        )
    if stage is Stage.COMMAND:
        return UnreachableError(
            f"{at_host(node)}: the login was accepted, and then sshd began no command: {_shown(text)}",
            next_step="A limit of the session (/etc/security/limits.d), or memory, stops it. On its console: "
            f"{SSHD_LOG}",
        )
    return UnreachableError(
        f"{at_host(node)}: the connection broke while the script ran: {_shown(text)}",
        next_step=f"Check the host's console and network, then run the command again: {ssh_command(node)}",
    )


def explain_flood(node: Node, text: str) -> RemedyError:
    """Return the error of a host that prints without end."""
    return RemedyError(
        f"{node.name}: {text}",
        next_step=f"Log in and check what is printed: {ssh_command(node)} true | head",
    )


def explain_no_start(node: Node, output: str) -> RemedyError:
    """Return the error of a login shell that ended before it began the command.

    Args:
        node: the host.
        output: what the shell printed, of both streams.
    """
    lines = [line for line in output.splitlines() if line.strip()]
    if "Password change required" in output:
        return UnreachableError(
            f"{at_host(node)}: the login was accepted, and the user's password has to be changed first: "
            f"{_shown(lines[-1].strip())}",
            next_step="Change it by hand (ssh with a terminal), or, where only keys are used, on its console: "
            "chage -d $(date +%F) USER",
        )
    printed = f"; it printed: {_shown(lines[-1].strip())}" if lines else ", and printed nothing"
    return UnreachableError(
        f"{at_host(node)}: the login was accepted, and the login shell ended before the command began{printed}",
        next_step="Check the user's shell in /etc/passwd, any `exit` or `exec` in its start-up files "
        "(~/.bashrc, ~/.zshenv, ~/.ssh/rc), and a "
        "`command=` in ~/.ssh/authorized_keys or ForceCommand in sshd_config. The line at which ~/.bashrc "
        f"ends, on the host's console as that user: {TRACE_START_UP}",
    )


def explain_connect_error(node: Node, text: str, *, via: str = "", proxy: str = "") -> RemedyError:
    """Return the error for the text of a failed connection, with what to do about it.

    Args:
        node: the host.
        text: what pyinfra or paramiko said.
        via: the jump host at which it failed; "" for the host itself.
        proxy: the last words of the ProxyCommand that ended.
    """
    at = at_host(node, via)
    typed = " ".join(("ssh", *_config(node), quoted(via))) if via else ssh_command(node)
    if proxy:
        return UnreachableError(
            f"{at}: no connection: its ProxyCommand ended: {_shown(proxy)}",
            next_step=f"Run the ProxyCommand of {_config_file(node)} by hand; it has no terminal to ask at "
            "here.",
        )
    if (error := _explain_key_file(node, text, at)) is not None:
        return error
    if "Authentication" in text and ("saw EOF" in text or "shut down" in text):
        return UnreachableError(
            f"{at}: sshd closed the connection at the end of the login: {_shown(text)}",
            next_step="PAM's account part refuses: an expired or locked account (chage -l USER), /etc/nologin, "
            f"/etc/security/access.conf. On its console: {SSHD_LOG}",
        )
    if "Authentication" in text:
        return UnreachableError(
            f"{at}: the host refused the login: {_shown(text)}",
            next_step="Check ssh_user and ssh_key of the inventory, the key in the host's "
            "~/.ssh/authorized_keys, and AllowUsers, DenyUsers and PermitRootLogin in its sshd_config. Which "
            f"it was, on its console: {SSHD_LOG}",
        )
    if "protocol banner" in text:
        return UnreachableError(
            f"{at}: the connection was taken, and closed before sshd's greeting: {_shown(text)}",
            next_step="It refuses this machine, or too many at once: /etc/hosts.deny, MaxStartups, "
            f"PerSourceMaxStartups, fail2ban. On its console: {SSHD_LOG}",
        )
    if "Incompatible ssh" in text:
        return UnreachableError(
            f"{at}: its sshd has no algorithm in common with remedy: {_shown(text)}",
            next_step="Allow one more in its sshd_config, such as curve25519-sha256 or aes256-ctr. What it "
            "has, on its console: sshd -T | grep -E 'algorithms|ciphers|macs'",
        )
    if (error := _explain_config(node, text, via, typed)) is not None:
        return error
    return UnreachableError(
        f"{at}: no connection: {_shown(text)}",
        next_step=f"Is the host up and its sshd reachable from here? {typed}",
    )


def _explain_key_file(node: Node, text: str, at: str) -> RemedyError | None:
    """Return the error of a login without a key that can be used; None where one was."""
    words = text.removeprefix("PyinfraError: ")
    # Of the inventory: the keys that ssh_config names are tried in turn.
    file = str(node.data.get("ssh_key") or "")
    if "encrypted" in words and "key" in words.lower():
        return UnreachableError(
            f"{at}: the ssh key is encrypted: {_shown(words)}",
            next_step="Load it into the ssh agent (ssh-add), or give ssh_key_password in the inventory.",
        )
    if file and "No such private key file" in words:
        return UnreachableError(
            f"{at}: ssh_key of the inventory leads to no file: {_shown(file)}",
            next_step=f"Give its path, seen from {Path.cwd()}, or from the root.",
        )
    if file and "Invalid private key file" in words:
        hint = "Give the private key, not the public one: " if file.endswith(".pub") else ""
        has_password = bool(node.data.get("ssh_key_password"))
        return UnreachableError(
            f"{at}: ssh_key of the inventory cannot be read as a private key"
            f"{' with ssh_key_password' * has_password}: {_shown(file)}",
            next_step=f"{hint}{file.removesuffix('.pub')}"
            if hint
            else f"Check it by hand: ssh-keygen -y -f {quoted(file)}",
        )
    if "No authentication methods available" in words or "private key file" in words:
        return UnreachableError(
            f"{at}: there is no ssh key to log in with: {_shown(words)}",
            next_step="Set ssh_key in the inventory or IdentityFile in ssh_config, or load a key into the "
            "ssh agent (ssh-add -l).",
        )
    return None


def _explain_config(node: Node, text: str, via: str, typed: str) -> RemedyError | None:
    """Return the error of a name or an ssh_config that leads nowhere; None of what failed on the way."""
    at = at_host(node, via)
    if "resolve" in text:
        return UnreachableError(
            f"{at}: this machine cannot resolve {via or node.ssh_address!r}",
            next_step=f"Correct the ProxyJump of {_config_file(node)}, or give that host a HostName there."
            if via
            else "Give an address in the inventory: ssh_hostname.",
        )
    if "cannot read its configuration" in text:
        return UnreachableError(
            f"{at}: {_shown(text)}",
            next_step=f"Correct {_config_file(node)}; {typed} shows it whole.",
        )
    return None


def explain_exit(node: Node, stdout: str, stderr: str) -> RemedyError | None:
    """Return the error of a script that did not exit with 0, or None when the script itself reported it.

    Scripts of remedy exit with 0 when they could say what they had to; anything else is a host that could
    not run them.
    """
    if (error := explain_sudo(node, stderr)) is not None:
        return error
    if not stdout and not stderr:
        return RemedyError(
            f"{node.name}: the script printed nothing, or ran out of time",
            next_step="Check the host's load, then run the command again.",
        )
    if not stdout:
        return RemedyError(
            f"{node.name}: the host could not run the script: {_shown(stderr.strip().splitlines()[-1])}",
            next_step="Log in with ssh and try `sh -s` there.",
        )
    return None


def refusal_of_sudo(stderr: str) -> str:
    """Return the words with which sudo refused a script that then ran without root; "" for none.

    Args:
        stderr: what the host printed on standard error.
    """
    match = _REFUSED.search(stderr)
    return _shown(match["words"].strip()) if match else ""


def explain_sudo(node: Node, stderr: str) -> RemedyError | None:
    """Return why sudo did not make the ssh user root, None where its words are not known.

    Args:
        node: the host.
        stderr: what sudo, or what it started, printed.
    """
    if any(words in stderr for words in _WRONG_PASSWORD):
        step = "Type it again; a host with a different one needs _sudo_password in the inventory."
        if node.data.get("_sudo_password"):
            step = "Correct _sudo_password in the inventory."
        return RemedyError(f"{node.name}: sudo did not accept the password", next_step=step)
    if "must have a tty" in stderr:
        return RemedyError(
            f"{node.name}: sudo refuses to run without a terminal (requiretty in sudoers)",
            next_step="Allow it for this user, with visudo: "
            f"Defaults:{node.data.get('ssh_user') or 'USER'} !requiretty",
        )
    if (
        "'sh': Permission denied" in stderr
    ):  # timeout says so: sudo itself runs it, and it may run nothing
        return RemedyError(
            f"{node.name}: what sudo starts may start no other program there (noexec in sudoers)",
            next_step="Allow it for this user, with visudo: "
            f"Defaults:{node.data.get('ssh_user') or 'USER'} !noexec (sudo -l on the host shows what holds)",
        )
    if "password is required" in stderr or "authentication is required" in stderr:
        return RemedyError(
            f"{node.name}: sudo asks for a password",
            next_step="Give it once with --ask-sudo-password, or allow the user NOPASSWD in sudoers.",
        )
    if FORGETS in stderr:
        return RemedyError(
            f"{node.name}: sudo-rs before 0.2.7 takes a password only where it remembers the login",
            next_step="Install sudo-rs 0.2.7 or later there, take timestamp_timeout=0 out of its sudoers, or "
            "allow the user NOPASSWD.",
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
    return None


def ssh_command(node: Node, *, is_from_here: bool = True) -> str:
    """Return how a user logs in to a host: what the inventory does not say is left to ssh_config.

    Args:
        node: the host.
        is_from_here: whether on this machine, which has the ssh_config that the inventory names.
    """
    has_port = node.ssh_port != 22 or bool(node.data.get("ssh_port"))
    user = node.data.get("ssh_user")
    options = [f"-p {node.ssh_port}"] * has_port + [f"-l {quoted(user)}"] * bool(user)
    config = _config(node) if is_from_here else ()
    return " ".join(("ssh", *config, *options, quoted(node.ssh_address)))


def _config(node: Node) -> tuple[str, ...]:
    """Return the options with which ssh reads the ssh_config of a host."""
    file = node.data.get("ssh_config_file")
    return ("-F", quoted(file)) if file else ()


def _config_file(node: Node) -> str:
    return str(node.data.get("ssh_config_file") or "~/.ssh/config")


def at_host(node: Node, via: str = "") -> str:
    """Return which host, and where on the way to it."""
    name, address = node.name, node.ssh_address
    if _has_port(node):
        name = f"{name} ({address}:{node.ssh_port})"
    elif address != name:
        name = f"{name} ({address})"
    return f"{name}, at its jump host {via}" if via else name


def _has_port(node: Node) -> bool:
    """Say whether the port is known here: that of a name alone is what ssh_config says of it."""
    if node.ssh_port != 22 or node.data.get("ssh_port"):
        return True
    try:
        ipaddress.ip_address(node.ssh_address)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    """Return text of others on one line, with control characters visible, and not too much of it."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
