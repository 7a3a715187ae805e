"""What an inventory says of hosts and gateways that no login uses: nobody passes it on to a gateway."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from remedy.inventory import Node
from remedy.text import fold
from remedy.transport.gateways.routes import Routes

# What the login from a gateway to a host takes from the inventory.
OF_HOST = ("ssh_hostname", "ssh_user", "ssh_port")
# OpenSSH logs in to a gateway, without a terminal: nothing can be typed there.
TYPED = ("ssh_password", "ssh_key_password")


def unused(routes: Routes) -> tuple[str, ...]:
    """Return in sentences which data of the inventory no login to a host or to a gateway uses."""
    inventory = routes.inventory
    hosts = [node for node in inventory.nodes if node.name in routes.behind]
    doors = [
        node
        for node in inventory.nodes
        if node.name in routes.gateways and node.name not in routes.behind
    ]
    of_hosts = _sentences(
        (
            (node, [key for key in node.data if key.startswith("ssh_") and key not in OF_HOST])
            for node in hosts
        ),
        "the gateway logs in, with a key of its own",
    )
    of_gateways = _sentences(
        ((node, [key for key in node.data if key in TYPED]) for node in doors),
        "ssh logs in to a gateway, with a key or an agent",
    )
    return (*of_hosts, *of_gateways)


def _sentences(keys: Iterable[tuple[Node, list[str]]], reason: str) -> Iterator[str]:
    """Yield a sentence for all hosts that have the same keys with a value."""
    by_keys: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for node, names in keys:
        by_keys[tuple(sorted(key for key in names if node.data[key]))].append(node.name)
    for same, hosts in by_keys.items():
        if same:
            verb = "is" if len(same) == 1 else "are"
            yield f"{fold(hosts)}: {_and(same)} of the inventory {verb} not used: {reason}"


def _and(names: tuple[str, ...]) -> str:
    return " and ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])
