"""Complaints that a job outlived: warnings, and commands of its script that failed, before what ended it.

The first failure leads, since what follows is most often its consequence. That does not hold of a line after
which the program went on, until something of another kind ended it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from remedy.diagnose import lines
from remedy.diagnose.catalogue import CLEAR, Role
from remedy.diagnose.course.levels import as_hint
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.phrases.topics import PEER
from remedy.diagnose.scanner.log_scan import Event

_COMPLAINTS = frozenset((Role.CAUSE, Role.SIGN, Role.CONSEQUENCE))
# A line by which a program says that it goes on. NCCL warns of failures.
_WARNS = re.compile(
    r"(?:^|[\[ |:])W\d{3,4} \d\d:\d\d|\b(?:WARN(?:ING)?|\w{0,24}Warning|warning)\b|going to /tmp instead"
    r"|\b[Rr]etry(?:ing)?\b"
)
_OF_NCCL = re.compile(r"NCCL (?:WARN|ATTN)\b")
# What the commands of a job's script say before the program starts; that one failed ends no script by itself.
_OF_A_COMMAND = re.compile(
    r"(?:^|\]:? |[>|]:? ?|\d: | [FP] )(?:/\S{0,80}/)?"
    r"(?:rm|cp|mv|ln|ls|df|du|cat|tee|tar|stat|find|grep|mkdir|touch|chmod|chown|fuser"
    r"|kill|pkill|git|fatal|rsync|curl|wget|nc|ping|hostname|ip|ethtool|umount|modprobe|lsmod|sysctl"
    r"|systemctl|sudo|docker|which|ulimit|channel_setup_\w{1,40})\b[^:\n]{0,40}: "
    r"|\bssh: [^\n]{0,80}\b(?:github|gitlab|bitbucket)\."
    r"|(?:^|\]:? |[>|]:? ?|\d: | [FP] )bind \[[\d.:]{3,40}\]:\d{1,5}: |: line \d{1,5}: ulimit: "
)
_OF_THE_WEB = re.compile(
    r"urllib3|HTTPS?Connection|\bgithub\.com\b|huggingface\.co\b|pypi\.org\b|wandb"
)
# What a warning can lead to is of the same kind: a name that has no address, a connection that fails.
_KINDS = (
    frozenset(
        (
            *("hostname-unresolvable", "loopback-hostname", "wrong-interface", "ipv6-issue"),
            *("network-unreachable", "firewall-ports", "rank-mismatch", "peer-died-timeout"),
            *("mpi-nic-mismatch", "duplicate-hostname"),
        )
    ),
    frozenset(
        (
            *("master-port-in-use", "stale-process", "firewall-ports", "rank-mismatch"),
            "peer-died-timeout",
        )
    ),
    frozenset(
        (
            *(
                "fabricmanager-not-running",
                "driver-mismatch",
                "gpu-hardware-xid",
                "device-visibility",
            ),
            *("container-gpu-runtime", "p2p-acs-iommu", "duplicate-gpu", "nccl-version-mismatch"),
            "stale-process",
        )
    ),
    frozenset(
        (
            *("ib-misconfig", "ib-link-fault", "ib-roce-mixed", "gdr-peermem", "memlock-limit"),
            *("efa-plugin-missing", "mpi-nic-mismatch"),
        )
    ),
    frozenset(
        ("shm-too-small", "stale-shm", "host-oom", "disk-full", "storage-fault", "nofile-limit")
    ),
    frozenset(
        (
            *("missing-library", "multi-python", "env-not-propagated", "mpi-version-conflict"),
            *("nccl-version-mismatch", "driver-mismatch", "ssh-launch-failure"),
        )
    ),
)


def only_warns(event: Event) -> bool:
    """Return whether a line warns, or reports that a command of a job's script failed: the job went on."""
    text = lines.split(event.text).text
    return _is_of_a_command(text) or bool(_WARNS.search(text) and not _OF_NCCL.search(text))


def without_outlived(events: Sequence[Event]) -> list[Event]:
    """Return the events with those as hints that a job outlived until something of another kind ended it.

    Args:
        events: of all logs, those of one in the order of its lines.
    """
    ends = [event for event in events if _can_end_a_job(event)]
    return [as_hint(event) if _was_outlived(event, ends) else event for event in events]


def _can_end_a_job(event: Event) -> bool:
    """Return whether an event names what ended a job, and is not what follows from something else."""
    if event.role not in (Role.CAUSE, Role.APPLICATION) or event.weight < CLEAR:
        return False
    return not only_warns(event) and PEER not in _clear(event)


def _was_outlived(event: Event, ends: Iterable[Event]) -> bool:
    if event.role not in _COMPLAINTS or not only_warns(event):
        return False
    text = lines.split(event.text).text
    of_others = _is_of_a_command(text) or bool(_OF_THE_WEB.search(text))
    is_of_the_store = "[c10d]" in text  # ranks met there before NCCL could fail
    return any(
        end.source == event.source
        and end.line > event.line
        # What the program says of itself can be what the warning led to.
        and (
            _are_apart(event, end)
            if of_others or (is_of_the_store and "NCCL" in end.text)
            else end.role is Role.CAUSE and _are_of_other_kinds(event, end)
        )
        for end in ends
    )


def _is_of_a_command(text: str) -> bool:
    return bool(_OF_A_COMMAND.search(text))


def _are_apart(event: Event, end: Event) -> bool:
    """Return whether what ended a job speaks for no cause that a line before it speaks for clearly."""
    return _clear(event).isdisjoint(cause.label for cause in end.causes)


def _are_of_other_kinds(event: Event, end: Event) -> bool:
    """Return whether what ended a job is not what the first complaint could have led to."""
    if not _are_apart(event, end):
        return False
    labels, last = _clear(event), _clear(end)
    return not any(kind & labels and kind & last for kind in _KINDS)


def _clear(event: Event) -> frozenset[str]:
    most = event.weight
    return frozenset(
        cause.label
        for cause in event.causes
        if cause.weight >= most - 0.1 and cause.label != APPLICATION
    )
