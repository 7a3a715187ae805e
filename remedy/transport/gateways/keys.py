"""Host keys of hosts behind gateways: read and recorded on the gateways, whose ssh has to know them."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

import gevent

from remedy.errors import ChangedKeyError, RemedyError, UnreachableError
from remedy.inventory import Node
from remedy.spec import SshSpec
from remedy.text import clipped, fold, quoted, to_paste, visible
from remedy.transport.failures import at_host, ssh_command
from remedy.transport.gateways.asking import (
    AT_ONCE,
    FAMILIES,
    SECONDS,
    KeyLines,
    Login,
    Seen,
    parse,
    render_read,
    render_record,
)
from remedy.transport.gateways.endings import last_words
from remedy.transport.gateways.failures import answers_step, explain_ssh
from remedy.transport.gateways.routes import Routes
from remedy.transport.gateways.ssh import run_ssh, way_to
from remedy.trust import HostKeys, KeyState

_SHOWN = 200
# What somebody has to hear first, of a host that its gateways do not know alike.
_ORDER = (KeyState.REVOKED, KeyState.CHANGED, KeyState.NEW, KeyState.KNOWN)

Answers = Mapping[str, Seen | RemedyError]


class GatewayKeys:
    """The keys of hosts behind gateways, as each of a host's gateways has them.

    Args:
        routes: to the hosts.
        spec: the deadlines.
    """

    def __init__(self, routes: Routes, spec: SshSpec) -> None:
        self._routes = routes
        self._spec = spec

    def read(self, names: Iterable[str]) -> tuple[HostKeys, ...]:
        """Return the keys that hosts have proved to their gateways, and how these compare them."""
        every = list(names)
        answers = self._on_gateways(
            {name: KeyLines(self._node(name).ssh_address) for name in every}, read=True
        )
        return tuple(self._of_host(name, answers[name]) for name in every)

    def record(self, hosts: Iterable[HostKeys]) -> tuple[str, ...]:
        """Record keys on the gateways that lack them, and return where, in words.

        Raises:
            RemedyError: a gateway's ssh does not know a host then.
        """
        by_gateway: defaultdict[str, dict[str, KeyLines]] = defaultdict(dict)
        for host in hosts:
            for gateway, lines in host.lines.items():
                places = [place for place, _ in lines]
                replaces = places[0] if host.state is KeyState.CHANGED else ""
                address = self._node(host.host).ssh_address
                by_gateway[gateway][host.host] = KeyLines(address, lines, replaces)
        files: defaultdict[str, list[str]] = defaultdict(list)
        for gateway, answers in self._each(by_gateway, read=False).items():
            for name, seen in answers.items():
                if isinstance(seen, RemedyError):
                    raise seen
                if seen.state is not KeyState.KNOWN:
                    raise self._not_recorded(name, gateway, seen)
                if gateway not in files[seen.file]:
                    files[seen.file].append(gateway)
        return tuple(f"{visible(file)} on {fold(on)}" for file, on in files.items())

    def _node(self, name: str) -> Node:
        return self._routes.inventory.node(name)

    # -- deciding -----------------------------------------------------------------------------------

    def _of_host(self, name: str, answers: Answers) -> HostKeys:
        """Return what the gateways of a host say of it together."""
        known = {
            gateway: answer
            for gateway, answer in answers.items()
            if isinstance(answer, Seen) and answer.state is not KeyState.SILENT
        }
        if not known:
            return HostKeys(name, KeyState.SILENT, error=self._silent(name, answers))
        if _disagree(known.values()):
            return HostKeys(name, KeyState.SILENT, error=self._disagreeing(name, known))
        states = {answer.state for answer in known.values()}
        state = next(state for state in _ORDER if state in states)
        lacking = {gateway: answer.lines for gateway, answer in known.items() if answer.lines}
        if state in (KeyState.NEW, KeyState.CHANGED) and not lacking:
            return HostKeys(name, KeyState.SILENT, error=self._no_key(name, known))
        keys = {key.fingerprint: key for lines in lacking.values() for _, key in lines}
        detail = f"to {fold(lacking or known)}"
        if missed := [gateway for gateway in answers if gateway not in known]:
            detail += f"; {fold(missed)} did not reach it"
        recorded = {} if state is KeyState.REVOKED else lacking
        return HostKeys(name, state, keys=tuple(keys.values()), detail=detail, lines=recorded)

    def _silent(self, name: str, answers: Answers) -> RemedyError:
        gateway, first = next(iter(answers.items()))
        if isinstance(first, RemedyError):
            return first
        return self._explained(name, gateway, first)

    def _no_key(self, name: str, known: Mapping[str, Seen]) -> RemedyError:
        gateway = next(iter(known))
        return UnreachableError(
            f"{at_host(self._node(name))}: its key could not be read through {fold(known)}",
            next_step=f"See why: {self._routes.typed(gateway)} {ssh_command(self._node(name))} -v true",
        )

    def _disagreeing(self, name: str, known: Mapping[str, Seen]) -> RemedyError:
        reports = "; ".join(
            f"{gateway}: {', '.join(key.fingerprint for _, key in seen.lines)}"
            for gateway, seen in known.items()
            if seen.lines
        )
        return ChangedKeyError(
            f"{at_host(self._node(name))}: its gateways see different ssh host keys ({reports}): somebody is "
            "in between, or two machines have that address; nothing was recorded",
            next_step="Compare them on the host's console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        )

    def _not_recorded(self, name: str, gateway: str, seen: Seen) -> RemedyError:
        if seen.state is KeyState.SILENT:
            message = clipped(visible(seen.message.strip()), _SHOWN)
            return RemedyError(
                f"{name}: its key was not recorded on {gateway}: {message}",
                next_step="Record it there by hand, in a terminal of the gateway: "
                f"{ssh_command(self._node(name))}",
            )
        return self._explained(name, gateway, seen)

    def _explained(self, name: str, gateway: str, seen: Seen) -> RemedyError:
        error = explain_ssh(self._node(name), gateway, self._routes.typed(gateway), seen.message)
        error.next_step = to_paste(error.next_step, quoted(self._routes.inventory.path))
        return error

    # -- asking -------------------------------------------------------------------------------------

    def _on_gateways(
        self, entries: Mapping[str, KeyLines], *, read: bool
    ) -> dict[str, dict[str, Seen | RemedyError]]:
        """Ask all gateways of each host, and return what each says, by host and gateway."""
        by_gateway: defaultdict[str, dict[str, KeyLines]] = defaultdict(dict)
        for name, entry in entries.items():
            for gateway in self._routes.through(name):
                by_gateway[gateway][name] = entry
        answers = self._each(by_gateway, read=read)
        return {name: {g: answers[g][name] for g in self._routes.through(name)} for name in entries}

    def _each(
        self, by_gateway: Mapping[str, Mapping[str, KeyLines]], *, read: bool
    ) -> dict[str, Mapping[str, Seen | RemedyError]]:
        jobs = {
            g: gevent.spawn(self._ask, g, entries, read=read) for g, entries in by_gateway.items()
        }
        gevent.joinall(list(jobs.values()), raise_error=True)
        return {gateway: job.value for gateway, job in jobs.items()}

    def _ask(
        self, gateway: str, entries: Mapping[str, KeyLines], *, read: bool
    ) -> dict[str, Seen | RemedyError]:
        """Return what one gateway says of hosts, or why it says nothing."""
        logins: defaultdict[Login, list[str]] = defaultdict(list)
        for name in entries:
            node = self._node(name)
            user = str(node.data.get("ssh_user") or "")
            logins[Login(user, node.ssh_port, self._spec.connect)].append(name)
        answers: dict[str, Seen | RemedyError] = {}
        for login, names in logins.items():
            nonce = secrets.token_hex(16)
            asked = [entries[name] for name in names]
            addresses = [entry.address for entry in asked]
            render = partial(render_read, addresses) if read else partial(render_record, asked)
            text, words = self._run(self._way(gateway, login), render(login, nonce), len(names))
            seen = parse(text, addresses, nonce)
            for name, address in zip(names, addresses, strict=True):
                known = None if seen is None else seen.get(address)
                answers[name] = known or self._unreached(name, gateway, words)
        return answers

    def _run(self, way: list[str], script: str, hosts: int) -> tuple[str, str]:
        """Run a script on a gateway; return what it printed, and its errors."""
        rounds = -(-hosts // AT_ONCE)
        seconds = self._spec.reach + rounds * SECONDS * (1 + len(FAMILIES))
        answer = run_ssh(way, script, seconds)
        return answer.out, answer.errors

    def _way(self, gateway: str, login: Login) -> list[str]:
        """Return the command that runs what it reads on a gateway, through those that it stands behind."""
        path = [*(gateways[0] for gateways in self._routes.way(gateway)), gateway]
        return way_to(self._routes, self._spec, path, login, "sh -s")

    def _unreached(self, name: str, gateway: str, words: str) -> RemedyError:
        inventory, outer = self._routes.inventory, fold(self._routes.through(gateway))
        step = answers_step(self._routes, gateway)
        if outer and "Host key verification failed" in words:
            step = f"Compare the key of {gateway}, and record it in a terminal of {outer}: ssh {gateway}"
            if gateway in inventory:
                step = f"First the key of {gateway}: remedy trust INVENTORY --limit {gateway}"
        return UnreachableError(
            f"{at_host(self._node(name))}: its gateway {gateway} says nothing of its keys: {last_words(words)}",
            next_step=to_paste(step, quoted(inventory.path)),
        )


def _disagree(seen: Iterable[Seen]) -> bool:
    """Say whether a host has shown different keys of one type."""
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for answer in seen:
        for _, key in answer.lines:
            kinds[key.kind].add(key.fingerprint)
    return any(len(fingerprints) > 1 for fingerprints in kinds.values())
