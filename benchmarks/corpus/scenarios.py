"""The scenarios: what is broken on which host, what is run there, and the cause that the log tells of."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus import (
    frameworks,
    journals,
    lab_faults,
    launchers,
    learners,
    loggers,
    network,
    newcomers,
    one_host,
    others,
    remote,
    schedulers,
    servers,
    spawners,
    start,
)
from benchmarks.corpus.scenario import Scenario


def scenarios() -> Iterator[Scenario]:
    """Every scenario, the quick ones first."""
    yield from one_host.healthy()
    yield from one_host.application()
    yield from one_host.limits()
    yield from start.launch()
    yield from network.names()
    yield from network.network()
    yield from network.peers()
    yield from lab_faults.lab_faults()
    yield from start.mpi()
    yield from frameworks.paddle()
    yield from frameworks.mindspore()
    yield from others.others()
    yield from journals.journals()
    yield from schedulers.schedulers()
    yield from launchers.launchers()
    yield from learners.learners()
    yield from spawners.spawners()
    yield from newcomers.newcomers()
    yield from servers.servers()
    yield from remote.remote()
    yield from loggers.loggers()
