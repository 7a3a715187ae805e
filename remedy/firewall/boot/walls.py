"""Firewalls that the next boot starts, judged by their files like those in force, and opened by edits of files.

A firewall that is in force and repaired there has its files repaired with it; here are those that are not:
armed and not in force, or in force with other rules than its files have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from remedy.bounds import fits
from remedy.firewall import firewalld as live_firewalld
from remedy.firewall import iptables as live_iptables
from remedy.firewall import nftables, ufw
from remedy.firewall.boot import firewalld, iptables
from remedy.firewall.boot.armed import (
    Armed,
    Missing,
    PacketQuestion,
    gathered,
    if_started,
    is_there,
    starts,
    starts_ufw,
    text_of,
    texts_of,
    unread,
)
from remedy.firewall.boot.nft_rule import NotReadError
from remedy.firewall.boot.nft_text import read_config
from remedy.firewall.hooks import Tables
from remedy.firewall.iptables import IptablesTable
from remedy.firewall.spans import merge, of_networks
from remedy.firewall.step import Amendment, FileStep, Note, Opening, Side, opening_of
from remedy.plan.change import FindingKind
from remedy.probe import File, HostState, NftChain, NftRuleset
from remedy.values import Unknown

SAVED = {
    "/etc/iptables/rules.v4": "netfilter-persistent.service",
    "/etc/sysconfig/iptables": "iptables.service",
}
"""Files of saved rules, and the service that loads each."""

FIREWALLD = "/etc/firewalld/firewalld.conf"
_NETWORK = re.compile(r"\d+\.\d+\.\d+\.\d+(/\d+)?$")
_NO_RULES = NftRuleset(tables=(), chains=(), sets=())


def is_armed(host: HostState) -> bool:
    """Return whether the next boot loads any rules."""
    return (
        (starts(host, "nftables.service") and _nft_file(host) is not None)
        or any(starts(host, service) and is_there(host, path) for path, service in SAVED.items())
        or starts_ufw(host)
        or (starts(host, "firewalld.service") and is_there(host, FIREWALLD))
    )


def armed(host: HostState, question: PacketQuestion, handled: Sequence[str]) -> Iterator[Armed]:
    """Yield every firewall but nftables that the next boot starts.

    Args:
        host: the host.
        question: what is asked of it.
        handled: the names of the firewalls whose files are repaired with what is in force.
    """
    for firewall in _armed(host, question, handled):
        yield if_started(host, firewall)


def _armed(host: HostState, question: PacketQuestion, handled: Sequence[str]) -> Iterator[Armed]:
    if not any(name.startswith("iptables") for name in handled):
        for path, service in SAVED.items():
            if starts(host, service) and is_there(host, path):
                yield _saved(host, path, question)
    if starts_ufw(host) and "ufw" not in handled:
        yield _ufw(host, question)
    if starts(host, "firewalld.service") and "firewalld" not in handled:
        configuration = host.file(FIREWALLD)
        if isinstance(configuration, File) and configuration.exists:
            yield _firewalld(host, question, text_of(configuration))


# --- nftables ----------------------------------------------------------------------------------------------


def _nft_file(host: HostState) -> File | None:
    files = (host.file(path) for path in nftables.MAIN_FILES)
    return next((file for file in files if isinstance(file, File) and file.exists), None)


def armed_nftables(
    host: HostState, name: str, question: PacketQuestion, repaired: Sequence[NftChain]
) -> Armed:
    """Return what nftables does at the next boot, with the base chains that drop packets.

    Args:
        host: the host.
        name: what the user knows it as.
        question: what is asked of it.
        repaired: chains in force that are repaired, in the file too.
    """
    main = _nft_file(host)
    if main is None or not starts(host, "nftables.service"):
        return Armed(name)
    try:
        ruleset = read_config(text_of(main), partial(_included, host))
    except NotReadError as error:
        return unread(name, main.path, str(error), question)
    passed = question.ask(Tables(nft=ruleset, iptables={}))
    armed = gathered(name, passed, question.accepted)
    if isinstance(host.units, Unknown):
        places = {(chain.family, chain.table, chain.name) for chain in repaired}
        news = [gate for gate in passed if gate.chain is not None and gate.chain[:3] not in places]
        return if_started(host, gathered(name, news, question.accepted))
    # A rule for TCP in a chain of ARP would keep the whole file from being loaded.
    chains = dict.fromkeys(
        gate.chain
        for gate in passed
        if gate.chain is not None and gate.judgement.dropped and not gate.arp
    )
    own = (chain for chain in ruleset.chains if chain.hook and nftables.own_rules(chain))
    return Armed(
        name,
        armed.incoming,
        armed.outgoing,
        armed.arp,
        armed.doubts,
        chains=tuple(dict.fromkeys((*chains, *own))),
    )


def _included(host: HostState, pattern: str) -> list[str]:
    """Return the texts of what a file includes."""
    if not pattern.startswith("/"):
        pattern = f"/etc/nftables/{pattern}"
    names = sorted(path for path in host.files if _matches(path, pattern))
    texts = []
    for path in names:
        file = host.files[path]
        if isinstance(file, Unknown):
            raise NotReadError(f"it includes {path}, which could not be read: {file.reason}")
        if file.exists:
            texts.append(text_of(file))
    if not texts and not _is_looked_at(pattern):
        raise NotReadError(f"it includes {pattern}, which was not read")
    return texts


def _matches(path: str, pattern: str) -> bool:
    return path.rpartition("/")[0] == pattern.rpartition("/")[0] and fits(path, pattern)


def _is_looked_at(pattern: str) -> bool:
    """Return whether the probe would have read every file of a pattern."""
    return bool(re.match(r"/etc/nftables(\.d)?/[^/]*\.(nft|conf)$", pattern))


# --- iptables and ufw --------------------------------------------------------------------------------------


def _saved(host: HostState, path: str, question: PacketQuestion) -> Armed:
    """Return what saved rules of iptables do."""
    name = f"iptables after the next boot ({path})"
    file = host.file(path)
    assert isinstance(file, File)
    text = iptables.without_counters(text_of(file))
    armed = gathered(name, question.ask(Tables(_NO_RULES, {"nft": text})), question.accepted)
    present = live_iptables.present(IptablesTable("nft", text))
    edit = partial(live_iptables.edit_saved, file.content)
    return replace(armed, propose=partial(_edited, file, present, edit))


def _ufw(host: HostState, question: PacketQuestion) -> Armed:
    """Return what ufw does."""
    name = "ufw after the next boot"
    texts = texts_of(host, iptables.UFW_FILES)
    if isinstance(texts, Missing):
        return unread(name, texts.path, texts.reason, question)
    text = iptables.ufw_text(texts)
    armed = gathered(name, question.ask(Tables(_NO_RULES, {"nft": text})), question.accepted)
    rules = host.file(ufw.RULES)
    assert isinstance(rules, File)
    edit = partial(ufw.edit_rules, rules.content)
    present = _present_in_ufw(rules.content)
    return replace(armed, propose=partial(_edited, rules, present, edit))


def _present_in_ufw(content: bytes) -> Opening | None:
    """Return what remedy's rules of a user.rules let through; None where there are none."""
    lines = ufw.live_lines(content)
    sides = [
        live_iptables.side_of(way, [line for line in lines if line.startswith(f"-A {chain} ")])
        for way, chain in ufw.CHAINS.items()
    ]
    known = [side for side in sides if side is not None]
    return opening_of(known) if known else None


def _edited(
    file: File,
    present: Opening | None,
    edit: Callable[[Opening], bytes | None],
    opening: Opening,
) -> Amendment:
    """Return how a file comes to hold an opening."""
    content = edit(opening)
    if content is None:
        return Amendment(present, notes=(ufw.FOREIGN,))  # one of iptables takes rules in any form
    if content == file.content:
        return Amendment(present)
    title = f"write remedy's rules into {file.path}, which is loaded at boot"
    return Amendment(present, (FileStep(title, file.path, content),))


# --- firewalld ---------------------------------------------------------------------------------------------


def _firewalld(host: HostState, question: PacketQuestion, configuration: str) -> Armed:
    """Return what firewalld does."""
    armed = rules_of_firewalld(host, question, configuration)
    return replace(armed, propose=partial(_files_of_firewalld, host)) if armed.chains else armed


def rules_of_firewalld(host: HostState, question: PacketQuestion, configuration: str) -> Armed:
    """Return what the rules that firewalld makes of its files do."""
    name = "firewalld after the next boot"
    default = firewalld.default_zone(configuration)
    zones = {
        **_elements(host, "/usr/lib/firewalld/zones"),
        **_elements(host, "/etc/firewalld/zones"),
    }
    if default not in zones:
        return unread(name, f"zone {default}", "its file was not read", question)
    ruleset = firewalld.ruleset_of(
        zones,
        default,
        policies=_elements(host, "/etc/firewalld/policies").values(),
        services=_elements(host, "/etc/firewalld/services"),
        direct=_element(host, live_firewalld.DIRECT_FILE),
        ipsets=_elements(host, "/etc/firewalld/ipsets"),
    )
    armed = gathered(name, question.ask(Tables(ruleset, {})), question.accepted)
    return replace(armed, chains=ruleset.chains)


def _element(host: HostState, path: str) -> firewalld.Element | None:
    file = host.file(path)
    if isinstance(file, Unknown) or not file.exists:
        return None
    return firewalld.parse(text_of(file))


def _elements(host: HostState, folder: str) -> Mapping[str, firewalld.Element]:
    """Return the first element of each file of a folder, by the name of the file."""
    elements = {}
    for file in host.files_in(folder):
        if isinstance(file, File) and file.exists and file.path.endswith(".xml"):
            elements[file.path.rpartition("/")[2].removesuffix(".xml")] = firewalld.parse(
                text_of(file)
            )
    return elements


def _files_of_firewalld(host: HostState, opening: Opening) -> Amendment:
    """Return how firewalld's files come to hold an opening; it reads them when it starts."""
    texts = dict(zip(live_firewalld.FILES, live_firewalld.texts_of(opening), strict=True))
    steps: list[FileStep] = []
    for path, text in texts.items():
        file = host.file(path)
        if isinstance(file, Unknown):
            title = "could not read remedy's files of firewalld"
            return Amendment(notes=(Note(FindingKind.UNKNOWN, title, (file.reason,)),))
        if text.encode() != (file.content if file.exists else b""):
            steps.append(FileStep(f"write {path}, which is loaded at boot", path, text.encode()))
    return Amendment(_present_in_firewalld(host), tuple(steps))


def _present_in_firewalld(host: HostState) -> Opening | None:
    """Return what remedy's policies in the files let through; None where there are none."""
    ipset = _element(host, live_firewalld.IPSET_FILE)
    if ipset is None:
        return None
    hosts = of_networks(entry.text for entry in ipset.all("entry") if _NETWORK.match(entry.text))
    sides = []
    for way, path in live_firewalld.POLICY_FILES.items():
        policy = _element(host, path)
        ports = (
            port for rule in (policy.all("rule") if policy else ()) for port in rule.all("port")
        )
        spans = merge(map(firewalld.port_range, ports))
        if spans:
            sides.append(Side(way, hosts, spans))
    return opening_of(sides) if sides else None
