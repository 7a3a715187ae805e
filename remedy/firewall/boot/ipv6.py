"""What the next boot does to packets of IPv6; nothing of it is changed by remedy, so it is told alone."""

from __future__ import annotations

from collections.abc import Iterator

from remedy.firewall.boot import iptables
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
from remedy.firewall.boot.walls import FIREWALLD, armed_nftables, rules_of_firewalld
from remedy.firewall.hooks import Tables
from remedy.probe import File, HostState, NftRuleset

SAVED = {
    "/etc/iptables/rules.v6": "netfilter-persistent.service",
    "/etc/sysconfig/ip6tables": "ip6tables.service",
}
"""Files of saved rules, and the service that loads each."""

_NO_RULES = NftRuleset(tables=(), chains=(), sets=())


def armed_ipv6(host: HostState, question: PacketQuestion) -> Iterator[Armed]:
    """Yield every firewall that the next boot starts, with what it does to packets of IPv6.

    Args:
        host: the host.
        question: about packets between addresses of IPv6.
    """
    yield armed_nftables(host, "nftables after the next boot", question, ())
    for path, service in SAVED.items():
        if starts(host, service) and is_there(host, path):
            yield if_started(host, _saved(host, path, question))
    if starts_ufw(host):
        yield if_started(host, _ufw(host, question))
    configuration = host.file(FIREWALLD)
    if (
        starts(host, "firewalld.service")
        and isinstance(configuration, File)
        and configuration.exists
    ):
        armed = rules_of_firewalld(host, question, text_of(configuration))
        yield if_started(host, armed)


def _saved(host: HostState, path: str, question: PacketQuestion) -> Armed:
    file = host.file(path)
    assert isinstance(file, File)
    name = f"ip6tables after the next boot ({path})"
    return _of_text(name, iptables.without_counters(text_of(file)), question)


def _ufw(host: HostState, question: PacketQuestion) -> Armed:
    name = "ufw after the next boot"
    texts = texts_of(host, iptables.UFW_IPV6_FILES)
    if isinstance(texts, Missing):
        return unread(name, texts.path, texts.reason, question)
    return _of_text(name, iptables.ufw_text(texts, "ufw6"), question)


def _of_text(name: str, text: str, question: PacketQuestion) -> Armed:
    tables = Tables(_NO_RULES, {}, ip6tables={"nft": text})
    return gathered(name, question.ask(tables), question.accepted)
