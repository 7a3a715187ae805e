"""Runs by which somebody tried what helps: that one went well with something switched off proves no health.

It shows what the job does not get on with, though.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.endings.ends import ENDED_WELL
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.rows import numbered_rows

TRIAL = "trial"
_FAILURES = frozenset((Role.CAUSE, Role.CONSEQUENCE))
_OFF = re.compile(
    r"\b(?P<setting>NCCL_(?:P2P_DISABLE=1|P2P_LEVEL=(?:LOC|0)|IB_DISABLE=1|SHM_DISABLE=1|NET_GDR_LEVEL=(?:LOC|0)))(?=\s)"
)
_HELPED = {
    "P2P": CauseWeight(
        label="p2p-acs-iommu",
        weight=0.7,
        because="it went well where GPUs do not reach each other's memory",
    ),
    "IB": CauseWeight(
        label="ib-misconfig", weight=0.6, because="it went well over sockets instead of RDMA"
    ),
    "SHM": CauseWeight(
        label="shm-too-small", weight=0.6, because="it went well without shared memory"
    ),
    "NET": CauseWeight(
        label="gdr-peermem", weight=0.6, because="it went well without GPUDirect RDMA"
    ),
}


def without_trials(scan: LogScan) -> LogScan:
    """Return a log without what a command printed that went well with something switched off, after a failure.

    Its lines are left empty, so that the others keep their numbers.

    Args:
        scan: the log; a session of a terminal.
    """
    first, rows = numbered_rows(scan)
    for at, number in enumerate(scan.commands):
        if not first <= number <= scan.lines or not _failed_above(scan, number):
            continue
        setting = _OFF.search(rows[number - first])
        trial = range(number, next(iter(scan.commands[at + 1 :]), scan.lines + 1))
        if setting and _went_well(scan, rows[number - first + 1 : trial.stop - first], trial):
            return _without(scan, trial, setting["setting"])
    return scan


def _failed_above(scan: LogScan, line: int) -> bool:
    return any(event.role in _FAILURES and event.line < line for event in scan.events)


def _went_well(scan: LogScan, printed: Sequence[str], trial: range) -> bool:
    fails = any(event.role in _FAILURES and event.line in trial for event in scan.events)
    return not fails and any(map(ENDED_WELL.search, printed))


def _without(scan: LogScan, trial: range, setting: str) -> LogScan:
    first, rows = numbered_rows(scan)
    helped = Event(
        symptom=TRIAL,
        role=Role.SIGN,
        source=scan.name,
        line=trial.start,
        text=rows[trial.start - first],
        causes=(_HELPED[setting.split("_")[1]],),
        meaning=f"with {setting} it went well",
    )
    events = [*(event for event in scan.events if event.line not in trial), helped]
    left = ("" if number in trial else row for number, row in enumerate(rows, first))
    note = f"lines {trial.start} to {trial.stop - 1} are a trial with {setting}"
    return replace(
        scan,
        tail="\n".join(left) + "\n",
        events=sorted(events, key=lambda event: event.line),
        steps=tuple(step for step in scan.steps if step.line not in trial),
        unread=(*scan.unread, note),
    )
