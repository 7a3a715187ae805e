"""Sockets that give way to each other, as pyinfra makes them; to be imported before whatever uses sockets.

pyinfra does that by gevent, which looks for plugins at each of some twenty-five modules that it replaces, and
each time reads the entry points of all that is installed (``gevent.events.notify_and_call_entry_points``), as
``typeguard`` does. Here they are read once (``remedy.installed``). For ``Match exec`` in ssh_config
paramiko imports ``invoke``, a fifth of all that it and pyinfra import; here that is loaded when it is used.
"""

from __future__ import annotations

import importlib.metadata
import sys
from types import ModuleType
from typing import Any

from remedy.installed import points


def _run(command: str, **options: Any) -> Any:
    """Run a command by the real ``invoke``."""
    import invoke

    return invoke.run(command, **options)


_stand_in = ModuleType("invoke")
vars(_stand_in)["run"] = _run  # all that paramiko uses of it
_read, _invoke = importlib.metadata.entry_points, sys.modules.get("invoke")
importlib.metadata.entry_points = points  # type: ignore[assignment]
sys.modules["invoke"] = _invoke or _stand_in
try:
    import pyinfra_cli  # noqa: F401  (its import is what does it)

    # isort: split
    import pyinfra.api  # noqa: F401
finally:
    importlib.metadata.entry_points = _read
    if _invoke is None:
        del sys.modules["invoke"]

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
