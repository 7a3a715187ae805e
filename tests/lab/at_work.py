"""Commands that are stopped while hosts are at work, and hosts that take long enough for that."""

from __future__ import annotations

import signal
import subprocess

from tests.lab.conftest import Cluster
from tests.lab.site import Site

# Whatever writes to the disk takes that long, so that there is time to die between two writes.
SLOW = ("dd", "sync")
SLOWLY = '#!/bin/sh\nsleep 0.7\nexec /usr/bin/{} "$@"\n'
# The brackets keep the pattern from matching the command that carries it.
AT_WORK = "[s]h -s"
VERIFYING = "[r]emedy-verify"


def heed_signals() -> None:
    """Take signals as a command at a terminal does; tests below nohup, or in the background, ignore some."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(site: Site, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        site.command(*words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )


def processes(cluster: Cluster, pattern: str) -> str:
    found = (cluster.run(host, f"pgrep -af '{pattern}'").stdout for host in cluster.hosts)
    return "".join(found)
