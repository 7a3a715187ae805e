"""The nodes of one line of Slurm: which hosts they are, at which addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from remedy.inventory.elsewhere.listing import Collector, hosts_of, text_shown
from remedy.text import BracketError

_ABSENT = re.compile(r"FUTURE|POWERED_DOWN|FUTR")


def add_nodes(collector: Collector, where: str, names: str, values: Mapping[str, str]) -> list[str]:
    """Take the nodes of one line, and return their names in Slurm.

    Args:
        values: of its keys in lower case.
    """
    if _ABSENT.search(values.get("state", "").upper()):
        collector.drop(text_shown(names), f"State={text_shown(values['state'])}, not there yet")
        return []
    try:
        nodes = hosts_of(names)
        hosts = hosts_of(values.get("nodehostname", "")) or nodes
    except BracketError as error:
        collector.drop_list(where, names, error)
        return []
    if not nodes:
        collector.drop(f"{where}: NodeName={text_shown(names)}", "no node")
        return []
    try:
        addresses = _addresses(values.get("nodeaddr", ""))
    except BracketError as error:
        collector.note(f"{where}: {error}", "not a NodeAddr, so it is not used")
        addresses = []
    if len(hosts) == len(nodes):
        _note_names(collector, nodes, hosts)
    else:
        _note_numbers(collector, f"{where}: {text_shown(names)}", len(hosts))
    if addresses and len(addresses) != len(hosts):
        collector.note(
            f"{where}: {text_shown(names)}",
            "not as many NodeAddr as nodes, so they are not used",
        )
        addresses = []
    for number, host in enumerate(hosts):
        collector.add(where, host, ssh_hostname=addresses[number] if addresses else None)
    return nodes


def _note_names(collector: Collector, nodes: list[str], hosts: list[str]) -> None:
    """Note the hosts that Slurm calls differently."""
    for node, host in zip(nodes, hosts, strict=True):
        if node.lower() != host.lower():
            collector.note(
                f"{text_shown(node)} ({text_shown(host)})",
                "a NodeName and its NodeHostname, which is the name of the host",
            )


def _note_numbers(collector: Collector, item: str, hosts: int) -> None:
    """Note that there are not as many hosts as nodes."""
    reason = (
        "several nodes on one host, which is taken once"
        if hosts == 1
        else "not as many NodeHostname as nodes, which Slurm refuses; each of these is taken"
    )
    collector.note(item, reason)


def _addresses(text: str) -> list[str]:
    """Return addresses of a list; those of IPv6 have colons, and are in no ranges."""
    return text.split(",") if ":" in text else hosts_of(text)
