"""What a remedy is, and how remedies are found.

A remedy is one module: its own in ``remedy.deploys``, a third party's named by an entry point of the group
``remedy.deploys``. The module has a ``REMEDY``. Nothing else has to know it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from remedy.errors import UsageError
from remedy.plan.change import Change, Finding
from remedy.plan.fleet import Fleet
from remedy.probe import HostState
from remedy.spec import SECTIONS, SpecSection

ENTRY_POINTS = "remedy.deploys"

S = TypeVar("S", bound=SpecSection)


@dataclass(frozen=True)
class Assessment:
    """What a remedy has to say about one host.

    Args:
        findings: what is wrong, unknown or worth knowing.
        changes: what makes it right, in order; empty when nothing is to do.
        blobs: the bytes that the changes' digests stand for, by SHA-256 (hex).
    """

    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    blobs: Mapping[str, bytes] | None = None


@dataclass(frozen=True)
class Remedy(Generic[S]):
    """One concern: how to see that it is wrong, what right looks like, what makes it so.

    Args:
        name: what it is called everywhere: in the spec, in plans, in ``remedy explain``.
        title: the name in words.
        text: what it is, which symptoms it cures and what it never does; shown by ``remedy explain``.
        cures: labels of the causes it cures; none: it has no changes, it only reports.
        spec: the model of its section of the spec.
        assess: the decision, a pure function of the fleet, one host's state and the section.
        order: remedies with a smaller number act first on a host.
        assess_fleet: findings that belong to no single host.
        reads: files it needs the probe to read, beyond those that the probe reads anyway.
        promise: the state after one of its changes, beyond the content of files (which is known without it);
            what the probe would find. None where its changes have no other effect that it looks at.
        finds: labels of the causes that it names without curing them: what is to be done is in the finding.
    """

    name: str
    title: str
    text: str
    cures: tuple[str, ...]
    spec: type[S]
    assess: Callable[[Fleet, HostState, S], Assessment]
    order: int = 50
    assess_fleet: Callable[[Fleet, S], tuple[Finding, ...]] | None = None
    reads: tuple[str, ...] = ()
    promise: Callable[[HostState, Change], HostState] | None = None
    finds: tuple[str, ...] = ()

    @property
    def only_reports(self) -> bool:
        """Whether it never changes anything."""
        return not self.cures


@cache
def remedies() -> tuple[Remedy[Any], ...]:
    """Return every remedy there is, in the order in which they act.

    Raises:
        UsageError: a third party's cannot be loaded, is none, or has the name of another.
    """
    package = importlib.import_module("remedy.deploys")
    modules = [
        importlib.import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
        if not info.name.startswith("_")
    ]
    found: list[Remedy[Any]] = [module.REMEDY for module in modules]
    for point in entry_points(group=ENTRY_POINTS):
        found.append(_third_party(point, {remedy.name for remedy in found}))
    return tuple(sorted(found, key=lambda remedy: (remedy.order, remedy.name)))


def _third_party(point: EntryPoint, taken: Set[str]) -> Remedy[Any]:
    """Return the remedy of an entry point; ``taken`` are the names that others have."""
    package = point.dist.name if point.dist else "that names it"
    next_step = f"Repair the package {package}, or uninstall it."
    try:
        remedy = point.load().REMEDY
    except Exception as error:  # whatever the code of others raises
        text = f"the remedy {point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(text, next_step=next_step) from error
    if not isinstance(remedy, Remedy):
        text = f"{point.value} has a REMEDY that is none but {type(remedy).__name__}"
        raise UsageError(text, next_step=next_step)
    if remedy.name in taken:
        text = f"{point.value} calls itself {remedy.name!r}, as another remedy does"
        raise UsageError(text, next_step=next_step)
    return remedy


def find_remedy(name: str) -> Remedy[Any]:
    """Return the remedy called ``name``.

    Raises:
        UsageError: there is none.
    """
    for remedy in remedies():
        if remedy.name == name:
            return remedy
    raise UsageError(
        f"there is no remedy {name!r}",
        next_step=f"Remedies: {', '.join(r.name for r in remedies())}.",
    )


def section_models() -> dict[str, type[SpecSection]]:
    """Return the model of every section that ``remedy.yaml`` may have."""
    return {**SECTIONS, **{remedy.name: remedy.spec for remedy in remedies()}}
