"""What can be broken on a lab host: one small function a fault, registered by name.

A fault is added by adding a function to a module of this package::

    @fault("no-getent", "getent is gone", repair=by_hand("getent"), log=HEALTHY)
    def no_getent(host: Host) -> None:
        host.must(["mv", "/usr/bin/getent", "/usr/bin/getent.gone"])

It works on a running host, from inside, without ssh, and MAY be injected twice. What is broken
lasts until the host is made anew (``remedy lab replace``, or ``Lab.reset``); what is only live also
ends with a reboot. What the tests of all faults have to know is declared with it (``remedy.lab.fault``).

A test may declare a fault of its own in its file, by name and text alone; for the command line
``remedy lab break --faults FILE`` loads such a file.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from remedy.errors import UsageError, raise_together
from remedy.lab.fault import Inject, JobLog, LabFault, Repair

# After this fault a host is a different machine, and what was broken before is gone.
REPLACED = "node-replaced"

_faults: dict[str, LabFault] = {}


def fault(
    name: str,
    text: str,
    *,
    repair: Repair | None = None,
    log: JobLog | None = None,
    harmless: str = "",
    console: str = "",
    is_slow: bool = False,
    order: int = 0,
) -> Callable[[Inject], Inject]:
    """Register a function as a fault.

    Args:
        name: how users call it.
        text: what it does, one line.
        repair: how ``remedy apply`` ends on the host; every fault of this package says it, as it does ``log``.
        log: what the corpus of logs holds of it.
        harmless: why nothing needs to be reported of it on a host of the lab.
        console: what a command on the host's console has to show, where no session can be had.
        is_slow: whether each check of the host takes twenty seconds.
        order: the higher come later, where a host has several.

    Raises:
        ValueError: the name is taken.
    """

    def register(inject: Inject) -> Inject:
        if name in _faults:
            raise ValueError(f"two faults are called {name!r}")
        _faults[name] = LabFault(name, text, inject, repair, log, harmless, console, is_slow, order)
        return inject

    return register


def catalogue() -> list[LabFault]:
    """Return the faults of this package and of files that were loaded, by name.

    What a test registers beside itself is found by ``get``, and is that test's own business.
    """
    _load()
    entries = (entry for entry in _faults.values() if entry.inject.__module__.startswith(__name__))
    return sorted(entries, key=lambda entry: entry.name)


def load_file(path: Path) -> None:
    """Register the faults that a Python file declares, such as a test of a remedy of one's own.

    Raises:
        UsageError: it cannot be loaded.
    """
    _load()
    sys.path.insert(0, str(Path.cwd()))  # what a test in a checkout imports
    spec = importlib.util.spec_from_file_location(f"{__name__}.{path.stem}", path)
    try:
        if spec is None or spec.loader is None:
            raise ImportError("it is no Python file")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:  # whatever the code of others raises
        text = f"The faults of {path} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(
            text, next_step="Correct the file: it declares them with @fault(name, text)."
        ) from error
    finally:
        del sys.path[0]


def get(name: str) -> LabFault:
    """Return one fault.

    Raises:
        UsageError: there is none of that name.
    """
    check_names([name])
    return _faults[name]


def check_names(names: Iterable[str]) -> None:
    """Refuse what is no fault's name.

    Raises:
        UsageError: there is none of such a name.
    """
    _load()
    raise_together(_unknown(name) for name in names if name not in _faults)


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, _faults, n=1)
    return UsageError(
        f"there is no fault {name!r}",
        next_step=f"Did you mean {near[0]!r}?" if near else "See all: remedy lab break --list",
    )


def _load() -> None:
    """Import the modules of this package, so that their faults are registered."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
