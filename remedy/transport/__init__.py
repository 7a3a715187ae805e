"""The way to hosts: the only package that imports pyinfra's machinery.

A ``Script`` is POSIX sh text that travels on the standard input of one ``sh`` on the host: no temporary
file, no argument list that others can read, no limit on its size. The host itself ends it at its deadline, and
the ``watch`` on this machine each of the ``stages`` before. What goes wrong with one host is that host's
``Output.error``; nothing is raised.

The values are here; ``connections`` and ``reader`` import pyinfra, which takes half a second.
"""

from __future__ import annotations

from remedy.transport.script import HostEvent, Listener, Output, Root, Script

__all__ = ["HostEvent", "Listener", "Output", "Root", "Script"]
