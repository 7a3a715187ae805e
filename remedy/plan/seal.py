"""Secrets that a plan was made with, so that it can be compared later, without what it must not hold.

For each secret that the inventory had for a changed host the plan has a keyed digest: with the key it shows
whether the secret is still the same, and without it nothing.
"""

from __future__ import annotations

from remedy.inventory import Inventory, Node
from remedy.plan.change import sha256
from remedy.plan.plan import Plan
from remedy.secret import Seal, holds_password, looks_secret
from remedy.text import fold

# Data of pyinfra's connector that name a file: what is in it, nobody reads here.
_FILE_NAMES = frozenset({"ssh_key"})


def sealed(plan: Plan, inventory: Inventory, seal: Seal) -> Plan:
    """Return a plan with the keyed digests of the secrets that it was made with."""
    update = {"secrets": _digests(plan, inventory, seal), "sealed_by": seal.id}
    return plan.model_copy(update=update)


def changed_secrets(plan: Plan, inventory: Inventory, seal: Seal | None) -> tuple[str, ...]:
    """Return, in words, which secrets have changed since a plan was made.

    Args:
        plan: a saved one.
        inventory: the hosts as they are now.
        seal: the key, None where there is none.
    """
    if not plan.secrets:
        return ()
    if seal is None or seal.id != plan.sealed_by:
        return (
            "the secrets of this plan cannot be compared: they were sealed with a key that is not here",
        )
    now = _digests(plan, inventory, seal)
    changed: dict[str, list[str]] = {}
    for place in sorted({*now, *plan.secrets}):
        if now.get(place) != plan.secrets.get(place):
            host, _, name = place.partition(" ")
            changed.setdefault(name, []).append(host)
    return tuple(
        f"{fold(hosts)}: {name} has changed since the plan was made"
        for name, hosts in changed.items()
    )


def secret_lines(plan: Plan) -> tuple[str, ...]:
    """Return a line for each secret of a plan: whose it is, and a digest that changes when it does."""
    hosts: dict[str, list[str]] = {}
    digests: dict[str, list[str]] = {}
    for place, digest in sorted(plan.secrets.items()):
        host, _, name = place.partition(" ")
        hosts.setdefault(name, []).append(host)
        digests.setdefault(name, []).append(digest)
    return tuple(
        f"secret {name} of {fold(hosts[name])}: {sha256(''.join(digests[name]).encode())[:12]} (keyed digest)"
        for name in hosts
    )


def _digests(plan: Plan, inventory: Inventory, seal: Seal) -> dict[str, str]:
    """Return what stands for each secret of the hosts that a plan changes, by host and name."""
    hosts = set(plan.hosts)
    return {
        place: seal.of(place, str(value))
        for node in inventory.nodes
        if node.name in hosts
        for name, value in _secrets(node)
        if (place := f"{node.name} {name}")
    }


def _secrets(node: Node) -> list[tuple[str, object]]:
    return [
        (name, value)
        for name, value in node.data.items()
        if value and name not in _FILE_NAMES and (looks_secret(name) or holds_password(str(value)))
    ]
