"""What else stands behind the same texts: offered beside an answer that is not certain.

One text has several causes, as threads show in which the first guess was wrong. What is offered here has no
line of its own, so it stays behind everything that has one.
"""

from __future__ import annotations

from collections.abc import Collection

from remedy.diagnose.diagnosis import APPLICATION, CERTAIN, HEALTHY, UNKNOWN, Candidate, Diagnosis
from remedy.diagnose.phrases.topics import PEER, causes_about

ENOUGH = 3  # causes that are offered
SCORE = 0.2  # of the first alternative; below everything that a line speaks for
STEP = 0.01

REASON = "the same texts have had this cause, too"

ABOUT = "the text is about what this cause shows in, too"

# By cause: the others, the likeliest first, as often as threads had the one for the other.
_OTHERS: dict[str, tuple[str, ...]] = {
    "duplicate-hostname": ("rank-mismatch", "device-visibility", "hostname-unresolvable"),
    "hostname-unresolvable": ("loopback-hostname", "wrong-interface", "ssh-launch-failure"),
    "loopback-hostname": ("wrong-interface", "hostname-unresolvable", "firewall-ports"),
    "wrong-interface": ("firewall-ports", "loopback-hostname", "mpi-nic-mismatch", PEER),
    "network-unreachable": ("firewall-ports", "wrong-interface", "ib-misconfig"),
    "firewall-ports": ("wrong-interface", PEER, "rank-mismatch", "network-unreachable"),
    "mtu-mismatch": ("ib-misconfig", "ib-link-fault", PEER),
    "ipv6-issue": ("wrong-interface", "hostname-unresolvable", "network-unreachable"),
    "mpi-nic-mismatch": ("ib-misconfig", "wrong-interface", "efa-plugin-missing"),
    "master-port-in-use": ("stale-process", "rank-mismatch", PEER),
    "ssh-launch-failure": ("hostname-unresolvable", "firewall-ports", "env-not-propagated"),
    "env-not-propagated": ("missing-library", "multi-python", "mpi-version-conflict"),
    "mpi-version-conflict": ("env-not-propagated", "mpi-nic-mismatch", "missing-library"),
    "rank-mismatch": ("firewall-ports", PEER, "master-port-in-use"),
    PEER: (APPLICATION, "firewall-ports", "rank-mismatch", "host-oom"),
    "ib-roce-mixed": ("ib-misconfig", "ib-link-fault", "mpi-nic-mismatch"),
    "ib-misconfig": ("ib-link-fault", "mpi-nic-mismatch", "memlock-limit", "network-unreachable"),
    "ib-link-fault": ("ib-misconfig", PEER, "mtu-mismatch"),
    "gdr-peermem": ("memlock-limit", "ib-misconfig", "p2p-acs-iommu"),
    "efa-plugin-missing": ("mpi-nic-mismatch", "missing-library", "ib-misconfig"),
    "memlock-limit": ("ib-misconfig", "gdr-peermem", "efa-plugin-missing"),
    "nofile-limit": ("shm-too-small", APPLICATION, "stale-process"),
    "shm-too-small": ("stale-shm", "host-oom", "nofile-limit"),
    "stale-shm": ("shm-too-small", "stale-process", "nofile-limit"),
    "host-oom": (PEER, "shm-too-small", APPLICATION),
    "disk-full": ("storage-fault", "shm-too-small", APPLICATION),
    "storage-fault": ("disk-full", APPLICATION, "env-not-propagated"),
    "clock-skew": ("hostname-unresolvable", "env-not-propagated", APPLICATION),
    "stale-process": ("master-port-in-use", APPLICATION, "device-visibility"),
    "duplicate-gpu": (APPLICATION, "device-visibility", "rank-mismatch"),
    "device-visibility": ("container-gpu-runtime", "rank-mismatch", "driver-mismatch"),
    "fabricmanager-not-running": ("driver-mismatch", "gpu-hardware-xid", "container-gpu-runtime"),
    "gpu-hardware-xid": (APPLICATION, "p2p-acs-iommu", PEER),
    "p2p-acs-iommu": (PEER, "gdr-peermem", "gpu-hardware-xid"),
    "nccl-version-mismatch": (APPLICATION, "driver-mismatch", "multi-python"),
    "missing-library": ("env-not-propagated", "multi-python", "mpi-version-conflict"),
    "driver-mismatch": ("nccl-version-mismatch", "container-gpu-runtime", "device-visibility"),
    "container-gpu-runtime": ("driver-mismatch", "device-visibility", "env-not-propagated"),
    "multi-python": ("env-not-propagated", "nccl-version-mismatch", "missing-library"),
    "hccl-rank-table": ("rank-mismatch", "hccl-timeout", "device-visibility"),
    "hccl-memory": ("stale-process", APPLICATION, "hccl-timeout"),
    "hccl-timeout": (PEER, "hccl-rank-table", "firewall-ports"),
    APPLICATION: (PEER, "storage-fault", "nccl-version-mismatch"),
}


def with_alternatives(
    diagnosis: Diagnosis, about: str = "", unfit: Collection[str] = ()
) -> Diagnosis:
    """Return a diagnosis with what else it can be; a run that is fine, or a certain answer, stays as it is.

    Args:
        diagnosis: of the logs.
        about: the lines in which the logs say what failed; that of the answer is known already.
        unfit: causes that the job cannot have where it ran.
    """
    if diagnosis.label == HEALTHY or diagnosis.certainty >= CERTAIN:
        return diagnosis
    known = [c.label for c in diagnosis.candidates]
    first = next(iter(known), "") if diagnosis.label == UNKNOWN else diagnosis.label
    labels = {*known, diagnosis.label} - {UNKNOWN}
    text = f"{diagnosis.lead.text if diagnosis.lead else ''}\n{about}".strip()
    if not text and not known:
        return diagnosis
    known_or_unfit = labels.union(unfit)
    others = _others(first, tuple(causes_about(text)), known_or_unfit)
    others = others[: max(0, ENOUGH - len(labels))]
    candidates = (
        Candidate(label=label, score=round(SCORE - STEP * place, 3), reason=reason)
        for place, (label, reason) in enumerate(others)
    )
    return diagnosis.model_copy(update={"candidates": (*diagnosis.candidates, *candidates)})


def is_alternative(candidate: Candidate) -> bool:
    """Return whether a candidate is one that no line speaks for."""
    return not candidate.evidence and candidate.score <= SCORE


def _others(first: str, topics: tuple[str, ...], known: Collection[str]) -> list[tuple[str, str]]:
    """Return what else it can be, each with the reason.

    Args:
        first: the cause that is likeliest, "" where none is known.
        topics: what tends to stand behind texts like those of the logs.
        known: causes that a line speaks for, or against.
    """
    neighbours = _OTHERS.get(first, ())
    # An error of the program says by its words what else it can be; of a cause its neighbours say it, and
    # first those which the text is about as well.
    if first == APPLICATION:
        ordered = [*topics, *neighbours]
    else:
        ordered = [*(n for n in neighbours if n in topics), *neighbours, *topics]
    return [
        (label, REASON if label in neighbours else ABOUT)
        for label in dict.fromkeys(ordered)
        if label not in known
    ]
