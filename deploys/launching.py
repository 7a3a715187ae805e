"""Launching: what stands between a launcher and the workers that it starts.

Finds: an sshd that drops connections once a few are logging in at the same time (MaxStartups), so that a
launcher with many sessions loses some of them at random; an HTTP proxy in the environment without an
exception for the cluster, so that rendezvous over HTTP or gRPC goes to the proxy instead of to the peer; a
/etc/nologin, by which PAM lets in nobody but root; a library that each program on the host loads first
(/etc/ld.so.preload), of which nobody can say what it does to connections: UNKNOWN, until it is accepted.

How it is measured: the first MaxStartups in sshd's configuration, with its included files in their order, as
sshd_config(5) reads them; the variables that a command over ssh sees. A proxy set elsewhere, such as in a job
script, is not seen.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from pydantic import Field

from remedy.plan import Fleet, Workbench, once_a_fleet, remedy
from remedy.probe import File, HostState, LoginSession, Mention, Names
from remedy.spec import SpecSection
from remedy.text import counted, fold, is_number
from remedy.values import Unknown

SSHD = "/etc/ssh/sshd_config"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
NOLOGIN = frozenset(("/etc/nologin", "/run/nologin"))
PRELOAD, LIBRARY = "/etc/ld.so.preload", "/usr/lib/libsite.so"


class LaunchingSpec(SpecSection):
    """``fan_out``: how many ssh sessions are opened to one host at once; most on a jump host;
    ``accept``: libraries that each program may load first, by their paths.
    """

    fan_out: int = Field(default=10, ge=1)
    accept: tuple[str, ...] = Field((), examples=[[LIBRARY]])


@remedy("Launching", LaunchingSpec, finds=("ssh-launch-failure", "env-not-propagated"), order=90)
def launching(bench: Workbench[LaunchingSpec]) -> None:
    """Look for an sshd that admits too few at once, and for a proxy between the host and its peers."""
    _startups(bench)
    _note_nologin(bench)
    _note_preload(bench)
    proxies, exceptions = proxy_variables(bench.host)
    hosts = proxied(bench.fleet)[exceptions[1]] if proxies else ()
    if hosts:
        bench.report(
            f"connections to {counted(len(hosts), 'host')} of the cluster would go through an HTTP proxy",
            (
                *(f"{name}={text}" for name, text in (*proxies, exceptions)),
                f"not excepted by address: {fold(hosts)}",
            ),
            "Put the cluster's addresses and names into no_proxy (and NO_PROXY) wherever the proxy is set: "
            "/etc/environment, ~/.bashrc, the job script.",
            label="env-not-propagated",
        )


def _startups(bench: Workbench[LaunchingSpec]) -> None:
    mentions, fan_out = bench.host.mentions, bench.settings.fan_out
    if isinstance(mentions, Unknown):
        return
    line = max_startups(mentions)
    start = 10 if line is None else int(value(line).split(":")[0])
    if start < fan_out:
        bench.report(
            f"sshd drops connections at random once {start} are logging in, and {fan_out} may at once",
            f"{line.path} line {line.line}: {line.text.strip()}" if line else "default 10:30:100",
            f"Set MaxStartups {2 * fan_out}:30:{10 * fan_out} in {SSHD}, then systemctl reload ssh.",
        )

    line = max_startups(mentions, "persourcemaxstartups")
    if line is not None and int(value(line, "persourcemaxstartups")) < fan_out:
        number = value(line, "persourcemaxstartups")
        bench.report(
            f"sshd drops connections of one host once {number} are logging in, and {fan_out} may at once",
            f"{line.path} line {line.line}: {line.text.strip()}",
            f"Set PerSourceMaxStartups {2 * fan_out} in {SSHD}, or none; then systemctl reload ssh.",
        )


def _note_nologin(bench: Workbench[LaunchingSpec]) -> None:
    """Name a file by which PAM lets in nobody but root (pam_nologin(8))."""
    session, names = bench.host.session, bench.host.names
    present = session.present if isinstance(session, LoginSession) else frozenset[str]()
    user = names.user if isinstance(names, Names) else ""
    for path in sorted(present.intersection(NOLOGIN)):
        note = bench.report if user in ("", "root") else bench.blocked
        note(
            f"nobody but root can log in: {path} is there",
            f"{path}: pam_nologin refuses every other user",
            f"Remove it: rm {path}",
        )


def _note_preload(bench: Workbench[LaunchingSpec]) -> None:
    """Name libraries that each program loads before its own (ld.so(8))."""
    file = bench.host.file(PRELOAD)
    if isinstance(file, Unknown):
        return
    text = file.content.decode("utf-8", "replace").replace(":", " ")
    for library in text.split():
        if library not in bench.settings.accept:
            bench.unknown(
                f"each program of this host loads {library} first, and what that does to jobs is not known",
                f"{PRELOAD}: {library}",
                f'Take it out of {PRELOAD}, or add to launching.accept in remedy.yaml: "{library}"',
                label="env-not-propagated",
            )


def max_startups(mentions: tuple[Mention, ...], keyword: str = "maxstartups") -> Mention | None:
    """Return the line that decides a number of sshd's: the first; included files count where they are named.

    Args:
        mentions: lines of files.
        keyword: that sets it, in lower case.
    """
    lines = sorted((m for m in mentions if m.path == SSHD), key=lambda m: m.line)
    others = sorted(
        (m for m in mentions if m.path.startswith(f"{SSHD}.d/")), key=lambda m: (m.path, m.line)
    )
    for mention in lines:
        word = mention.text.split()[0].partition("=")[0].lower()
        candidates = others if word == "include" and f"{SSHD}.d/" in mention.text else [mention]
        for line in candidates:
            if line.text.lower().lstrip().startswith(keyword) and _number(line, keyword):
                return line
    return None


def value(line: Mention, keyword: str = "maxstartups") -> str:
    """Return what a line of sshd's configuration sets its keyword to."""
    return line.text.strip()[len(keyword) :].strip(" \t=\"'")


def _number(line: Mention, keyword: str) -> bool:
    return is_number(value(line, keyword).split(":")[0])


def proxy_variables(host: HostState) -> tuple[list[tuple[str, str]], tuple[str, str]]:
    """Return the variables of a session that name a proxy, and the one with the exceptions, as spelt."""
    if isinstance(host.environment, Unknown):
        return [], ("no_proxy", "")
    by_name = {name.lower(): (name, text) for name, text in host.environment.items()}
    proxies = [by_name[name] for name in PROXIES if by_name.get(name, ("", ""))[1]]
    return proxies, by_name.get("no_proxy", ("no_proxy", ""))


@once_a_fleet
def proxied(fleet: Fleet) -> Mapping[str, tuple[str, ...]]:
    """Return for each list of exceptions that a host has the hosts that it leaves to the proxy."""
    addresses = {name: chosen.address for name, chosen in fleet.addresses.items()}
    texts = {proxy_variables(state)[1][1] for state in fleet.states.values()}
    return {text: through_proxy(text, addresses) for text in texts}


def through_proxy(no_proxy: str, addresses: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the hosts whose cluster address no exception covers: by itself, by its network, or by `*`."""
    words = [word.strip() for word in no_proxy.split(",") if word.strip()]
    if "*" in words:
        return ()
    networks = []
    for word in words:
        try:
            networks.append(ipaddress.ip_network(word, strict=False))
        except ValueError:
            continue  # a name
    return tuple(
        name
        for name, address in addresses.items()
        if address is not None
        and not any(ipaddress.ip_address(address) in network for network in networks)
    )


@launching.breaks
def a_library_comes_first(state: HostState) -> HostState:
    """Have a library that each program loads before its own."""
    content = f"{LIBRARY}\n".encode()
    file = File(path=PRELOAD, real_path=PRELOAD, exists=True, content=content)
    return state.model_copy(update={"files": {**state.files, PRELOAD: file}})
