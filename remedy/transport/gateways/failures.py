"""What it means that a host could not be reached through its gateways, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ClusterShell

from remedy.errors import ChangedKeyError, HostKeyError, RemedyError, UnreachableError
from remedy.inventory import Node
from remedy.text import clipped, fold, quoted, visible
from remedy.transport.failures import at_host, ssh_command
from remedy.transport.gateways.endings import SHOWN, last_words
from remedy.transport.gateways.routes import Routes

_MOST_REASONS = 4


@dataclass(frozen=True)
class GatewayFault:
    """Why a gateway was given up.

    Args:
        reason: a sentence about it, without its name.
        needs_install: whether it lacks ClusterShell, of the release that is here.
        cause: the gateway behind it that is to be checked instead; "" for none.
    """

    reason: str
    needs_install: bool = False
    cause: str = ""


def explain_lost(
    node: Node,
    gateways: Sequence[str],
    faults: Mapping[str, GatewayFault],
    routes: Routes,
    python: str,
) -> RemedyError:
    """Return the error of a host whose gateways have all failed, or whose own did while its script ran.

    Args:
        node: the host.
        gateways: those that were tried.
        faults: why each failed.
        routes: the way to each.
        python: the interpreter on gateways.
    """
    known = {name: faults[name] for name in gateways if name in faults}
    reasons = "; ".join(
        f"{name}: {fault.reason}" for name, fault in list(known.items())[:_MOST_REASONS]
    )
    lacking = [fault.cause or name for name, fault in known.items() if fault.needs_install]
    first = next(iter(known), gateways[0])
    first = known[first].cause or first if known else first
    step = (
        install_step(lacking, routes, ClusterShell.__version__, python)
        if lacking
        else answers_step(routes, first)
    )
    return UnreachableError(
        f"{at_host(node)}: unreachable through {fold(gateways)}: {reasons or 'its gateway failed'}",
        next_step=step,
    )


def answers_step(routes: Routes, gateway: str) -> str:
    """Return how a user sees whether a gateway answers."""
    outer = routes.through(gateway)
    keys = f"the keys of {fold(outer)}" if outer else "this machine's keys"
    return f"Does {gateway} answer, with {keys}? {routes.typed(gateway)} true"


def install_step(gateways: Sequence[str], routes: Routes, release: str, python: str) -> str:
    """Return how gateways come to the right ClusterShell.

    Args:
        gateways: those that lack it.
        routes: the way to each.
        release: of ClusterShell here.
        python: the interpreter on gateways.
    """
    first, *others = gateways
    where = f"there, and on {fold(others)}" if others else "there"
    package = f"ClusterShell=={release}"
    if "/" in python:
        command = routes.typed(first, f"{quoted(python)} -m pip install {package}")
        return f"Install the same release {where}: {command}"
    place = "/opt/clustershell"
    text = f"python3 -m venv {place} && {place}/bin/pip install {package}"
    return (
        f"Install the same release {where}: {routes.typed(first, text)} (Debian has venv in python3-venv); and "
        f"set `ssh: {{gateway_python: {place}/bin/python}}` in remedy.yaml."
    )


def explain_stall(
    node: Node, gateway: str, door: str, seconds: float, *, began: bool
) -> RemedyError:
    """Return the error of a host that its gateway says nothing more of.

    Args:
        node: the host.
        gateway: its gateway.
        door: the ssh to that.
        seconds: for how long.
        began: whether its script had begun.
    """
    what = (
        "its script was not over, past its deadline there"
        if began
        else "no word that its script began"
    )
    return UnreachableError(
        f"{at_host(node)}: unreachable through {gateway}: {what}, for {seconds:.0f} s",
        next_step=f"Is the gateway frozen, or overloaded? {door} uptime",
    )


def explain_late(node: Node, gateway: str, door: str, seconds: float) -> RemedyError:
    """Return the error of a host whose ssh its gateway, behind the ssh ``door``, ended at the deadline."""
    return UnreachableError(
        f"{at_host(node)}: unreachable through {gateway}: its ssh was not over after {seconds:.0f} s, and was "
        "ended there",
        next_step=f"Is the host up, and does its sshd answer the gateway? {_by_hand(node, door)}",
    )


def _by_hand(node: Node, door: str) -> str:
    """Return how a user goes the way of a gateway to a host."""
    return f"{door} {ssh_command(node)} true"


def explain_ssh(node: Node, gateway: str, door: str, errors: str) -> RemedyError:
    """Return the error of an ssh on a gateway that did not come to the host's shell.

    Args:
        node: the host.
        gateway: where ssh ran.
        door: the ssh to it.
        errors: what it printed.

    Returns:
        The error; its next step has ``INVENTORY`` for the inventory.
    """
    last = last_words(errors)
    at, by_hand = at_host(node), _by_hand(node, door)
    if "IDENTIFICATION HAS CHANGED" in errors:
        return ChangedKeyError(
            f"{at}: the ssh host key that its gateway {gateway} knows has CHANGED: another machine, or "
            "somebody in between",
            next_step="If the host was replaced, accept its new key there: "
            f"remedy trust INVENTORY --replace {node.name}",
        )
    if "Host key verification failed" in errors or "host key is known" in errors:
        return HostKeyError(
            f"{at}: its gateway {gateway} does not know the ssh host key",
            next_step="Compare it on the host's console, and record it there: "
            f"remedy trust INVENTORY --limit {node.name}",
        )
    if "Permission denied" in errors or "Too many authentication failures" in errors:
        return UnreachableError(
            f"{at}: unreachable through {gateway}: the host refused the gateway's login: {last}",
            next_step="The gateway logs in with keys of its own (no agent is forwarded), as ssh_user of the "
            f"inventory: {by_hand}",
        )
    if "Could not resolve" in errors:
        return UnreachableError(
            f"{at}: unreachable through {gateway}: the gateway cannot resolve {node.ssh_address!r}",
            next_step="Give an address in the inventory: ssh_hostname.",
        )
    return UnreachableError(
        f"{at}: unreachable through {gateway}: {last}",
        next_step=f"Is the host up and its sshd reachable from the gateway? {by_hand}",
    )


def explain_inner(node: Node, gateways: Sequence[str], routes: Routes) -> RemedyError:
    """Return the error of a host whose gateway, behind another, ended at work and answers again."""
    outer = fold(routes.through(gateways[0]))
    return UnreachableError(
        f"{at_host(node)}: the connection from {outer} to its gateway {fold(gateways)} broke while the "
        "script ran",
        next_step=f"Run the command again; if that happens again: {routes.typed(gateways[0])} uptime",
    )


def explain_break(node: Node, gateway: str, errors: str) -> RemedyError:
    """Return the error of a connection between gateway and host that broke while the script ran."""
    lines = errors.strip().splitlines()
    last = clipped(visible(lines[-1]), SHOWN) if lines else "nothing was printed"
    return UnreachableError(
        f"{at_host(node)}: the connection from {gateway} broke while the script ran: {last}",
        next_step="Check the host's console and network, then run the command again.",
    )


def explain_relay(node: Node, reason: str) -> RemedyError:
    """Return the error of a host whose request the process that speaks with gateways did not finish."""
    return UnreachableError(
        f"{at_host(node)}: the process that speaks with its gateways ended: {clipped(visible(reason), SHOWN)}",
        next_step="Run the command again; if it happens again, report it with that text.",
    )
