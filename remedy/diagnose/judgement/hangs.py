"""Logs that stop without a word: how far the job came, and what it can hang in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from remedy.diagnose.diagnosis import (
    APPLICATION,
    HEALTHY,
    UNKNOWN,
    Candidate,
    Diagnosis,
    sure,
)
from remedy.diagnose.endings.ends import has_returned, says_farewell, shows_an_end, strange_end
from remedy.diagnose.endings.progress import was_warned
from remedy.diagnose.endings.suspect import is_suspect
from remedy.diagnose.judgement.context import unfit_in
from remedy.diagnose.judgement.ranking import quote
from remedy.diagnose.lines import Process
from remedy.diagnose.scanner.job_setting import together
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.steps import Step, have_stopped, made_by
from remedy.text import clipped

PEER = "peer-died-timeout"
STOPPED = 0.56
GOES_ON = 0.6  # how sure it is that a run is healthy which shows no end
AT_WORK = 0.5  # and of which nothing is seen but steps
MANY = 10  # steps: a job that hangs mostly does so before, or in, its first few
HINT = "py-spy dump of each rank, NCCL_DEBUG=INFO and a dump of torch's flight recorder show where it waits"

_PEER = (PEER, 0.45, "another rank ended, or waits somewhere else")
# Where nothing follows a step.
_AFTER_STEPS = (
    (PEER, 0.4, "if it hangs: a rank ended, or waits somewhere else"),
    (HEALTHY, 0.38, "if it goes on: nothing failed until this line"),
    (APPLICATION, 0.36, "or the program waits for something of its own"),
)
# What a start prints that goes no further: the furthest first.
_STAGES: tuple[tuple[re.Pattern[str], str, tuple[tuple[str, float, str], ...]], ...] = (
    (
        re.compile(
            r"Init COMPLETE|Connected all (?:rings|trees)|Launch mode"
            r"|^# +(?:size|bytes) .{0,80}\btime +algbw +busbw"
        ),
        "after NCCL was set up",
        (
            (
                "p2p-acs-iommu",
                0.5,
                "GPUs that cannot reach each other over PCIe hang without a message",
            ),
            _PEER,
            ("mtu-mismatch", 0.35, "or small messages pass between hosts and large ones do not"),
        ),
    ),
    (
        re.compile(r"NCCL INFO Channel \d+(?:/\d+)? ?: .* via (?:P2P|SHM|direct)"),
        "while NCCL connected the GPUs of a host",
        (("p2p-acs-iommu", 0.52, "GPUs that cannot reach each other over PCIe hang here"), _PEER),
    ),
    (
        re.compile(
            r"NCCL INFO Channel \d+(?:/\d+)? ?: .* via NET/(?:IB|OFI|CXI|UCX|(?:AWS )?Libfabric)"
        ),
        "while NCCL connected the hosts over RDMA",
        (
            ("ib-misconfig", 0.48, "ports of different fabrics, or a GID index that does not fit"),
            ("ib-link-fault", 0.42, "or a link that is down"),
            _PEER,
        ),
    ),
    (
        re.compile(r"NCCL INFO Bootstrap timings total "),
        "after NCCL's ranks had found each other, while they exchanged what they have",
        (
            (
                "mtu-mismatch",
                0.48,
                "connections were made and short messages passed; long ones may be lost on the way",
            ),
            _PEER,
            ("firewall-ports", 0.42, "or a port that was not needed before is closed"),
            ("p2p-acs-iommu", 0.4, "or GPUs of one host that cannot reach each other over PCIe"),
            ("wrong-interface", 0.38, "or an interface that does not reach the peers"),
        ),
    ),
    (
        re.compile(
            r"NCCL INFO (?:Channel \d+(?:/\d+)? ?: .* via NET/Socket|.* Init START|Bootstrap ?: Using|comm 0x)"
            r"|Run Pod: \w+, replicas \d+, status ready"
            r"|init nccl context nranks: [2-9]|[Ii]nitializ(?:ing|e) (?:the )?(?:NCCL|nccl|HCCL|hccl)\b"
        ),
        "while NCCL connected the hosts",
        (
            (
                "firewall-ports",
                0.5,
                "the kernel chooses NCCL's ports, and a firewall that drops says nothing",
            ),
            ("wrong-interface", 0.46, "or an interface that does not reach the peers"),
            _PEER,
            ("p2p-acs-iommu", 0.34, "or GPUs of one host that cannot reach each other over PCIe"),
            ("mtu-mismatch", 0.33, "or short messages pass between the hosts and long ones do not"),
        ),
    ),
    (
        re.compile(
            r"init_process_group|[Ii]nitializ(?:ing|e) (?:torch )?distributed|[Ii]nit torch distributed"
            r"|world_size[=: ]+[2-9]|distributed_init_method|Rendezvous'?ing|MEMBER: \d+/\d+"
            r"|(?<!setting )nnodes|server socket has started to listen"
            r"|[Ww]aiting for (?:\w+ ){0,3}(?:nodes?|workers?|ranks?|peers?)\b"
        ),
        "before the ranks met",
        (
            ("firewall-ports", 0.5, "a firewall that drops says nothing"),
            ("rank-mismatch", 0.48, "or not all ranks were started"),
            _PEER,
        ),
    ),
)


def of_a_start(scans: Sequence[LogScan]) -> Diagnosis | None:
    """Return what it can be where logs end in the middle of a start; None where they do not.

    Args:
        scans: logs without a failure, without an end, and without a step.
    """
    unfit = unfit_in(together(scan.setting for scan in scans))
    for pattern, where, causes in _STAGES:
        if any(pattern.search(line) for scan in scans for line in scan.tail.splitlines()[-400:]):
            candidates = tuple(
                Candidate(label=label, score=score, reason=reason)
                for label, score, reason in causes
                if label not in unfit
            )
            note = f"the log stops {where}: a hang, until more of it shows something else; {HINT}"
            return Diagnosis(label=UNKNOWN, candidates=candidates, notes=(note,), **sure(0.0))
    return None


def ended_from_outside(scans: Sequence[LogScan], ends: Sequence[Event]) -> Diagnosis | None:
    """Return a hang where a job was ended long after its last step; None where it was working until then.

    Args:
        scans: the logs.
        ends: the lines by which it was ended (a time limit, a person), and no other failure.
    """
    moving = [scan for scan in scans if scan.steps]
    until = _latest(scans)
    if any(not have_stopped(scan.steps, until) for scan in moving):
        return None
    if not moving and not of_a_start(scans):
        return None
    reason = "no rank made a step for long before the job was ended: one of them stalled or died"
    start = of_a_start(scans) if not moving else None
    first = Candidate(label=PEER, score=STOPPED, reason=reason, evidence=(quote(ends[0]),))
    others = tuple(c for c in start.candidates if c.label != PEER) if start else ()
    return Diagnosis(
        label=PEER,
        **sure(STOPPED),
        lead=quote(ends[0]),
        candidates=(first, *others),
        notes=(f"progress had stopped before the job was ended: a hang; {HINT}",),
    )


def of_an_open_end(scans: Sequence[LogScan]) -> Diagnosis | None:
    """Return the answer where logs end with a step: a run that goes on, or one that hangs since.

    Steps after a warning answer what the warning meant, and many of each rank that it was at work; a few answer
    nothing.

    Args:
        scans: logs with steps and without a failure.

    Returns:
        None where a log shows that its program ended, or that it serves, and no other ends strangely.
    """
    moving = [scan for scan in scans if scan.steps]
    open_ = [scan for scan in moving if not shows_an_end([scan])]
    strange = next(filter(None, map(strange_end, open_)), "")
    is_doubted = strange and (is_suspect(strange) or not all(map(has_returned, open_)))
    has_ended = says_farewell(scans) or (shows_an_end(scans) and not is_doubted)
    if not moving or has_ended:
        return None
    note = f"no line shows that the program ended: a job that hangs after its last step looks the same; {HINT}"
    if strange:
        note = f"{note}; after its last step: {clipped(strange, 160)}"
    candidates = tuple(
        Candidate(label=label, score=score, reason=reason) for label, score, reason in _AFTER_STEPS
    )
    is_warned = not strange and any(map(was_warned, scans))
    if (is_warned or _are_at_work(moving)) and not is_suspect(strange):
        others = tuple(candidate for candidate in candidates if candidate.label != HEALTHY)
        certainty = GOES_ON if is_warned else AT_WORK
        return Diagnosis(label=HEALTHY, candidates=others, notes=(note,), **sure(certainty))
    return Diagnosis(label=UNKNOWN, candidates=candidates, notes=(note,), **sure(0.0))


def _are_at_work(moving: Sequence[LogScan]) -> bool:
    """Return whether each rank made many steps, and none stopped long before the others."""
    latest = _latest(moving)
    of_ranks = [steps for scan in moving for steps in _by_process(scan)]
    numbers = [made_by(steps) for steps in of_ranks]
    if min(numbers) < max(MANY, max(numbers) / 2):
        return False
    return not any(have_stopped(steps, latest) for steps in of_ranks)


def _latest(scans: Sequence[LogScan]) -> float | None:
    """Return when the last line of all logs was printed, None where that is not known."""
    return max((scan.time for scan in scans if scan.time is not None), default=None)


def _by_process(scan: LogScan) -> Iterable[Sequence[Step]]:
    """Return the steps of a log by the process that made them."""
    steps: dict[Process, list[Step]] = {}
    for step in scan.steps:
        steps.setdefault(step.process, []).append(step)
    return steps.values()
