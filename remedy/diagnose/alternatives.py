"""What else stands behind the same texts: offered beside an answer that is not certain.

One text has several causes, as threads show in which the first guess was wrong. What is offered here has no
line of its own, so it stays behind everything that has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from remedy.diagnose.diagnosis import APPLICATION, CERTAIN, HEALTHY, UNKNOWN, Candidate, Diagnosis

ENOUGH = 3  # causes that are offered
SCORE = 0.2  # of the first alternative; below everything that a line speaks for
STEP = 0.01

REASON = "the same texts have had this cause, too"

# By cause: the others, the likeliest first.
_OTHERS: dict[str, tuple[str, ...]] = {
    "duplicate-hostname": ("rank-mismatch", "hostname-unresolvable"),
    "hostname-unresolvable": ("loopback-hostname", "wrong-interface"),
    "loopback-hostname": ("hostname-unresolvable", "wrong-interface", "firewall-ports"),
    "wrong-interface": ("firewall-ports", "network-unreachable", "loopback-hostname"),
    "network-unreachable": ("wrong-interface", "firewall-ports", "ib-misconfig"),
    "firewall-ports": ("wrong-interface", "network-unreachable", "rank-mismatch"),
    "mtu-mismatch": ("ib-misconfig", "peer-died-timeout"),
    "ipv6-issue": ("wrong-interface", "network-unreachable"),
    "mpi-nic-mismatch": ("wrong-interface", "ib-misconfig"),
    "master-port-in-use": ("stale-process", "rank-mismatch"),
    "ssh-launch-failure": ("hostname-unresolvable", "firewall-ports"),
    "env-not-propagated": ("missing-library", "mpi-version-conflict"),
    "mpi-version-conflict": ("env-not-propagated", "missing-library"),
    "rank-mismatch": ("firewall-ports", "peer-died-timeout"),
    "peer-died-timeout": (APPLICATION, "firewall-ports", "host-oom"),
    "ib-roce-mixed": ("ib-misconfig", "ib-link-fault"),
    "ib-misconfig": ("ib-link-fault", "network-unreachable"),
    "ib-link-fault": ("ib-misconfig", "mtu-mismatch"),
    "gdr-peermem": ("memlock-limit", "ib-misconfig"),
    "efa-plugin-missing": ("missing-library", "ib-misconfig"),
    "memlock-limit": ("gdr-peermem", "ib-misconfig"),
    "nofile-limit": (APPLICATION, "stale-process"),
    "shm-too-small": ("stale-shm", "host-oom"),
    "stale-shm": ("shm-too-small", "stale-process"),
    "host-oom": ("peer-died-timeout", "shm-too-small"),
    "disk-full": ("storage-fault", "shm-too-small"),
    "storage-fault": ("disk-full", APPLICATION),
    "clock-skew": ("hostname-unresolvable",),
    "stale-process": ("master-port-in-use", APPLICATION),
    "duplicate-gpu": ("device-visibility", "rank-mismatch"),
    "device-visibility": ("container-gpu-runtime", "rank-mismatch"),
    "fabricmanager-not-running": ("driver-mismatch", "gpu-hardware-xid"),
    "gpu-hardware-xid": (APPLICATION, "p2p-acs-iommu"),
    "p2p-acs-iommu": ("gpu-hardware-xid", "peer-died-timeout"),
    "nccl-version-mismatch": ("multi-python", "driver-mismatch"),
    "missing-library": ("env-not-propagated", "multi-python"),
    "driver-mismatch": ("container-gpu-runtime", "nccl-version-mismatch"),
    "container-gpu-runtime": ("driver-mismatch", "device-visibility"),
    "multi-python": ("missing-library", "nccl-version-mismatch"),
    "hccl-rank-table": ("rank-mismatch", "hccl-timeout"),
    "hccl-memory": ("stale-process", APPLICATION),
    "hccl-timeout": ("peer-died-timeout", "hccl-rank-table"),
}
# An error that only seems to be the program's own, by what it is about: the first that matches is meant.
SETTLED = 0.75  # from this certainty on it is the program's
_OF_A_PROGRAM: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"(?i)import|module|attribute|symbol|version|plugin|built|\.so\b|not installed"),
        ("multi-python", "env-not-propagated"),
    ),
    (
        re.compile(r"(?i)file|directory|path|checkpoint|dataset|\bread|\bwrit|load|archive|zip"),
        ("storage-fault", "disk-full"),
    ),
    (
        re.compile(
            r"(?i)time[d-]?.?out|connect|socket|nccl|rank|collective|world.?size|actor|worker"
        ),
        ("peer-died-timeout", "rank-mismatch"),
    ),
    (
        re.compile(r"(?i)cuda|cudnn|cublas|gpu|device|hip\b"),
        ("gpu-hardware-xid", "driver-mismatch"),
    ),
)


def with_alternatives(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis with what else it can be; a run that is fine, or a settled answer, stays as it is.

    Args:
        diagnosis: of the logs.
    """
    if diagnosis.label == HEALTHY or diagnosis.certainty >= _settled(diagnosis.label):
        return diagnosis
    known = [c.label for c in diagnosis.candidates]
    first = next(iter(known), "") if diagnosis.label == UNKNOWN else diagnosis.label
    labels = {*known, diagnosis.label} - {UNKNOWN}
    missing = ENOUGH - len(labels) - (diagnosis.label == UNKNOWN)
    possible = _beside_a_program(diagnosis) if first == APPLICATION else _OTHERS.get(first, ())
    others = [label for label in possible if label not in labels][: max(0, missing)]
    if not others:
        return diagnosis
    candidates = (
        Candidate(label=label, score=round(SCORE - STEP * place, 3), reason=REASON)
        for place, label in enumerate(others)
    )
    return diagnosis.model_copy(update={"candidates": (*diagnosis.candidates, *candidates)})


def is_alternative(candidate: Candidate) -> bool:
    """Return whether a candidate is one that no line speaks for."""
    return not candidate.evidence and candidate.score <= SCORE


def _settled(label: str) -> float:
    return SETTLED if label == APPLICATION else CERTAIN


def _beside_a_program(diagnosis: Diagnosis) -> Iterable[str]:
    """Return what else an error that passes for the program's own can be, by what it says."""
    text = diagnosis.lead.text if diagnosis.lead else ""
    return next((labels for pattern, labels in _OF_A_PROGRAM if pattern.search(text)), ())
