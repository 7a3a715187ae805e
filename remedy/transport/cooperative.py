"""Sockets that give way to each other, as pyinfra makes them; to be imported before whatever uses sockets.

pyinfra does that by gevent, which looks for plugins at each of some twenty-five modules that it replaces, and
each time reads the entry points of all that is installed (``gevent.events.notify_and_call_entry_points``). Here
they are read once. For ``Match exec`` in ssh_config paramiko imports ``invoke``, a fifth of what is imported
before the first connection; here that is loaded when it is used.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any


class Invoke:
    """What paramiko uses of ``invoke``."""

    @staticmethod
    def run(command: str, **options: Any) -> Any:
        """Run a command."""
        import invoke

        return invoke.run(command, **options)


_read = importlib.metadata.entry_points
_all: Any = _read()

importlib.metadata.entry_points = lambda **parameters: _all.select(**parameters)
try:
    import pyinfra_cli  # noqa: F401  (its import is what does it)
finally:
    importlib.metadata.entry_points = _read

# isort: split
if "invoke" not in sys.modules and "paramiko" not in sys.modules:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # which has its import fail
    try:
        import paramiko.config
    finally:
        del sys.modules["invoke"]
    setattr(paramiko.config, "invoke", Invoke)  # noqa: B010 - its types do not have it
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
