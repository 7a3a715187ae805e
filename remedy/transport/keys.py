"""Reading host keys the way a login goes, and no further than the exchange of keys.

What ``remedy trust`` shows and records is what a host has proved to have, at the place that a login reaches:
through ssh_config and its jump hosts, each of which is held to what is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gevent

from remedy.errors import RemedyError
from remedy.inventory import Node
from remedy.transport.connections import Transport
from remedy.transport.failures import explain_stuck
from remedy.transport.hostkeys import WANTED, KeyProved
from remedy.transport.refused import KeyRefusedError
from remedy.transport.watch import Overdue
from remedy.trust import HostKeys, KeyState, Withdrawal, record
from remedy.trust.judge import ALGORITHMS

# Of each family a server shows one key, whichever signature of the family is asked for.
FAMILIES = (ALGORITHMS[:1], ALGORITHMS[1:4], ALGORITHMS[4:])


class KeyReader(Transport):
    """Connects to hosts for their keys; takes what ``Transport`` takes."""

    def in_turn(self, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return hosts in groups, those first whose keys have to be known before the next can be read.

        A gateway that stands behind another is logged in to by that, on the way to the hosts behind it.
        """
        by_level: dict[int, list[str]] = {}
        for name in names:
            level = self._tree.level(name) if self._tree is not None else 0
            by_level.setdefault(level, []).append(name)
        return tuple(tuple(by_level[level]) for level in sorted(by_level))

    def read(self, names: Sequence[str]) -> tuple[HostKeys, ...]:
        """Return the keys that each host proves to have, all hosts at once.

        Hosts that are known show one key, the others one of each type that is to be recorded. Those behind
        gateways show theirs to these.
        """
        flat, behind = self._divided(names)
        jobs = {name: gevent.spawn(self._read, self.inventory.node(name)) for name in flat}
        through = self._tree.keys().read(behind) if self._tree is not None and behind else ()
        gevent.joinall(list(jobs.values()), raise_error=True)
        results = {host.host: host for host in through}
        return tuple(results.get(name) or jobs[name].value for name in names)

    def record(self, hosts: Sequence[HostKeys], recorded: list[str]) -> tuple[str, ...]:
        """Record the keys of hosts, and return in which files.

        Args:
            hosts: with the keys that were accepted.
            recorded: gets the name of each host whose keys are recorded; a signal may end this before all are.

        Raises:
            RemedyError: they cannot be written, or an old key would stay known.
        """
        through = [host for host in hosts if host.lines]
        here = [host for host in hosts if not host.lines]
        for host in here:
            record(host)
            recorded.append(host.host)
        files = sorted({str(host.server.user_files[0]) for host in here if host.server})
        on_gateways = (
            self._tree.keys().record(through) if self._tree is not None and through else ()
        )
        recorded += [host.host for host in through]
        return (*files, *on_gateways)

    def _read(self, node: Node) -> HostKeys:
        first = self._ask(node, ())
        if isinstance(first, HostKeys):
            return first
        decision = first.decision
        detail = decision.detail
        if decision.entry is not None and not detail and decision.state is not KeyState.KNOWN:
            detail = decision.entry.place
        if decision.withdrawal in (Withdrawal.AUTHORITY, Withdrawal.CERTIFICATE):
            detail = f"its {decision.withdrawal.value}: {detail}"
        host = HostKeys(node.name, decision.state, first.server, (first.key.plain,), detail)
        if decision.state not in (KeyState.NEW, KeyState.CHANGED):
            return host
        keys = list(host.keys)
        for family in FAMILIES:
            kinds = {"ssh-rsa" if name.startswith("rsa-") else name for name in family}
            if not set(family) & set(first.offered) or any(key.kind in kinds for key in keys):
                continue
            more = self._ask(node, family)
            if isinstance(more, KeyProved) and more.decision.state is not KeyState.REVOKED:
                keys.append(more.key.plain)
        return replace(host, keys=tuple(keys))

    def _ask(self, node: Node, algorithms: tuple[str, ...]) -> KeyProved | HostKeys:
        """Return the key that a host proves to have, or why it shows none; in a greenlet of its own."""

        def ask() -> KeyProved | HostKeys:
            WANTED.set(algorithms)
            try:
                with self._watchman.over(node.name) as watch:
                    error = self._connect(node, watch)
                    assert error is not None  # a login is never tried
                    return _silent(node, error, watch.refused)
            except KeyProved as proved:
                return proved
            except Overdue as overdue:
                return _silent(node, explain_stuck(node, overdue.stuck), None)
            finally:
                self.reconnect(node.name)

        result: KeyProved | HostKeys = gevent.spawn(ask).get()
        return result


def _silent(node: Node, error: RemedyError, refused: KeyRefusedError | None) -> HostKeys:
    """Return a host whose key could not be read, with the jump host that has to be known first."""
    behind = None
    if refused is not None and refused.decision.state is KeyState.NEW:
        behind = HostKeys(
            f"jump host {refused.via}",
            KeyState.NEW,
            refused.server,
            (refused.key.plain,),
            refused.decision.detail,
        )
    return HostKeys(node.name, KeyState.SILENT, error=error, behind=behind)
