"""What a remedy is, and how remedies are found.

A remedy is one module: one of ``remedy.deploys``, or a third party's that an entry point of the group
``remedy.deploys`` names. In it is a function of the module's name, the decision, under the decorator
``@remedy(...)``. Nothing else has to know of it; docs/writing-a-remedy.md goes through it step by step.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator, Set
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from types import ModuleType
from typing import Any, Generic, TypeVar

from remedy.causes import Cause, causes
from remedy.errors import UsageError
from remedy.installed import REMEDIES, points
from remedy.plan.change import Change, Finding
from remedy.plan.fleet import Fleet
from remedy.plan.workbench import FleetBench, Undecided, Workbench
from remedy.probe import HostState
from remedy.spec import FILE_NAME, SECTIONS, SpecSection

READS = "reads.txt"
DEPLOYS = "remedy.apply.under_pyinfra"

S = TypeVar("S", bound=SpecSection)

Decision = Callable[[Workbench[S]], None]
FleetDecision = Callable[[FleetBench[S]], None]
Promise = Callable[[HostState, Change], HostState]
Observation = Callable[[HostState, Change], str]
Breakage = Callable[[HostState], HostState]


class Remedy(Generic[S]):
    """One concern: how it is judged, and what makes it right.

    It is callable, and then it is a deploy of pyinfra: ``pyinfra INVENTORY remedy.deploys.hostname.hostname``.

    Args:
        decide: the decision, a pure function of what is on the workbench; its module names the remedy and
            says in its docstring what it is, which symptoms it cures and what it never does.
        title: the name in words.
        settings: the model of its section of ``remedy.yaml``.
        cures: the causes that its changes end; none: it has no changes, it only reports.
        finds: the causes that it reports without ending them: what to do is in the finding.
        order: remedies with a smaller number act first on a host.
        reads: files it needs the probe to read, beyond those that the probe reads anyway; may hold ``*``.
    """

    def __init__(
        self,
        decide: Decision[S],
        title: str,
        settings: type[S],
        *,
        cures: tuple[str | Cause, ...],
        finds: tuple[str | Cause, ...],
        order: int,
        reads: tuple[str, ...],
    ) -> None:
        self.name = self.__name__ = decide.__name__
        self.module = decide.__module__
        self.text = sys.modules[decide.__module__].__doc__ or ""
        self.title = title
        self.settings = settings
        self.order = order
        self.reads = reads
        self.cures = tuple(str(cause) for cause in cures)
        self.finds = tuple(str(cause) for cause in finds)
        self.causes = tuple(cause for cause in (*cures, *finds) if isinstance(cause, Cause))
        self.promise: Promise | None = None
        self.observation: Observation | None = None
        self.broken: Breakage | None = None
        self._decide = decide
        self._decide_fleet: FleetDecision[S] | None = None

    @property
    def only_reports(self) -> bool:
        """Whether it never changes anything."""
        return not self.cures

    def fleetwide(self, decide: FleetDecision[S]) -> FleetDecision[S]:
        """Register the decision about what belongs to no single host; a decorator."""
        self._decide_fleet = decide
        return decide

    def promises(self, promise: Promise) -> Promise:
        """Register what the probe finds after one of the changes, beyond the content of files; a decorator.

        It is written by hand, from the state and the change alone: an independent second opinion, which the
        property tests hold against the decision. One that were derived from the decision could not disagree
        with it. A remedy whose changes have no other effect that the probe looks at needs none.
        """
        self.promise = promise
        return promise

    def observes(self, observation: Observation) -> Observation:
        """Register what the ``observe`` of a command change prints on a host in a given state; a decorator.

        The property tests hold ``before`` and ``after`` of every command against it.
        """
        self.observation = observation
        return observation

    def breaks(self, broken: Breakage) -> Breakage:
        """Register how a host is broken so that this remedy has something to change; a decorator.

        The property tests switch the remedy on with it. One that settings, or files as these tests damage
        them, switch on needs none.
        """
        self.broken = broken
        return broken

    def assess(self, fleet: Fleet, host: HostState, settings: S) -> Workbench[S]:
        """Return the workbench after the decision about one host."""
        bench = Workbench(
            fleet, host, settings, self.name, self._label, only_reports=self.only_reports
        )
        with contextlib.suppress(Undecided):  # the reason is among the findings
            self._decide(bench)
        return bench

    def assess_fleet(self, fleet: Fleet, settings: S) -> tuple[Finding, ...]:
        """Return the findings that belong to no single host."""
        bench = FleetBench(fleet, settings, self.name, self._label)
        if self._decide_fleet is not None:
            self._decide_fleet(bench)
        return tuple(bench.findings)

    @property
    def _label(self) -> str:
        """The cause that its findings have unless they name another."""
        return (*self.cures, *self.finds)[0]

    def __call__(self, **arguments: Any) -> None:
        """Carry the remedy out on pyinfra's current host; ``arguments`` are pyinfra's global ones."""
        # By its name, and only now: the layer above this one, and pyinfra with it, are for pyinfra's users.
        # It cannot register itself: pyinfra imports the module of the remedy, and nothing of `remedy.apply`.
        importlib.import_module(DEPLOYS).deploy_of(self.name, self.title)(**arguments)


def remedy(
    title: str,
    settings: type[S],
    *,
    cures: tuple[str | Cause, ...] = (),
    finds: tuple[str | Cause, ...] = (),
    order: int = 50,
    reads: tuple[str, ...] = (),
) -> Callable[[Decision[S]], Remedy[S]]:
    """Make a remedy of the decision under it, which is called like its module; see ``Remedy``."""

    def build(decide: Decision[S]) -> Remedy[S]:
        if not cures and not finds:
            raise UsageError(
                f"the remedy {title!r} names no cause",
                next_step="Name in its @remedy(...) what its changes end, cures=(...), or what it reports, "
                "finds=(...).",
            )
        return Remedy(decide, title, settings, cures=cures, finds=finds, order=order, reads=reads)

    return build


_EXTRA: list[Remedy[Any]] = []


@contextlib.contextmanager
def also(*extra: Remedy[Any]) -> Iterator[None]:
    """Have these remedies among all others for a while; for trying one that no package brings."""
    _EXTRA.extend(extra)
    try:
        yield
    finally:
        del _EXTRA[-len(extra) :]


def remedies() -> tuple[Remedy[Any], ...]:
    """Return every remedy there is, in the order in which they act.

    Raises:
        UsageError: a third party's cannot be loaded, is none, or has the name of another.
    """
    return tuple(sorted((*_installed(), *_EXTRA), key=lambda remedy: (remedy.order, remedy.name)))


@cache
def _installed() -> tuple[Remedy[Any], ...]:
    """Return the remedies that come with the program, and those of entry points."""
    own = (remedy_of(importlib.import_module(module)) for module in own_modules())
    return (*own, *_others())


@cache
def own_modules() -> tuple[str, ...]:
    """Return the modules of remedy's own remedies, importing none."""
    package = importlib.import_module("remedy.deploys")
    names = (info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(f"{package.__name__}.{name}" for name in names if not name.startswith("_"))


@cache
def _others() -> tuple[Remedy[Any], ...]:
    """Return the remedies of entry points."""
    known: list[Remedy[Any]] = []
    taken = {*SECTIONS, *(module.rpartition(".")[2] for module in own_modules())}
    for point in points(group=REMEDIES):
        known.append(_third_party(point, taken | {remedy.name for remedy in known}))
    return tuple(known)


def files_read() -> tuple[str, ...]:
    """Return the files that remedies need the probe to read, importing none of remedy's own.

    Hosts are asked before their answers are judged, so that all that judges is imported while they are at work.
    What remedy's own remedies read is in a file for that, which a test compares with them.
    """
    own = files("remedy.plan").joinpath(READS).read_text("utf-8").splitlines()
    more = (path for remedy in (*_others(), *_EXTRA) for path in remedy.reads)
    return tuple(dict.fromkeys((*own, *more)))


def remedy_of(module: ModuleType) -> Remedy[Any]:
    """Return the remedy that a module holds.

    Raises:
        TypeError: it holds none.
    """
    name = module.__name__.rpartition(".")[2]
    candidate = getattr(module, name, None)
    if not isinstance(candidate, Remedy):
        raise TypeError(f"it has no function {name}() under @remedy(...)")
    return candidate


def _third_party(point: EntryPoint, taken: Set[str]) -> Remedy[Any]:
    """Return the remedy of an entry point; ``taken`` are the names that others have."""
    package = point.dist.name if point.dist else "that names it"
    next_step = f"Repair the package {package}, or uninstall it."
    try:
        loaded = point.load()
        candidate = loaded if isinstance(loaded, Remedy) else remedy_of(loaded)
    except Exception as error:  # whatever the code of others raises
        text = f"the remedy {point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(text, next_step=next_step) from error
    if candidate.name in taken:
        text = f"{point.value} has the name {candidate.name!r}, as another remedy or a section of {FILE_NAME}"
        raise UsageError(text, next_step=next_step)
    return candidate


@cache
def built_in(name: str) -> Remedy[Any] | None:
    """Return remedy's own remedy called ``name``, importing no other; None where there is none."""
    module = f"remedy.deploys.{name}"
    is_name = name.isidentifier() and not name.startswith("_")
    if not is_name or importlib.util.find_spec(module) is None:
        return None
    return remedy_of(importlib.import_module(module))


def find_remedy(name: str) -> Remedy[Any]:
    """Return the remedy called ``name``.

    Raises:
        UsageError: there is none.
    """
    if (own := built_in(name)) is not None:
        return own
    for candidate in remedies():
        if candidate.name == name:
            return candidate
    raise UsageError(
        f"there is no remedy {name!r}",
        next_step=f"Remedies: {', '.join(r.name for r in remedies())}.",
    )


def all_causes() -> dict[str, Cause]:
    """Return every cause by its label: those of causes.yaml, and those that remedies bring."""
    own = {cause.name: cause for remedy in remedies() for cause in remedy.causes}
    return {**own, **causes()}


def section_models() -> dict[str, type[SpecSection]]:
    """Return the model of every section that ``remedy.yaml`` may have."""
    return {**SECTIONS, **{remedy.name: remedy.settings for remedy in remedies()}}
