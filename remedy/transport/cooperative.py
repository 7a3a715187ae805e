"""Sockets that give way to each other, as pyinfra makes them; to be imported before whatever uses sockets.

pyinfra does that by gevent, which looks for plugins at each of some twenty-five modules that it replaces, and
each time reads the entry points of all that is installed (``gevent.events.notify_and_call_entry_points``). Here
they are read once.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

_read = importlib.metadata.entry_points
_all: Any = _read()

importlib.metadata.entry_points = lambda **parameters: _all.select(**parameters)
try:
    import pyinfra_cli  # noqa: F401  (its import is what does it)
finally:
    importlib.metadata.entry_points = _read
