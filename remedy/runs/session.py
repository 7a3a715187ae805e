"""An open inventory: what every command on hosts begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol

from remedy.errors import RemedyError, UsageError, raise_together
from remedy.inventory import Inventory
from remedy.spec import (
    COMMAND_LINE,
    SECTIONS,
    Spec,
    SpecSection,
    SshSpec,
    VerifySpec,
    load_spec,
    read_document,
)
from remedy.spec import FILE_NAME as SPEC_NAME
from remedy.text import quoted
from remedy.transport import HostEvent
from remedy.transport.connections import Transport
from remedy.transport.reader import load_inventory

if TYPE_CHECKING:
    from pydantic import SecretStr

    from remedy.apply.carrier import Carrier
    from remedy.audit import Story
    from remedy.plan import Choice
    from remedy.runs.activity import Activity
    from remedy.runs.launch import Launcher
    from remedy.verify.verdict import Rung


JUDGING = ("remedy.edit", "remedy.firewall", "remedy.deploys")
"""The rooms that judge what hosts answered: a fifth of what a command imports."""


class Progress(Protocol):
    """Receives what happens while a command works."""

    def stage(self, title: str) -> AbstractContextManager[None]:
        """Enter a stage of the command, such as "Reading 4 hosts"; it is over when the block ends."""
        ...

    def host(self, event: HostEvent) -> None:
        """Take the next step of one host."""
        ...

    def rung(self, rung: Rung) -> None:
        """Take a rung of the verification that was just climbed."""
        ...


class Silent:
    """Progress that nobody watches."""

    def stage(self, title: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Ignore a stage."""
        return nullcontext()

    def host(self, event: HostEvent) -> None:
        """Ignore a step."""

    def rung(self, rung: Rung) -> None:
        """Ignore a rung."""


@dataclass(frozen=True)
class Session:
    """One inventory, one spec, and the connections to its hosts.

    Args:
        inventory: all hosts; the journal is beside it.
        spec: the settings.
        transport: runs scripts on hosts.
        hosts: those that the command is for (``--limit``), in the order of the inventory.
        progress: receives what happens.
        activity: what the command is at.
        choice: the remedies that decide (``--only``, ``--skip``).
        strict: whether what remedies only report counts for the exit code, too.
    """

    inventory: Inventory
    spec: Spec
    transport: Transport
    hosts: tuple[str, ...]
    progress: Progress = field(default_factory=Silent)
    activity: Activity = field(default_factory=lambda: _activity())
    choice: Choice = field(default_factory=lambda: _choose((), ()))
    strict: bool = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a command after that opens them again."""
        self.transport.close()

    @property
    def home(self) -> Path:
        """The folder of the journal."""
        return self.inventory.home

    @property
    def typed(self) -> str:
        """The inventory as it is typed in a command."""
        return quoted(self.inventory.path)

    def show_command(self, run: str) -> str:
        """Return the command that shows a run, from the folder in which this command was typed."""
        return show_command(run, self.inventory.path)

    @cached_property
    def carrier(self) -> Carrier:
        """Brings changes to the hosts."""
        from remedy.apply.carrier import Carrier
        from remedy.apply.job import Guard

        settings = self.spec.apply
        guard = Guard(settings.confirm_seconds, needs_systemd=settings.without_systemd == "refuse")
        return Carrier(self.transport, guard, self.hear, settings.keep_days)

    def hear(self, event: HostEvent) -> None:
        """Take the next step of one host."""
        self.activity.hear(event)
        self.progress.host(event)

    @cached_property
    def launcher(self) -> Launcher:
        """Starts the ranks of a proof, as the settings say."""
        from remedy.runs.launch import slurm_launcher, ssh_launcher

        if self.spec.section("verify", VerifySpec).launcher == "ssh":
            return ssh_launcher(partial(self.transport.run, together=True))
        return slurm_launcher(self.inventory, self.hosts, self.transport.run, self.hear)

    def check_launcher(self) -> None:
        """Find out whether ranks can be started as the settings ask, before anything else is done.

        Raises:
            UsageError: there is no allocation here, or it lacks selected hosts; or they cannot be divided so.
            LaunchError: the allocation cannot be used.
        """
        section = self.spec.section("verify", VerifySpec)
        if section.divide is not None:
            from remedy.verify.allreduce.division import divide

            divide(section, self.hosts, self.inventory.groups)
        _ = self.launcher

    def stories(self) -> dict[str, Story]:
        """Read the story of every run from the journal."""
        from remedy.audit import read_stories
        from remedy.audit.journal import FILE_NAME

        return read_stories(self.home / FILE_NAME)

    def story(self, run: str) -> Story:
        """Read the story of one run.

        Raises:
            UsageError: the journal has no such run.
        """
        story = self.stories().get(run)
        if story is None:
            raise UsageError(
                f"the journal in {self.home} has no run {run!r}",
                next_step=f"List the runs: remedy history {self.typed}",
            )
        return story


def show_command(run: str, inventory: Path) -> str:
    """Return the command that shows a run of an inventory, from the folder from which that is typed so."""
    folder = inventory.parent
    home = "" if folder == Path() else f" --home {quoted(folder / '.remedy')}"
    return f"remedy show {run}{home}"


def _activity() -> Activity:
    from remedy.runs.activity import Activity

    return Activity()


def _choose(only: tuple[str, ...], skip: tuple[str, ...]) -> Choice:
    from remedy.plan import EVERY, choose, remedies

    if not (only or skip):
        return EVERY  # and no remedy is imported for its name
    return choose(only, skip, [remedy.name for remedy in remedies()])


def open_session(
    path: Path,
    *,
    spec: Path | None = None,
    limit: tuple[str, ...] = (),
    settings: Mapping[str, Mapping[str, object]] | None = None,
    origin: str = COMMAND_LINE,
    sudo_password: SecretStr | None = None,
    progress: Progress | None = None,
    modules: Sequence[str] = (),
    later: Sequence[str] = (),
    only: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    strict: bool = False,
) -> Session:
    """Read an inventory and its spec, and begin to connect: meanwhile, what the command works with is imported.

    Args:
        path: the inventory.
        spec: ``remedy.yaml``; None for the one beside the inventory, where there is one.
        limit: names, groups or patterns of hosts; empty for all.
        settings: by section, what holds in place of the spec; None leaves a setting alone.
        origin: where these are from, for what is wrong with them.
        sudo_password: for hosts that ask for one.
        progress: receives what happens.
        modules: what the command works with; without any, no connection is opened before the first is needed.
        later: what it works with once hosts have answered: imported while they are at work.
        only: the remedies that decide, empty for all; ``skip``: those that do not.
        strict: whether what remedies only report counts for the exit code, too.

    Raises:
        InventoryError: the inventory cannot be used.
        SpecError: the spec cannot be used.
        UsageError: ``limit`` selects no host, or there is no such remedy.
    """
    inventory = load_inventory(path)
    file = _spec_file(path, spec)
    hosts = inventory.select(limit)
    hearer = progress or Silent()
    activities: list[Activity] = []

    def hear(event: HostEvent) -> None:
        for hearing in (*(activity.hear for activity in activities), hearer.host):
            hearing(event)

    # What is wrong with settings or the command line is reported before a host hears of the command.
    loaded = _load(file, settings or {}, origin)
    choice = _choose(only, skip) if only or skip else None
    transport = Transport(inventory, sudo_password=sudo_password, listener=hear, spec=loaded.ssh)
    # Where approvals are required, a command may yet be refused for want of them.
    if modules and not loaded.approval.required:
        # Most of what a command on few hosts takes is importing, for which no host has to wait.
        transport.meanwhile(hosts, lambda: tuple(map(import_module, modules)))
        transport.spare.add(_pieces(later, loaded))
    activities.append(_activity())
    choice = choice or _choose((), ())
    return Session(inventory, loaded, transport, hosts, hearer, activities[0], choice, strict)


def ssh_settings(path: Path, spec: Path | None = None) -> SshSpec:
    """Return how the hosts of an inventory are reached, for whoever needs nothing else of its settings.

    Args:
        path: the inventory.
        spec: ``remedy.yaml``; None for the one beside the inventory, where there is one.

    Raises:
        SpecError: the settings cannot be used.
    """
    return _load(_spec_file(path, spec), {}).ssh


def _spec_file(path: Path, spec: Path | None) -> Path | None:
    beside = path.resolve().parent / SPEC_NAME
    return spec or (beside if beside.exists() else None)


def _pieces(modules: Iterable[str], spec: Spec) -> Iterator[Callable[[], object]]:
    """Yield what a command does anyway once hosts have answered, and can do before: it imports, mostly."""
    from remedy.probe import records

    judging = chain.from_iterable(map(_modules_of, JUDGING))
    yield from (partial(import_module, module) for module in (*judging, *modules))
    yield lambda: spec.digest
    yield from (record.model_rebuild for record in records())


def _modules_of(package: str) -> Iterator[str]:
    """Yield the modules of a package, first those right in it: each with few that are not there yet."""
    modules = sorted(iter_modules(import_module(package).__path__), key=lambda module: module.ispkg)
    for module in modules:
        name = f"{package}.{module.name}"
        yield from _modules_of(name) if module.ispkg else (name,)


def _load(
    file: Path | None, settings: Mapping[str, Mapping[str, object]], origin: str = COMMAND_LINE
) -> Spec:
    """Return the settings of a file, with what holds in their place."""
    document = read_document(file)
    spec = load_spec(file, _named((*document, *settings)), document, _all_models)
    errors: list[RemedyError] = []
    for section, values in settings.items():
        try:
            spec.override(section, origin, **values)
        except RemedyError as error:
            errors += error.parts or (error,)
    raise_together(errors)
    return spec


def _all_models() -> dict[str, type[SpecSection]]:
    from remedy.plan import section_models

    return section_models()


def _named(sections: Iterable[str]) -> dict[str, type[SpecSection]]:
    """Return the models of these sections, and as few others as that needs."""
    models = dict(SECTIONS)
    for name in sections:
        if name not in models:
            from remedy.plan.registry import built_in

            own = built_in(str(name))
            if own is None:  # another package's, or none at all
                return _all_models()
            models[name] = own.settings
    return models
