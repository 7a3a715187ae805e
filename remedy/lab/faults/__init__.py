"""What can be broken on a lab host: one small function a fault, registered by name.

A fault is added by adding a function to a module of this package::

    @fault("no-getent", "getent is gone")
    def no_getent(host: Host) -> None:
        host.must(["mv", "/usr/bin/getent", "/usr/bin/getent.gone"])

It works on a running host, from inside, without ssh, and MAY be injected twice. What is broken
lasts until the host is made anew (``remedy lab replace``, or ``Lab.reset``); what is only live also
ends with a reboot. A test may declare a fault of its own in its file, in the same way; for the command
line ``remedy lab break --faults FILE`` loads such a file.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from remedy.errors import LabError
from remedy.lab.host import Host

Inject: TypeAlias = Callable[[Host], None]

# After this fault a host is a different machine, and what was broken before is gone.
REPLACED = "node-replaced"


@dataclass(frozen=True)
class LabFault:
    """Something that can be broken.

    Args:
        name: how users call it.
        text: what it does, one line.
        inject: breaks a host.
    """

    name: str
    text: str
    inject: Inject


_faults: dict[str, LabFault] = {}


def fault(name: str, text: str) -> Callable[[Inject], Inject]:
    """Register a function as a fault.

    Raises:
        ValueError: the name is taken.
    """

    def register(inject: Inject) -> Inject:
        if name in _faults:
            raise ValueError(f"two faults are called {name!r}")
        _faults[name] = LabFault(name, text, inject)
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
        LabError: it cannot be loaded.
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
        raise LabError(
            text, next_step="Correct the file: it declares them with @fault(name, text)."
        ) from error
    finally:
        del sys.path[0]


def get(name: str) -> LabFault:
    """Return one fault.

    Raises:
        LabError: there is none of that name.
    """
    _load()
    if name not in _faults:
        near = get_close_matches(name, _faults, n=1)
        raise LabError(
            f"There is no fault {name!r}.",
            next_step=f"Did you mean {near[0]!r}?" if near else "See them: remedy lab break --list",
        )
    return _faults[name]


def _load() -> None:
    """Import the modules of this package, so that their faults are registered."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
