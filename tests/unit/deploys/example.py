"""The worked example of docs/writing-a-remedy.md, loaded from where it stands."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from remedy.plan import Remedy, remedy_of

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "examples"


def load(path: Path) -> ModuleType:
    """Return the module in a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


EXAMPLE: Remedy[Any] = remedy_of(load(FOLDER / "numa_balancing.py"))
