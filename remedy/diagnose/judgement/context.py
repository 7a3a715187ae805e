"""What a failure can be by where it happened: on how many hosts, over which network, on one rank or on all.

The words of a failure have several causes. Those that fit what else the logs show gain, the others lose; a text
that is as good as proof stays what it is, and nothing becomes certain by this.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.course.elsewhere import used_elsewhere
from remedy.diagnose.diagnosis import APPLICATION, CERTAIN
from remedy.diagnose.judgement.places import BETWEEN_HOSTS
from remedy.diagnose.judgement.ranking import STEP
from remedy.diagnose.lines import Process
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.job_setting import INFINIBAND, ROCE, SOCKET, JobSetting, together
from remedy.diagnose.scanner.log_scan import Event, LogScan

FITS, FITS_NOT, RULED_OUT = 1.08, 0.85, 0.6
# How much it weighs that one host differs, or one Python, and other causes beside it.
MIXED, BESIDE = 0.62, 0.5
# What is imported from the packages of another Python, or sent by a process of one, is refused with these.
_NOT_ITS_OWN = re.compile(
    r"(?:[\w.]+\.)?(?:ImportError|ModuleNotFoundError|\w*[Pp]icklingError|SyntaxError|SystemError"
    r"|ValueError: (?:unsupported pickle protocol|bad marshal)|(?:Attribute|Type)Error: .*pickle)"
)
_LACKS = re.compile(
    r"FileNotFoundError: (?:\[Errno 2\] No such file or directory: '/|Directory /\S{1,200} not found)"
    r"|[\w.]{0,80}\bNotFoundError: (?:Could not find directory /|/\S{1,200}; No such file or directory)"
)
LEAST_RANKS = 3  # that are seen, before one of them stands against the others

# A job on one host sends nothing between hosts; its interface can still be wrong.
_OF_MANY = {
    **dict.fromkeys(BETWEEN_HOSTS - {"wrong-interface"}, RULED_OUT),
    "ib-roce-mixed": RULED_OUT,
    "duplicate-hostname": RULED_OUT,
    "wrong-interface": FITS_NOT,
    "ib-misconfig": FITS_NOT,
}
_OF_RDMA = frozenset(
    ("ib-link-fault", "ib-misconfig", "ib-roce-mixed", "gdr-peermem", "memlock-limit")
)
_OF_CONTAINERS = frozenset(("shm-too-small", "container-gpu-runtime", "memlock-limit"))
# What is wrong with one host shows on its ranks alone.
_OF_A_HOST = frozenset(
    (
        *("container-gpu-runtime", "disk-full", "driver-mismatch", "env-not-propagated"),
        *("gpu-hardware-xid", "host-oom", "missing-library", "multi-python", "stale-process"),
        *("storage-fault", "wrong-interface", "ib-link-fault", "gdr-peermem"),
    )
)
# What all have in common shows on all of them at once: the meeting place, the settings, the names.
_COMMON = frozenset(
    ("master-port-in-use", "hostname-unresolvable", "rank-mismatch", "ipv6-issue", APPLICATION)
)


def in_context(events: Iterable[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Return the events with the causes weighed by what the logs show of the job.

    Args:
        events: of all logs.
        scans: the logs.
    """
    events = list(events)
    setting = together(scan.setting for scan in scans)
    ranks = _ranks(scans, events)
    showing: dict[str, set[tuple[str, Process]]] = defaultdict(set)
    for event in events:
        showing[_kind(event)].add((event.source, event.process))
    of_setting = factors_of(setting)
    suffering = {(e.source, e.process) for e in events if e.role is Role.CONSEQUENCE}
    is_elsewhere = used_elsewhere(events, scans)
    events = [_of_one_host(event, suffering, is_elsewhere) for event in events]
    if len(setting.pythons) > 1:
        events = [_of_two_pythons(event, setting.pythons) for event in events]
    return [
        _in(event, {**_by_spread(event, len(showing[_kind(event)]), len(ranks)), **of_setting})
        for event in events
    ]


def factors_of(setting: JobSetting) -> Mapping[str, float]:
    """Return by which factor the weight of each cause changes where a job runs so; 1 where it is not there.

    Args:
        setting: of the job.
    """
    factors: dict[str, float] = {}
    if setting.is_contained:
        factors |= dict.fromkeys(_OF_CONTAINERS, FITS)
    if setting.networks == {SOCKET}:
        factors |= dict.fromkeys(_OF_RDMA, FITS_NOT)
    if ROCE in setting.networks and INFINIBAND not in setting.networks:
        # Without a subnet manager each host chooses its own GID.
        factors["ib-misconfig"] = FITS
    if setting.is_of_one_host:
        factors |= _OF_MANY
    return factors


def unfit_in(setting: JobSetting) -> frozenset[str]:
    """Return the causes that a job cannot have where it runs.

    Args:
        setting: of the job.
    """
    return frozenset(label for label, factor in factors_of(setting).items() if factor <= RULED_OUT)


def weighed(cause: CauseWeight, factors: Mapping[str, float]) -> CauseWeight:
    """Return a cause with the weight that it has where a job runs so.

    Args:
        cause: of a text.
        factors: by label.
    """
    factor = factors.get(cause.label, 1.0)
    if factor == 1.0 or cause.weight >= CERTAIN:
        return cause
    weight = min(cause.weight * factor, CERTAIN - STEP)
    return cause.model_copy(update={"weight": round(weight, 3)})


def _of_two_pythons(event: Event, pythons: Iterable[str]) -> Event:
    """Return an exception by which one Python refuses what is another's, with that for a cause."""
    if event.symptom != EXCEPTION or not _NOT_ITS_OWN.match(event.text):
        return event
    because = f"packages of Python {' and '.join(sorted(pythons))} run in one job"
    others = tuple(
        cause.model_copy(update={"weight": min(cause.weight, BESIDE)}) for cause in event.causes
    )
    mixed = CauseWeight(label="multi-python", weight=MIXED, because=because)
    return replace(event, causes=(mixed, *others))


def _of_one_host(
    event: Event,
    suffering: Collection[tuple[str, Process]],
    is_elsewhere: Callable[[Event], bool],
) -> Event:
    """Return the exception of a rank that lacks a file which another has, or without which it came further.

    The first rank may be the only one that opens the file.
    """
    if event.symptom != EXCEPTION or not _LACKS.match(event.text):
        return event
    others = {process for source, process in suffering if source == event.source}
    is_alone = event.process and others - {event.process, None}
    if not is_alone and not is_elsewhere(event):
        return event
    because = "another rank did not lack the file: a file system that is not mounted on this host"
    missing = CauseWeight(label="storage-fault", weight=MIXED, because=because)
    rest = tuple(cause for cause in event.causes if cause.label != missing.label)
    return replace(event, causes=(missing, *rest))


def _kind(event: Event) -> str:
    """Return what failed alike on several ranks: an entry, or the kind of an exception."""
    return event.text.partition(":")[0] if event.symptom == EXCEPTION else event.symptom


def _by_spread(event: Event, shown: int, known: int) -> Mapping[str, float]:
    """Return the factors by how many of the ranks show a failure."""
    # Where all causes are of one sort, there is nothing to choose between.
    is_open = not {cause.label for cause in event.causes}.isdisjoint(_OF_A_HOST)
    if known < LEAST_RANKS or not is_open:
        return {}
    if shown == 1:
        return {**dict.fromkeys(_OF_A_HOST, FITS), **dict.fromkeys(_COMMON, 1 / FITS)}
    if shown >= known:
        return {**dict.fromkeys(_OF_A_HOST, 1 / FITS), **dict.fromkeys(_COMMON, FITS)}
    return {}


def _ranks(scans: Sequence[LogScan], events: Iterable[Event]) -> set[tuple[str, Process]]:
    """Return the processes that the logs show: those with a rank, and each log that names none."""
    steps = {(scan.name, step.process) for scan in scans for step in scan.steps}
    ranks = {*steps, *((event.source, event.process) for event in events)}
    shown = {source for source, _ in ranks}
    named = {source for source, rank in ranks if rank is not None}
    return {
        *((source, rank) for source, rank in ranks if rank is not None or source not in named),
        *((scan.name, None) for scan in scans if scan.name not in shown),
    }


def _in(event: Event, factors: Mapping[str, float]) -> Event:
    if not factors or event.role not in (Role.CAUSE, Role.SIGN, Role.CONSEQUENCE, Role.APPLICATION):
        return event
    return replace(event, causes=tuple(weighed(cause, factors) for cause in event.causes))
