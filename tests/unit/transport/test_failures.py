"""Each failure says what it is: the stage, who refused, and what to look at; never what it only resembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remedy.errors import (
    ChangedKeyError,
    HostKeyError,
    RemedyError,
    RevokedKeyError,
    UnreachableError,
)
from remedy.inventory import Node
from remedy.spec import SshSpec
from remedy.text import SSHD_LOG
from remedy.transport.failures import (
    explain_connect_error,
    explain_exit,
    explain_flood,
    explain_loss,
    explain_no_start,
    explain_stuck,
    refusal_of_sudo,
    ssh_command,
)
from remedy.transport.refused import KeyRefusedError, explain_key
from remedy.transport.stages import Stage, Stuck, limit
from remedy.trust import KeyDecision, KeyState, ShownKey, SshServer
from remedy.trust.known_hosts import Entry, Marker

NODE = Node("gpu02", "192.0.2.12", 2222, data={"ssh_user": "trainer"})


@pytest.mark.parametrize("stage", Stage)
def test_a_stuck_host_is_named_with_its_stage_and_the_time_it_was_given(stage: Stage) -> None:
    error = explain_stuck(NODE, Stuck(stage, 12))
    assert isinstance(error, UnreachableError)
    assert error.message.startswith(f"gpu02 (192.0.2.12:2222): stuck in the stage '{stage.value}'")
    assert "12 s" in error.message
    assert error.next_step
    assert "authorized_keys" not in str(error)


def test_a_jump_host_is_named_where_it_is_the_stuck() -> None:
    error = explain_stuck(NODE, Stuck(Stage.LOGIN, 12, via="192.0.2.1"))
    assert "at its jump host 192.0.2.1: stuck in the stage 'login'" in error.message
    onward = explain_stuck(NODE, Stuck(Stage.CONNECT, 12, via="192.0.2.1"))
    assert "no connection from there to the host" in onward.message


def test_sudo_and_silence_are_told_apart_from_the_shell_and_the_script() -> None:
    assert "sudo did not start the script" in Stuck(Stage.COMMAND, 9, sudo=True).reason
    assert "login shell" in Stuck(Stage.COMMAND, 9).reason
    assert "no sign of life" in Stuck(Stage.OUTPUT, 9, silent=True).reason
    assert "deadline on the host" in Stuck(Stage.OUTPUT, 9).reason


def test_every_stage_has_a_deadline_of_the_settings_but_the_script() -> None:
    spec = SshSpec(name=1, connect=2, key_exchange=3, login=4, channel=5, command=6)
    assert [limit(spec, stage) for stage in Stage] == [1, 2, 3, 4, 5, 6, float("inf")]


@pytest.mark.parametrize(
    ("text", "kind", "message", "next_step"),
    [
        ("Authentication error (username=x) (Authentication failed.)", UnreachableError,
         "refused the login", "authorized_keys"),
        ("Authentication error (username=x) (Authentication failed.)", UnreachableError,
         "refused the login", "AllowUsers"),
        ("Authentication error (username=x) (Authentication failed: transport shut down or saw EOF)",
         UnreachableError, "sshd closed the connection at the end of the login", "/etc/nologin"),
        ("SSH error (Error reading SSH protocol banner[Errno 104] Connection reset by peer)",
         UnreachableError, "closed before sshd's greeting", "/etc/hosts.deny"),
        ("SSH error (Incompatible ssh peer (no acceptable kex algorithm))", UnreachableError,
         "no algorithm in common", "sshd -T"),
        ("SSH error (No authentication methods available)", UnreachableError,
         "no ssh key to log in with", "ssh-add -l"),
        ("PyinfraError: Private key file (k) is encrypted, set ssh_key_password to use this key",
         UnreachableError, "the ssh key is encrypted", "ssh-add"),
        ("Could not resolve hostname ([Errno -2] Name or service not known)", UnreachableError,
         "cannot resolve '192.0.2.12'", "ssh_hostname"),
        ("Could not connect ([Errno 111] Connection refused)", UnreachableError,
         "no connection", "ssh -p 2222 -l trainer 192.0.2.12"),
    ],
)  # fmt: skip
def test_a_connection_that_failed(
    text: str, kind: type[RemedyError], message: str, next_step: str
) -> None:
    error = explain_connect_error(NODE, text)
    assert type(error) is kind
    assert message in error.message
    assert next_step in error.next_step


@pytest.mark.parametrize(
    ("state", "kind", "message", "next_step"),
    [
        (KeyState.NEW, HostKeyError, "is not known", "remedy trust inventory.py --limit gpu02"),
        (KeyState.CHANGED, ChangedKeyError, "has CHANGED", "remedy trust inventory.py --replace gpu02"),
        (KeyState.REVOKED, RevokedKeyError, "is REVOKED (known_hosts:7)", "a new key"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_accepted(
    state: KeyState, kind: type[RemedyError], message: str, next_step: str
) -> None:
    error = explain_key(Path("inventory.py"), NODE, refused(state))
    assert type(error) is kind
    assert message in error.message
    assert next_step in error.next_step


@pytest.mark.parametrize(
    ("state", "message", "next_step"),
    [
        (KeyState.NEW, "the jump host's ssh key is not known", "remedy trust inventory.py --limit gpu02"),
        (KeyState.CHANGED, "has CHANGED", "ssh-keygen -R 192.0.2.1"),
        (KeyState.REVOKED, "the jump host's ssh key is REVOKED", "a new key"),
    ],
)  # fmt: skip
def test_the_key_of_a_jump_host_is_not_taken_for_the_hosts_own(
    state: KeyState, message: str, next_step: str
) -> None:
    error = explain_key(Path("inventory.py"), NODE, refused(state, via="192.0.2.1"))
    assert "at its jump host 192.0.2.1" in error.message
    assert message in error.message
    assert next_step in error.next_step


def refused(state: KeyState, via: str = "") -> KeyRefusedError:
    entry = None
    if state is not KeyState.NEW:
        entry = Entry(Marker.HOST, "*", "ssh-ed25519", b"", Path("known_hosts"), 7)
    server = SshServer(via or NODE.ssh_address, 22)
    return KeyRefusedError(server, KeyDecision(state, entry), ShownKey(b""), via)


def test_the_last_words_of_a_proxy_command_are_shown_and_harmless() -> None:
    error = explain_connect_error(
        NODE, "SSH error (EOF)", proxy="Host key \x1b[31mverification failed."
    )
    assert "its ProxyCommand ended: Host key \\x1b[31mverification failed." in error.message
    assert "ProxyCommand of ~/.ssh/config by hand" in error.next_step


@pytest.mark.parametrize(
    ("text", "via", "message", "step"),
    [
        ("cannot resolve", "", "cannot resolve 'gpu02'", "Give an address in the inventory"),
        ("cannot resolve", "head", "cannot resolve 'head'", "Correct the ProxyJump of my config"),
        (
            "SSH error (ssh cannot read its configuration: my config: line 3: Bad)",
            "",
            "gpu02: SSH error (ssh cannot read its configuration",
            "Correct my config; ssh -F 'my config' gpu02 shows it whole.",
        ),
    ],
)
def test_what_is_wrong_with_an_ssh_config_is_to_be_corrected_there(
    text: str, via: str, message: str, step: str
) -> None:
    node = Node("gpu02", "gpu02", data={"ssh_config_file": "my config"})
    error = explain_connect_error(node, text, via=via)
    assert message in error.message
    assert step in error.next_step


@pytest.mark.parametrize(
    ("data", "text", "message", "step"),
    [
        ({"ssh_key": "k"}, "No such private key file: k", "leads to no file: k", "seen from /"),
        (
            {"ssh_key": "k.pub"},
            "Invalid private key file: k.pub",
            "cannot be read as a private key: k.pub",
            "the private key, not the public one: k",
        ),
        (
            {"ssh_key": "a k", "ssh_key_password": "no"},
            "Invalid private key file: a k",
            "as a private key with ssh_key_password: a k",
            "ssh-keygen -y -f 'a k'",
        ),
        (
            {},
            "SSH error (not a valid OPENSSH private key file)",
            "no ssh key to log",
            "IdentityFile",
        ),
    ],
)
def test_a_key_that_is_none_is_said_of_the_file_and_not_of_the_host(
    data: dict[str, str], text: str, message: str, step: str
) -> None:
    error = explain_connect_error(Node("gpu02", "gpu02", data=data), f"PyinfraError: {text}")
    assert message in error.message
    assert step in error.next_step
    assert "PyinfraError" not in error.message


def test_a_command_to_type_reads_the_ssh_config_that_the_inventory_names() -> None:
    node = Node("gpu02", "gpu02", data={"ssh_config_file": "my config", "ssh_user": "ops"})
    refused = "Could not connect ([Errno 111] Connection refused)"
    steps = [explain_connect_error(node, refused, via=via).next_step for via in ("", "head")]
    assert steps[0].endswith("? ssh -F 'my config' -l ops gpu02")
    assert steps[1].endswith("? ssh -F 'my config' head")
    assert ssh_command(node, is_from_here=False) == "ssh -l ops gpu02"
    proxied = explain_connect_error(node, "SSH error (EOF)", proxy="no route")
    assert "ProxyCommand of my config by hand" in proxied.next_step


@pytest.mark.parametrize(
    ("stderr", "message", "next_step"),
    [
        ("remedy: sudo: sorry, you must have a tty to run sudo", "without a terminal (requiretty",
         "Defaults:trainer !requiretty"),
        ("remedy: sudo: a password is required", "asks for a password", "--ask-sudo-password"),
        ("remedy: this host has no sudo", "has no sudo", "Install sudo"),
        ("remedy: trainer is not in the sudoers file.", "may not use sudo", "ssh_user"),
        ("timeout: failed to run command 'sh': Permission denied", "noexec in sudoers",
         "Defaults:trainer !noexec"),
        ("timeout: can't execute 'sh': Permission denied", "noexec in sudoers", "sudo -l"),
        ("sh: 1: timeout: not found", "could not run the script: sh: 1: timeout: not found", "sh -s"),
        ("", "printed nothing", "load"),
    ],
)  # fmt: skip
def test_a_script_that_could_not_run(stderr: str, message: str, next_step: str) -> None:
    error = explain_exit(NODE, "", stderr)
    assert error is not None
    assert message in error.message
    assert next_step in error.next_step


def test_words_of_sudo_are_those_behind_the_mark_of_the_wrapper() -> None:
    assert refusal_of_sudo("a warning\nremedy: sudo: no tty\nmore\n") == "sudo: no tty"
    assert refusal_of_sudo("sudo: no tty\nnot remedy: x\n") == ""
    assert len(refusal_of_sudo(f"remedy: {'x' * 9000}\n")) < 300


def test_a_login_shell_that_ends_is_no_refused_key() -> None:
    error = explain_no_start(NODE, "\nThis account is currently not available.\n")
    assert "login was accepted" in error.message
    assert "This account is currently not available." in error.message
    assert "/etc/passwd" in error.next_step
    assert "printed nothing" in explain_no_start(NODE, " \n").message
    due = explain_no_start(NODE, "Password change required but no TTY available.\n")
    assert "password has to be changed first" in due.message
    assert "chage -d" in due.next_step


def test_a_session_that_is_refused_is_no_broken_connection() -> None:
    refused = explain_loss(
        NODE, Stage.CHANNEL, "ChannelException: (1, 'Administratively prohibited')"
    )
    assert "sshd opened no session" in refused.message
    limited = explain_loss(NODE, Stage.COMMAND, "SSHException: Channel closed.")
    assert "sshd began no command" in limited.message
    assert SSHD_LOG in limited.next_step
    broken = explain_loss(NODE, Stage.OUTPUT, "EOFError: ")
    assert "the connection broke while the script ran" in broken.message


def test_a_flood_is_a_failed_host_and_long_text_is_cut() -> None:
    assert explain_flood(NODE, "the script printed more than 32 MiB").exit_code == 1
    assert len(explain_no_start(NODE, "x" * 5000).message) < 400


@pytest.mark.parametrize(
    ("data", "command"),
    [
        ({}, "ssh 192.0.2.12"),
        ({"ssh_port": 22}, "ssh -p 22 192.0.2.12"),
        ({"ssh_port": 2222, "ssh_user": "a b"}, "ssh -p 2222 -l 'a b' 192.0.2.12"),
    ],
)
def test_the_way_in_by_hand_is_that_of_the_inventory(data: dict[str, Any], command: str) -> None:
    node = Node("gpu02", "192.0.2.12", data.get("ssh_port", 22), data=data)
    down = explain_connect_error(node, "Could not connect ([Errno 111] Connection refused)")
    assert down.next_step.endswith(f"? {command}")
    assert explain_flood(node, "more").next_step.endswith(f": {command} true | head")
    assert explain_loss(node, Stage.OUTPUT, "EOFError").next_step.endswith(f": {command}")
    jump = explain_connect_error(node, "Could not connect", via="head node")
    assert jump.next_step.endswith("? ssh 'head node'")


@pytest.mark.parametrize(
    ("node", "place"),
    [
        (Node("gpu02", "192.0.2.12"), "gpu02 (192.0.2.12:22)"),
        (Node("gpu02", "gpu02"), "gpu02"),
        (Node("gpu02", "alias"), "gpu02 (alias)"),
        (Node("gpu02", "alias", 22, data={"ssh_port": 22}), "gpu02 (alias:22)"),
        (Node("gpu02", "gpu02", 2222), "gpu02 (gpu02:2222)"),
    ],
)
def test_no_port_is_claimed_that_ssh_config_may_say(node: Node, place: str) -> None:
    down = explain_connect_error(node, "Could not connect")
    assert down.message == f"{place}: no connection: Could not connect"


@pytest.mark.parametrize(
    "refusal",
    [
        "remedy: sudo: 1 incorrect password attempt",
        # sudo-rs 0.2.5
        "remedy: sudo: Authentication failed, try again. sudo: Maximum 3 incorrect authentication attempts",
    ],
)
def test_a_wrong_password_is_corrected_where_it_is(refusal: str) -> None:
    typed, own = (
        explain_exit(Node("gpu02", "192.0.2.12", data=data), "", refusal)
        for data in ({}, {"_sudo_password": "geheim"})
    )
    assert typed is not None
    assert own is not None
    assert "Type it again" in typed.next_step
    assert own.next_step == "Correct _sudo_password in the inventory."
