"""Faults of the way to a host: it is stuck at one of the stages between its name and the end of a script.

``unreachable`` (in ``system``) is the stage ``connect``; the stage ``name`` is this machine's own affair.
"""

from __future__ import annotations

from remedy.lab.fault import REPAIRED, WAY_BY_SSH, out_of_reach
from remedy.lab.faults import fault
from remedy.lab.host import Host

_SLEEP = "required pam_exec.so /bin/sleep 100000"
# Takes the place of timeout(1), the first program of each script of remedy: by then the login is over.
_AT_WORK = "/usr/local/bin/timeout"
_SHELL = "/usr/local/bin/sleeping-shell"
_DROP_ALL = """\
table inet lab_cut_off {
    chain input { type filter hook input priority -300; policy accept; iifname "eth0" drop; }
    chain output { type filter hook output priority -300; policy accept; oifname "eth0" drop; }
}
"""


@fault(
    "sshd-frozen",
    "sshd takes connections and says nothing (SIGSTOP)",
    repair=out_of_reach("'key exchange'"),
    log=WAY_BY_SSH,
)
def sshd_frozen(host: Host) -> None:
    host.must("kill -STOP $(systemctl show -p MainPID --value ssh)")


@fault(
    "login-sleeps",
    "PAM's account part sleeps: sshd exchanges keys and never ends the login",
    repair=out_of_reach("'login'"),
    log=WAY_BY_SSH,
)
def login_sleeps(host: Host) -> None:
    _pam_first(host, f"account {_SLEEP}")


@fault(
    "password-sleeps",
    "PAM's auth part sleeps: a password is never judged; keys are",
    repair=REPAIRED,
    log=WAY_BY_SSH,
    harmless="the login is by key",
)
def password_sleeps(host: Host) -> None:
    _pam_first(host, f"auth {_SLEEP}")
    host.write("/etc/ssh/sshd_config.d/0-lab-password.conf", b"PasswordAuthentication yes\n")
    host.must(["systemctl", "reload", "ssh"])


@fault(
    "session-sleeps",
    "PAM's session part sleeps: the login is accepted, no session is opened",
    repair=out_of_reach("'channel'"),
    log=WAY_BY_SSH,
)
def session_sleeps(host: Host) -> None:
    _pam_first(host, f"session {_SLEEP}")


@fault(
    "shell-sleeps",
    "the login shell of root is a program that sleeps",
    repair=out_of_reach("'command'"),
    log=WAY_BY_SSH,
    console="/usr/local/bin/sleeping-shell",
)
def shell_sleeps(host: Host) -> None:
    _program(host, _SHELL, "exec sleep 100000")
    host.must(["usermod", "-s", _SHELL, "root"])


@fault(
    "shell-floods",
    "root's .bashrc prints without end",
    repair=out_of_reach("printed 256 KiB"),
    log=WAY_BY_SSH,
)
def shell_floods(host: Host) -> None:
    host.write("/root/.bashrc", b"while :; do echo 'a line of a start-up file'; done\n")


@fault(
    "shell-chatters",
    "root's .bashrc prints on both outputs, the last line without an end",
    repair=REPAIRED,
    log=WAY_BY_SSH,
    harmless="what it prints is left out",
)
def shell_chatters(host: Host) -> None:
    host.write(
        "/root/.bashrc",
        b"echo welcome; echo 'sudo: a password is required' >&2; printf 'no end of line'\n",
    )


@fault(
    "shell-refuses",
    "the login shell of root is nologin",
    repair=out_of_reach("not available"),
    log=WAY_BY_SSH,
    console="/usr/sbin/nologin",
)
def shell_refuses(host: Host) -> None:
    host.must(["usermod", "-s", "/usr/sbin/nologin", "root"])


@fault(
    "script-frozen",
    "the first script of remedy freezes the sshd of its own session",
    repair=out_of_reach("no sign of life"),
    log=WAY_BY_SSH,
)
def script_frozen(host: Host) -> None:
    _program(host, _AT_WORK, "sleep 1; kill -STOP $(pgrep sshd); exec sleep 100000")


@fault(
    "script-endless",
    "the first script of remedy never ends, and its deadline is not kept",
    repair=out_of_reach("past its deadline on the host"),
    log=WAY_BY_SSH,
)
def script_endless(host: Host) -> None:
    _program(host, _AT_WORK, "exec sleep 100000")


@fault(
    "script-floods",
    "the first script of remedy prints without end and reads nothing",
    repair=out_of_reach("printed more than"),
    log=WAY_BY_SSH,
)
def script_floods(host: Host) -> None:
    _program(host, _AT_WORK, "exec yes 'a line of a flood'")


@fault(
    "cut-off",
    "the network goes away, both ways, when the first script of remedy runs",
    repair=out_of_reach("no sign of life"),
    log=WAY_BY_SSH,
)
def cut_off(host: Host) -> None:
    text = f"sleep 1; nft -f - <<'END'\n{_DROP_ALL}END\nexec /usr/bin/timeout \"$@\""
    _program(host, _AT_WORK, text)


@fault(
    "sudo-requires-tty",
    "sudo refuses users who have no terminal (requiretty)",
    repair=REPAIRED,
    log=WAY_BY_SSH,
    harmless="the login is root's",
)
def sudo_requires_tty(host: Host) -> None:
    host.write("/etc/sudoers.d/0-lab-requiretty", b"Defaults requiretty\n")
    host.must(["chmod", "440", "/etc/sudoers.d/0-lab-requiretty"])


@fault(
    "sudo-sleeps",
    "PAM's account part sleeps for sudo",
    repair=REPAIRED,
    log=WAY_BY_SSH,
    harmless="the login is root's",
)
def sudo_sleeps(host: Host) -> None:
    _pam_first(host, f"account {_SLEEP}", "sudo")


def _pam_first(host: Host, line: str, service: str = "sshd") -> None:
    """Put a line at the top of a service's PAM configuration, once."""
    path = f"/etc/pam.d/{service}"
    lines = host.read(path).decode().splitlines(keepends=True)
    if lines[0].strip() != line:
        host.write(path, "".join([f"{line}\n", *lines]).encode())


def _program(host: Host, path: str, text: str) -> None:
    """Write a program for /bin/sh."""
    host.write(path, f"#!/bin/sh\n{text}\n".encode())
    host.must(["chmod", "755", path])
