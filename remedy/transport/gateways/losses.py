"""Which gateways failed in a run, what to tell of hosts that this costs, and of those that went another way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import ClusterShell

from remedy.errors import RemedyError
from remedy.inventory import Node
from remedy.sentences import Sentence, as_one, in_groups
from remedy.text import fold, folded
from remedy.transport.gateways.failures import (
    GatewayFault,
    answers_step,
    explain_inner,
    explain_lost,
    install_step,
)
from remedy.transport.gateways.routes import Routes


class Losses:
    """The gateways of a run that failed.

    Args:
        routes: to all hosts.
        python: the interpreter on gateways.

    Attributes:
        faults: why each failed.
    """

    def __init__(self, routes: Routes, python: str) -> None:
        self.faults: dict[str, GatewayFault] = {}
        self._routes = routes
        self._python = python
        self._named: set[str] = set()

    def note(self, gateway: str, fault: GatewayFault) -> None:
        """Take note of a gateway that failed."""
        self.faults[gateway] = fault

    def of_host(self, node: Node, gateway: str = "") -> RemedyError:
        """Return the error of a host that was lost, through a gateway where it was sent through one."""
        way = self._routes.way(node.name)
        gateways = next((names for names in way if self._all_failed(names)), ())
        if not gateways and gateway in self.faults:
            gateways = (gateway,)
        # One of several behind others: which of them a host had is known to the others alone.
        gateways = gateways or tuple(g for names in way[1:] for g in names if g in self.faults)
        if not gateways and not gateway and len(way) > 1:
            return explain_inner(node, way[-1], self._routes)
        self._named.update(gateways)
        tried = gateways or ((gateway,) if gateway else way[0])
        return explain_lost(node, tried, self.faults, self._routes, self._python)

    def _all_failed(self, gateways: Iterable[str]) -> bool:
        return all(name in self.faults for name in gateways)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The gateways whose hosts went another way, in sentences: no error of a host names these."""
        silent = {name: self.faults[name] for name in self.faults if name not in self._named}
        return tuple(self._sentences(silent))

    def _sentences(self, faults: dict[str, GatewayFault]) -> Iterator[str]:
        by_others: defaultdict[tuple[str, ...], list[Sentence]] = defaultdict(list)
        for name, fault in faults.items():
            by_others[self._others(name)].append(Sentence.of(name, fault.reason, self._names))
        for others, sentences in by_others.items():
            for group in in_groups(sentences):
                names = [sentence.host for sentence in group]
                alone = len(names) == 1
                gateways, whose = ("a gateway", "its") if alone else ("gateways", "their")
                instead = f", {whose} hosts went through {fold(others)}" if others else ""
                yield (
                    f"{folded(names)}: failed as {gateways}{instead}: {as_one(group)}. {self._step(names)}"
                )

    @property
    def _names(self) -> frozenset[str]:
        return self._routes.gateways

    def _others(self, gateway: str) -> tuple[str, ...]:
        """Return the gateways to the same hosts that have not failed."""
        sets = (branch.gateways for branch in self._routes.routes if gateway in branch.gateways)
        return tuple(sorted({g for names in sets for g in names if g not in self.faults}))

    def _step(self, names: list[str]) -> str:
        """Return what to do about gateways that have failed alike."""
        if self.faults[names[0]].needs_install:
            return install_step(names, self._routes, ClusterShell.__version__, self._python)
        return answers_step(self._routes, names[0])
