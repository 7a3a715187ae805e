"""sshd at its next reload or boot: whether it starts, and lets in whoever got in now. Not a remedy.

A line that sshd refuses keeps it from starting, and the host is gone with its next boot. A line that it takes
may close the way by which remedy came: another port, a list of users without this one, no keys. The sshd that
runs knows neither, and every connection until then is no proof.

Sources: sshd(8), -T and -C; sshd_config(5), PATTERNS; openssh-portable match.c, auth.c (allowed_user).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from remedy.bounds import fits_name
from remedy.plan import Workbench
from remedy.probe import LoginSession, Sshd

WHEN = "after the next boot or reload of sshd"
ROOT_BY_KEY = ("yes", "prohibit-password", "without-password")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - what sshd prints for any address
_SOCKETS = tuple(
    f"/etc/systemd/system/sockets.target.wants/{name}.socket" for name in ("ssh", "sshd")
)


class Refusal(NamedTuple):
    """Why nobody gets in as this login did: what happens, sshd's keyword for it, and whether it is sure."""

    what: str
    keyword: str
    sure: bool = True


def note_sshd(bench: Workbench[Any], accepted: Collection[str]) -> None:
    """Name what keeps sshd from starting, or from letting in whoever got in now.

    Args:
        bench: of the host.
        accepted: lines of sshd's that are right as they are, as findings show them.
    """
    sshd = bench.need(bench.host.sshd, "what sshd makes of its configuration")
    if sshd is None:
        return
    if sshd.refuses:
        bench.blocked(
            f"after the next boot, sshd is not started: {sshd.refuses} is there",
            f"{sshd.refuses}: its unit has ConditionPathExists=!{sshd.refuses}",
            f"Remove it: rm {sshd.refuses}",
        )
    if sshd.errors:
        bench.blocked(
            f"{WHEN}, sshd does not start: {sshd.errors[0]}",
            sshd.errors,
            "Correct that line, until sshd -t says nothing.",
        )
    for refusal in _refusals(bench, sshd) if sshd.options and sshd.port else ():
        shown = f"sshd: {refusal.keyword} {' '.join(sshd.options.get(refusal.keyword, ()))}".strip()
        if shown not in accepted:
            note = bench.blocked if refusal.sure else bench.unknown
            note(
                f"{WHEN}, {refusal.what}",
                (shown, f"this login: {sshd.user} from {sshd.client} to port {sshd.port}"),
                "Correct /etc/ssh/sshd_config and what it includes, and see: sshd -T. If it is right, add to "
                f'next_boot.accept in remedy.yaml: "{shown}"',
            )


def _refusals(bench: Workbench[Any], sshd: Sshd) -> Iterator[Refusal]:
    session = bench.host.session
    present = session.present if isinstance(session, LoginSession) else frozenset[str]()
    if present.isdisjoint(_SOCKETS) and not _listens(sshd):
        where = f"{sshd.address}:{sshd.port}"
        yield Refusal(
            f"it does not listen on {where}, by which this host is reached", "listenaddress"
        )
    options = sshd.options
    yield from _of_users(sshd)
    if options.get("pubkeyauthentication") == ("no",):
        yield Refusal("it takes no keys", "pubkeyauthentication")
    elif not (sshd.keys or _has(options, "authorizedkeyscommand", "trustedusercakeys")):
        yield Refusal(f"it finds no keys of {sshd.user}", "authorizedkeysfile")
    methods = options.get("authenticationmethods", ("any",))
    if not {"any", "publickey"} & set(methods):
        yield Refusal("it asks for more than a key", "authenticationmethods")
    for keyword, what in (
        ("forcecommand", "it runs a command of its own in place of all others"),
        ("chrootdirectory", "it keeps sessions in a directory of their own"),
    ):
        if _has(options, keyword):
            yield Refusal(what, keyword)
    if options.get("maxsessions") == ("0",):
        yield Refusal("it opens no session", "maxsessions")


def _has(options: Mapping[str, tuple[str, ...]], *keywords: str) -> bool:
    return any(options.get(keyword, ("none",)) != ("none",) for keyword in keywords)


def _listens(sshd: Sshd) -> bool:
    """Return whether sshd listens where this connection came in."""
    for text in sshd.options.get("listenaddress", ()):
        address, _, port = text.rpartition(":")
        address = address.strip("[]").partition("%")[0]
        same_family = (":" in address) is (":" in sshd.address)
        if port == str(sshd.port) and (
            address == sshd.address or (address in _ANY and same_family)
        ):
            return True
    return not sshd.options.get("listenaddress")


def _of_users(sshd: Sshd) -> Iterator[Refusal]:
    """Yield the lists by which a user is kept out, as sshd goes through them."""
    options, user = sshd.options, sshd.user
    if user == "root" and not set(options.get("permitrootlogin", ROOT_BY_KEY)) & set(ROOT_BY_KEY):
        yield Refusal("it does not let root in", "permitrootlogin")
    if _is_among(sshd, options.get("denyusers", ())):
        yield Refusal(f"it keeps {user} out", "denyusers")
    if options.get("allowusers") and not _is_among(sshd, options["allowusers"]):
        yield Refusal(f"it lets in others, and not {user}", "allowusers")
    for keyword in ("denygroups", "allowgroups"):
        if options.get(keyword):
            what = f"it asks for the groups of {user}, and whether it lets them in is not known"
            yield Refusal(what, keyword, sure=False)


def _is_among(sshd: Sshd, patterns: Collection[str]) -> bool:
    """Return whether a list of patterns, USER or USER@HOST, has this login."""
    for pattern in patterns:
        user, _, host = pattern.partition("@")
        if fits_name(sshd.user, user) and (not host or _from(sshd.client, host)):
            return True
    return False


def _from(client: str, hosts: str) -> bool:
    """Return whether an address is that of a host in a list of patterns and networks."""
    for host in hosts.split(","):
        try:
            inside = ipaddress.ip_address(client) in ipaddress.ip_network(host, strict=False)
        except ValueError:
            inside = fits_name(client, host)
        if inside:
            return True
    return False
