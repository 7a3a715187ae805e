"""How the stub's ranks meet: at the store of the launcher on the first host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

from .store import TCPStore


def rendezvous(
    url: str,  # noqa: ARG001  (the environment says it)
    rank: int,
    world_size: int,
    timeout: timedelta,
) -> Iterator[tuple[TCPStore, int, int]]:
    """Connect to the store."""
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    yield TCPStore(*place, timeout=timeout), rank, world_size
