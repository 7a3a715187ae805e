"""The command line that runs a script on a host, and what comes back of it without what others printed. Pure.

Whatever a login shell's start-up files print comes before the first mark, and is no part of an answer. The
second mark comes when nothing but the script's own time is left: sudo has agreed, and the host's own deadline
begins.
"""

from __future__ import annotations

import enum
import secrets
import shlex
from dataclasses import dataclass, field

from remedy.transport.script import Root, Script

# Between the polite and the certain end of a script.
KILL_AFTER = 5
# bash and ksh read a script on standard input byte by byte, so that commands may have the rest: 20 ms of a
# processor for one of 55 KB. They get the whole as one text; dash and busybox read in blocks, and need no more.
HOW_TO_READ = 'set -- -s; [ -z "${BASH_VERSION-}${KSH_VERSION-}" ] || set -- -c \'eval "$(cat)"\'; '
# What the wrapper says on stderr where the ssh user is not root and the host has no sudo.
NO_SUDO = "this host has no sudo"
# And where a sudo that cannot be given a password and a script at once remembers no login.
FORGETS = "this sudo-rs remembers no login (timestamp_timeout=0)"
# More than a message of the day is no greeting, but a start-up file that prints without end.
MOST_NOISE = 1 << 18
# The longest answers are of a host that calls thousands of others in vain (1 MiB for 2,048), and the logs of a
# failed verification. As text they take up to four times as many bytes.
MOST_OUTPUT = 1 << 22


class Flood(BaseException):
    """More comes than anybody asked for. No ``Exception``, so that nothing below the transport keeps it."""


class Sending(enum.Enum):
    """When the password for sudo is sent to a host."""

    ASKED = "asked"  # over the connection that it asks on
    LATER = "later"  # not with this command, which ends where the host asks
    FIRST = "first"  # as the first line of the input, to a host that has asked before


@dataclass(frozen=True)
class Marks:
    """What the wrapper prints on lines of its own: the shell has started, sudo asks, the script begins."""

    shell: str = field(default_factory=lambda: f"remedy-shell-{secrets.token_hex(8)}")
    script: str = field(default_factory=lambda: f"remedy-script-{secrets.token_hex(8)}")
    ask: str = field(default_factory=lambda: f"remedy-ask-{secrets.token_hex(8)}")


@dataclass(frozen=True)
class CommandInput:
    """A command line, and what goes to its standard input.

    Args:
        line: the command line.
        text: the script.
        password: for sudo, as the first line of the input where the host asks for it, and not before. Nothing
            is written until it has asked or the script has begun. None: the script is written at once.
    """

    line: str
    text: str
    password: str | None = field(default=None, repr=False)

    def content(self, *, with_password: bool) -> bytes:
        """Return the standard input of a host, which has asked for the password where that comes with it."""
        first = f"{self.password}\n" if with_password and self.password is not None else ""
        return f"{first}{self.text}".encode()


class Stream:
    """One of the two outputs of a command.

    Args:
        mark: the line after which it counts.
        second: a line right after that, which does not count; "" for none.
        ask: a line that may stand between the two, and does not count either; "" for none.
    """

    def __init__(self, mark: str, second: str = "", ask: str = "") -> None:
        self._mark = f"{mark}\n".encode()
        self._second = f"{second}\n".encode() if second else b""
        self._ask = f"{ask}\n".encode() if ask else b""
        self._bytes = bytearray()
        self.noise = b""
        self.shell = False
        self.asked = False
        self.script = not second

    def take(self, chunk: bytes) -> None:
        """Take what came.

        Raises:
            Flood: it is too much.
        """
        self._bytes += chunk
        if not self.shell:
            at = self._bytes.find(self._mark)
            if at >= 0:
                self.shell = True
                self.noise = bytes(self._bytes[:at])
                del self._bytes[: at + len(self._mark)]
            elif len(self._bytes) > MOST_NOISE:
                raise Flood(
                    f"the login shell printed {MOST_NOISE >> 10} KiB before the command began, and went on"
                )
        if self.shell and self._ask and not self.asked and not self.script:
            self.asked = self._cut(self._ask)
        if self.shell and not self.script:
            self.script = self._cut(self._second)
        if len(self._bytes) > MOST_OUTPUT:
            raise Flood(f"the script printed more than {MOST_OUTPUT >> 20} MiB")

    def _cut(self, line: bytes) -> bool:
        """Take a line away where it comes next; say whether it did."""
        comes = self._bytes.startswith(line)
        if comes:
            del self._bytes[: len(line)]
        return comes

    @property
    def size(self) -> int:
        """How many bytes there are that count."""
        return len(self._bytes)

    @property
    def text(self) -> str:
        """What counts, as text without the last line's end; all that came where the mark did not."""
        return self._bytes.decode("utf-8", "backslashreplace").removesuffix("\n")


def command_line(
    script: Script,
    marks: Marks,
    *,
    is_root: bool,
    password: str | None,
    sending: Sending = Sending.ASKED,
    shell: str = "",
) -> CommandInput:
    """Return the command line for a script, and what goes to its standard input.

    Args:
        script: what is to run.
        marks: what is printed before.
        is_root: whether the ssh user is root.
        password: for sudo; None where there is none.
        sending: when it is sent.
        shell: what runs the script; empty for ``timed(script)``.
    """
    if script.root is Root.NO or is_root:
        password = None
    shell = shell or timed(script)
    if script.root is Root.NO or is_root:
        line = f"{_start(marks)}{_begin(marks)}exec {shell}"
    elif password is None or sending is Sending.LATER:
        line = _without_password(script, marks, shell, later=password is not None)
    else:
        line = _with_password(script, marks, shell, first=sending is Sending.FIRST)
    # The login shell may be none of the family of sh: it gets two words and a quoted third.
    sent = None if sending is Sending.LATER else password
    return CommandInput(f"sh -c {shlex.quote(line)}", script.text, sent)


def timed(script: Script) -> str:
    """Return the command that runs a script on standard input, and ends it at its deadline."""
    return f'timeout -k {KILL_AFTER} {script.deadline:.0f} sh "$@"'


# The reason is on one line with a mark in front. Who refuses reads the script to its end first: else the
# connection breaks while it is still sent, and the reason is lost. Where a password is asked for nothing is
# sent before that, so that there is nothing to read.
_SAY = 'printf "%s" "remedy: $said" | tr "\\n" " " >&2'
_REFUSE = f"{_SAY}; cat >/dev/null; exit 1"
# Who goes on without root says why, on a line of its own.
_GO_ON = f'{_SAY}; printf "\\n" >&2; '
# sudo-rs before 0.2.7 reads more than the line of the password, and what it read is lost: it gets the
# password alone, remembers the login for this shell (sudo_timestamp(5)), and forgets it at the end. Later ones
# read byte by byte as sudo does (its src/pam/rpassword.rs).
_READS_AHEAD = '*"sudo-rs 0."[01].*|*"sudo-rs 0.2."[0-6]|*"sudo-rs 0.2."[0-6][!0-9]*'
_LACKING = f"said={shlex.quote(NO_SUDO)}"


def _start(marks: Marks) -> str:
    return f'{HOW_TO_READ}printf "\\n%s\\n" {marks.shell} >&2; printf "\\n%s\\n" {marks.shell}; '


def _begin(marks: Marks) -> str:
    return f'printf "%s\\n" {marks.script}; '


def _checks(script: Script, marks: Marks, shell: str, early: str) -> str:
    """Return what ends here where the user is root, or there is no sudo."""
    plain = f"{_begin(marks)}exec {shell}"
    lacking = plain if script.root is Root.PREFERRED else f"{_LACKING}; {early}"
    return (
        f'if [ "$(id -u)" = 0 ]; then {plain}; fi; command -v sudo >/dev/null || {{ {lacking}; }}; '
    )


def _without_password(script: Script, marks: Marks, shell: str, *, later: bool) -> str:
    plain = f"{_begin(marks)}exec {shell}"
    otherwise = f"{_GO_ON}{plain}" if script.root is Root.PREFERRED and not later else _REFUSE
    ask = f"said=$(sudo -n true 2>&1 </dev/null) || {{ {otherwise}; }}"
    checks = _checks(script, marks, shell, _REFUSE)
    return f"{_start(marks)}{checks}{ask}; {_begin(marks)}exec sudo -n {shell}"


def _with_password(script: Script, marks: Marks, shell: str, *, first: bool) -> str:
    # The password is the first line of the standard input: it is in no argument list and in no
    # file. `read` takes that line alone, and so does sudo -S (sudo(8)). It is tried by itself first,
    # since sudo would take lines of the script for further attempts; -k has sudo ask both times.
    begin, ask, read = _begin(marks), "sudo -k -S -p ''", "IFS= read -r p || exit 1; "
    login = (
        f'printf "%s\\n" "$p" | sudo -S -p "" -v; sudo -n true </dev/null 2>/dev/null || '
        f"{{ said={shlex.quote(FORGETS)}; {_REFUSE}; }}; "
        f"{begin}sudo -n {shell}; code=$?; sudo -k; exit $code"
    )
    wait = "" if first else f'printf "%s\\n" {marks.ask}; {read}'
    checks = _checks(script, marks, shell, _REFUSE if first else f"{_SAY}; exit 1")
    return (
        f"{_start(marks)}{read if first else ''}{checks}"
        f"if sudo -k -n true </dev/null 2>/dev/null; then {begin}exec sudo -n {shell}; fi; {wait}"
        f'said=$(printf "%s\\n" "$p" | {ask} true 2>&1) || {{ {_REFUSE}; }}; '
        f"case $(sudo -V 2>&1) in {_READS_AHEAD}) {login};; esac; {begin}"
        f'{{ printf "%s\\n" "$p"; cat; }} | {ask} {shell}'
    )
