"""The section ``ssh``: how hosts are reached, and how long this machine waits for one at each stage."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from remedy.spec.section import SpecSection

_LONGEST = 3600
_Text = Annotated[str, Field(min_length=1, max_length=65_536)]
_GATEWAYS = (
    'a mapping of gateways to hosts, such as {"head[1-2]": "gpu[001-064]"}, or the path of a topology file, or '
    "null"
)


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
        gateways: the hosts that are reached through others, by ClusterShell: gateways to hosts, such as
            ``{"head[1-2]": "gpu[001-064]"}``, or the path of a topology file of ClusterShell, from the folder
            of the inventory; null reaches every host from here.
        gateway_python: the interpreter on gateways that has ClusterShell, of the release that is here.
        gateway_fanout: how many hosts one gateway runs a script on at once; ranks of a proof run on all.
    """

    name: float = Field(default=10, ge=1, le=_LONGEST)
    connect: float = Field(default=10, ge=1, le=_LONGEST)
    key_exchange: float = Field(default=20, ge=1, le=_LONGEST)
    login: float = Field(default=35, ge=1, le=_LONGEST)
    channel: float = Field(default=35, ge=1, le=_LONGEST)
    command: float = Field(default=35, ge=1, le=_LONGEST)
    silence: float = Field(default=30, ge=1, le=_LONGEST)
    gateways: dict[_Text, _Text] | _Text | None = Field(
        default=None, json_schema_extra={"description": _GATEWAYS}
    )
    gateway_python: str = Field(default="python3", pattern=r"^[A-Za-z0-9_./+-]{1,200}$")
    gateway_fanout: int = Field(default=128, ge=1, le=10_000)

    @property
    def reach(self) -> float:
        """How long all stages before the output may take, one after the other."""
        return sum(
            (self.name, self.connect, self.key_exchange, self.login, self.channel, 2 * self.command)
        )
