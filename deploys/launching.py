"""Launching: what stands between a launcher and the workers that it starts.

Finds: an sshd that drops connections once a few are logging in at the same time (MaxStartups), so that a
launcher with many sessions loses some of them at random; an HTTP proxy in the environment without an
exception for the cluster, so that rendezvous over HTTP or gRPC goes to the proxy instead of to the peer.

How it is measured: the first MaxStartups in sshd's configuration, with its included files in their order, as
sshd_config(5) reads them; the variables that a command over ssh sees. A proxy set elsewhere, such as in a job
script, is not seen.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from pydantic import Field

from remedy.plan import Assessment, Finder, Finding, Fleet
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Mention
from remedy.spec import SpecSection
from remedy.text import fold
from remedy.values import Unknown

NAME = "launching"
_finding = Finder(NAME)
SSHD = "/etc/ssh/sshd_config"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")


class LaunchingSpec(SpecSection):
    """``fan_out``: how many ssh sessions are opened to one host at once; most on a jump host."""

    fan_out: int = Field(default=10, ge=1)


def assess(_fleet: Fleet, host: HostState, spec: LaunchingSpec) -> Assessment:
    """Look at the host's sshd."""
    return Assessment(tuple(_startups(host, spec.fan_out)))


def assess_fleet(fleet: Fleet, _spec: LaunchingSpec) -> tuple[Finding, ...]:
    """Look for hosts whose sessions would ask a proxy for their peers; equal exceptions are looked at once."""
    addresses = {name: mine.address for name, mine in fleet.addresses.items()}
    behind: dict[str, tuple[int, str]] = {}
    findings = []
    for state in fleet.states.values():
        proxies, exceptions = proxy_variables(state)
        if not proxies:
            continue
        if exceptions[1] not in behind:
            proxied = through_proxy(exceptions[1], addresses)
            behind[exceptions[1]] = len(proxied), fold(proxied)
        count, hosts = behind[exceptions[1]]
        if count:
            findings.append(_proxied(state, (*proxies, exceptions), count, hosts))
    return tuple(findings)


def _startups(host: HostState, fan_out: int) -> Iterator[Finding]:
    if isinstance(host.mentions, Unknown):
        return
    line = max_startups(host.mentions)
    start = 10 if line is None else int(value(line).split(":")[0])
    if start < fan_out:
        yield _finding.report(
            host,
            f"sshd drops connections at random once {start} are logging in, and {fan_out} may at once",
            "ssh-launch-failure",
            (
                f"{line.path} line {line.line}: {line.text.strip()}"
                if line
                else "default 10:30:100",
            ),
            f"Set MaxStartups {2 * fan_out}:30:{10 * fan_out} in {SSHD}, then systemctl reload ssh.",
        )


def max_startups(mentions: tuple[Mention, ...]) -> Mention | None:
    """Return the line that decides MaxStartups: the first; included files count where they are named."""
    own = sorted((m for m in mentions if m.path == SSHD), key=lambda m: m.line)
    others = sorted(
        (m for m in mentions if m.path.startswith(f"{SSHD}.d/")), key=lambda m: (m.path, m.line)
    )
    for mention in own:
        keyword = mention.text.split()[0].partition("=")[0].lower()
        found = others if keyword == "include" and f"{SSHD}.d/" in mention.text else [mention]
        for line in found:
            if line.text.lower().lstrip().startswith("maxstartups") and _number(line):
                return line
    return None


def value(line: Mention) -> str:
    """Return what a line of sshd's configuration sets its keyword to."""
    return line.text.strip()[len("maxstartups") :].strip(" \t=\"'")


def _number(line: Mention) -> bool:
    return value(line).split(":")[0].isdigit()


def proxy_variables(host: HostState) -> tuple[list[tuple[str, str]], tuple[str, str]]:
    """Return the variables of a session that name a proxy, and the one with the exceptions, as spelt."""
    if isinstance(host.environment, Unknown):
        return [], ("no_proxy", "")
    by_name = {name.lower(): (name, text) for name, text in host.environment.items()}
    proxies = [by_name[name] for name in PROXIES if by_name.get(name, ("", ""))[1]]
    return proxies, by_name.get("no_proxy", ("no_proxy", ""))


def _proxied(
    host: HostState, variables: tuple[tuple[str, str], ...], count: int, hosts: str
) -> Finding:
    return _finding.report(
        host,
        f"connections to {count} hosts of the cluster would go through an HTTP proxy",
        "env-not-propagated",
        (
            *(f"{name}={text}" for name, text in variables),
            f"not excepted by address: {hosts}",
        ),
        "Put the cluster's addresses and names into no_proxy (and NO_PROXY) wherever the proxy is set: "
        "/etc/environment, ~/.bashrc, the job script.",
    )


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


old_remedy(
    name=NAME,
    title="Launching",
    text=__doc__,
    cures=(),
    finds=("ssh-launch-failure", "env-not-propagated"),
    spec=LaunchingSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=90,
)
