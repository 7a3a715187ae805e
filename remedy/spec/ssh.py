"""The section ``ssh``: how long this machine waits for a host at each stage of reaching it."""

from __future__ import annotations

from pydantic import Field

from remedy.spec.section import SpecSection

_LONGEST = 3600


class SshSpec(SpecSection):
    """How many seconds a host may take for each stage of reaching it; then it counts as unreachable.

    Args:
        name: looking its name up.
        connect: the TCP connection, all addresses of the name together.
        key_exchange: sshd's greeting and the exchange of keys.
        login: authentication, with what PAM does for the account.
        channel: opening the session, with what PAM does for it. systemd-logind alone takes 25 s where it is
            stuck (the D-Bus time limit in pam_systemd), after which the login goes on.
        command: the login shell's start-up files, and as long again for sudo.
        silence: while a script runs, how long the host's sshd may leave a sign of life unanswered; it is asked
            for one where nothing has come for ten seconds.
    """

    name: float = Field(default=10, ge=1, le=_LONGEST)
    connect: float = Field(default=10, ge=1, le=_LONGEST)
    key_exchange: float = Field(default=20, ge=1, le=_LONGEST)
    login: float = Field(default=35, ge=1, le=_LONGEST)
    channel: float = Field(default=35, ge=1, le=_LONGEST)
    command: float = Field(default=35, ge=1, le=_LONGEST)
    silence: float = Field(default=30, ge=1, le=_LONGEST)
