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

# isort: split
from gevent import get_hub, getcurrent  # noqa: E402  (after pyinfra has chosen how sockets give way)


def hand_on(error: BaseException) -> bool:
    """Raise an error where the command waits, not in whatever of its side-by-side work a signal came to.

    Returns:
        False where the caller is what waits, and is to raise the error itself.
    """
    hub = get_hub()
    if getcurrent() is hub.parent:
        return False
    hub.loop.run_callback_threadsafe(hub.parent.throw, error)
    return True
