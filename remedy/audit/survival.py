"""Whether what was applied is still there after a boot: each host's last run beside what is now."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remedy.audit.story import Story
from remedy.plan import Plan
from remedy.probe import HostState
from remedy.values import Unknown


class Boot(str, enum.Enum):
    """What is known of a host since its last run."""

    SURVIVED = "survived"  # it booted, and what was applied is there
    LOST = "lost"  # it booted, and something that was applied is not
    NOT_BOOTED = "not booted"
    NO_RUN = "no run"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Survival:
    """What is left on a host of what was applied, after a boot.

    Args:
        boot: the answer.
        run: the last run that saw the host, "" for none.
        changes: those that would have to be made again.
    """

    boot: Boot
    run: str = ""
    changes: tuple[str, ...] = ()


def survival(
    runs: Iterable[Story], states: Mapping[str, HostState], plan: Plan, hosts: Sequence[str]
) -> dict[str, Survival]:
    """Return for each host whether it booted since its last run, and what did not survive that.

    Args:
        runs: all runs, in order.
        states: what the hosts are like now; those that could not be read are missing.
        plan: what would have to be changed now.
        hosts: those in question.
    """
    every = list(runs)
    return {host: _of_host(host, every, states.get(host), plan) for host in hosts}


def _of_host(host: str, runs: Sequence[Story], state: HostState | None, plan: Plan) -> Survival:
    last = next((run for run in reversed(runs) if run.boots.get(host)), None)
    if last is None:
        return Survival(Boot.NO_RUN)
    if state is None or isinstance(state.identity, Unknown) or not state.identity.boot_id:
        return Survival(Boot.UNKNOWN, last.run)
    if state.identity.boot_id == last.boots[host]:
        return Survival(Boot.NOT_BOOTED, last.run)
    applied = {
        change.partition("-")[2]  # an id is its number and its remedy
        for run in runs
        if run.mode == "apply"
        for change, status in run.results.get(host, {}).items()
        if status == "done"
    }
    titles = tuple(change.title for change in plan.for_host(host) if change.remedy in applied)
    return Survival(Boot.LOST if titles else Boot.SURVIVED, last.run, titles)
