"""What every run has: an id, somebody who does it, and the question it asks of each host."""

from __future__ import annotations

import getpass
import re
import secrets
import socket
import time
from datetime import datetime, timezone

from remedy.inventory import Inventory
from remedy.plan import Origin, files_read
from remedy.probe import ProbeRequest
from remedy.spec import Spec

# A probe that finds everything broken (dead DNS, hanging tools) ends within this; a healthy one in < 1 s.
PROBE_SECONDS = 45


RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


def run_named(text: str) -> str:
    """Return the id of the first run that a host's words name, for a command; "" where they name none."""
    match = RUN_ID.search(text)
    return "" if match is None else match[0]


def new_run_id() -> str:
    """Return an id for a run: its time in UTC, for people, and four random bytes, so that no two are equal."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def origin() -> Origin:
    """Return who is at work, and when: to the microsecond, since two plans may be made in one second."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return Origin(created=now, author=f"{user}@{socket.gethostname()}")


def probe_request(
    inventory: Inventory, spec: Spec, heads_of: str = "", blocks: tuple[bytes, ...] = ()
) -> ProbeRequest:
    """Return what to read on each host: every name of the inventory, and the files that remedies need.

    Names are resolved as the user who runs the jobs. Interpreters that the inventory names (``python``, where
    torch is) are looked at too.

    Args:
        inventory: all hosts.
        spec: the settings.
        heads_of: by which the host knows the lines of this journal among those that it keeps, "" for none.
        blocks: of the hosts file, of which a host that has one need not send it.
    """
    named = (node.data.get("python") for node in inventory.nodes)
    pythons = {str(python) for python in named if python is not None}
    return ProbeRequest(
        names=inventory.names,
        user=spec.cluster.user or "",
        files=files_read(),
        interpreters=tuple(sorted(pythons)),
        deadline=PROBE_SECONDS,
        heads_of=heads_of,
        blocks=blocks,
        asked_at=time.time_ns(),
    )
