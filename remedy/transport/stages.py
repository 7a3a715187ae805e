"""The stages of reaching a host, and what it means where it is stuck in one. Pure.

=============  ==============================================  ======================
stage          what is waited for                              setting of ``ssh``
=============  ==============================================  ======================
name           an address for the host's name                  ``name``
connect        the TCP connection                              ``connect``
key exchange   sshd's greeting and the exchange of keys        ``key_exchange``
login          authentication, PAM's account part with it      ``login``
channel        the session, PAM's session part with it         ``channel``
command        the login shell, and sudo, to start the script  ``command``, each
output         the end of the script                           the script's own
               a sign of life of the host's sshd meanwhile     ``silence``
=============  ==============================================  ======================

The same stages, from name to login, are those of a jump host. None of this relies on the host: what ends a
stage is a watch on this machine (``remedy.transport.watch``).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from remedy.spec import SshSpec
from remedy.text import TRACE_START_UP


class Stage(str, enum.Enum):
    """Where a host is on its way to an answer."""

    NAME = "name"
    CONNECT = "connect"
    KEY_EXCHANGE = "key exchange"
    LOGIN = "login"
    CHANNEL = "channel"
    COMMAND = "command"
    OUTPUT = "output"


@dataclass(frozen=True)
class Stuck:
    """A stage that was not over at its deadline.

    Args:
        stage: which.
        seconds: how long it was given.
        via: the jump host that it was at; "" for the host itself.
        sudo: of the stage command: whether the login shell had started and sudo was waited for.
        silent: of the stage output: whether the host's sshd gave no sign of life.
    """

    stage: Stage
    seconds: float
    via: str = ""
    sudo: bool = False
    silent: bool = False

    @property
    def reason(self) -> str:
        """What was waited for in vain, in words."""
        took = f"{self.seconds:.0f} s"
        if self.stage is Stage.OUTPUT:
            if self.silent:
                return f"no sign of life from its sshd for {took} while the script ran"
            return f"the script was not over {took} after its start, past its deadline on the host"
        if self.stage is Stage.COMMAND and self.sudo:
            return f"sudo did not start the script within {took}"
        if self.stage is Stage.CONNECT and self.via:
            return f"no connection from there to the host within {took}"
        return f"{_WAITED[self.stage]} within {took}"

    @property
    def next_step(self) -> str:
        """What to look at."""
        if self.stage is Stage.COMMAND and self.sudo:
            return "On its console, as that user: time sudo -n true. It waits for PAM, or for a name server."
        return _LOOK[self.stage]


_WAITED = {
    Stage.NAME: "no answer to the question for its address",
    Stage.CONNECT: "no connection: no answer to the TCP connection",
    Stage.KEY_EXCHANGE: "the connection was taken, and sshd did not exchange keys",
    Stage.LOGIN: "sshd exchanged keys, and did not finish the login",
    Stage.CHANNEL: "the login was accepted, and sshd did not open the session",
    Stage.COMMAND: "the session was opened, and the login shell did not start the command",
}
READ_BY_PAM = "stat -L -c '%F %s %n' /etc/environment /etc/default/locale /etc/security/*.conf"
_LOOK = {
    Stage.NAME: "Ask the name servers of this machine: getent ahosts NAME. Or set ssh_hostname of the host "
    "to an address.",
    Stage.CONNECT: "Is the host up, and its ssh port open to this machine?",
    Stage.KEY_EXCHANGE: "On its console: is sshd stopped or the host out of memory? ps -o stat,cmd -C sshd",
    Stage.LOGIN: "On its console: what does PAM wait for? Check auth and account in /etc/pam.d/sshd, "
    f"sssd and journalctl -u ssh, and whether what PAM reads is a regular file: {READ_BY_PAM}. On this "
    "machine: does the ssh agent answer? ssh-add -l",
    Stage.CHANNEL: "On its console: what does PAM wait for? Check the session lines of /etc/pam.d/sshd, "
    "systemd-logind, file systems of the network that the home is on, and whether what PAM reads is a "
    f"regular file: {READ_BY_PAM}",
    Stage.COMMAND: "On its console: do the user's shell and its start-up files end? Check the "
    f"shell in /etc/passwd, and where ~/.bashrc waits: {TRACE_START_UP}",
    Stage.OUTPUT: "On its console: is the host frozen, or cut off? Then run the command again.",
}


def limit(spec: SshSpec, stage: Stage) -> float:
    """Return how many seconds a stage may take; the output's depends on the script."""
    return {
        Stage.NAME: spec.name,
        Stage.CONNECT: spec.connect,
        Stage.KEY_EXCHANGE: spec.key_exchange,
        Stage.LOGIN: spec.login,
        Stage.CHANNEL: spec.channel,
        Stage.COMMAND: spec.command,
        Stage.OUTPUT: float("inf"),
    }[stage]
