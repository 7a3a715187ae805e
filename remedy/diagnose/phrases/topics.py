"""What a text is about, by the nouns of the trade in it, and what tends to stand behind such texts.

It says nothing of the cause: it orders what is offered beside an answer that is not certain, and fills what is
missing there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from remedy.diagnose.catalogue import compiled
from remedy.diagnose.diagnosis import APPLICATION

PEER = "peer-died-timeout"


class _Topic(NamedTuple):
    pattern: str
    causes: tuple[str, ...]


def _topic(pattern: str, *causes: str) -> _Topic:
    return _Topic(pattern, causes)


# The first topics are the narrowest: their causes are offered first. Causes stand with the likeliest first.
_TOPICS = (
    _topic(
        r"(?i)\bmem_?lock|locked memory|\breg_?mr\b|regist\w+ .{0,30}\bmemory"
        r"|memory .{0,20}regist",
        "memlock-limit",
        "gdr-peermem",
        "ib-misconfig",
    ),
    _topic(
        r"(?i)peer_?mem|gpu ?direct|\bgdr|dma-?buf",
        "gdr-peermem",
        "memlock-limit",
        "p2p-acs-iommu",
    ),
    _topic(
        r"(?i)fabric ?manager|nvswitch|\bimex\b|error 802",
        "fabricmanager-not-running",
        "driver-mismatch",
        "gpu-hardware-xid",
    ),
    _topic(
        r"(?i)\bxid\b|\becc\b|uncorrectable|off the bus|\bNVRM\b|\bras\b.{0,20}error",
        "gpu-hardware-xid",
        "p2p-acs-iommu",
        APPLICATION,
    ),
    _topic(
        r"(?i)peer access|\bp2p\b|\biommu\b|\bacs\b|peer.to.peer|ipc ?(?:mem|handle)",
        "p2p-acs-iommu",
        "device-visibility",
        "gpu-hardware-xid",
    ),
    _topic(
        r"(?i)\bmtu\b|fragment",
        "mtu-mismatch",
        "ib-misconfig",
        "ib-link-fault",
    ),
    _topic(
        r"(?i)\bgid\b|\broce|\bverbs\b|\bibv_|\brdma|\bmlx\d|\bIB\b|infiniband|completion queue|\bhca\b|\bqp\b"
        r"|\blid\b|p_?key",
        "ib-misconfig",
        "ib-link-fault",
        "memlock-limit",
        "network-unreachable",
    ),
    _topic(
        r"(?i)libfabric|\bofi\b|\befa\b|\bcxi\b|net.?plugin|fi_\w+\(|\bprovider",
        "efa-plugin-missing",
        "mpi-nic-mismatch",
        "ib-misconfig",
    ),
    _topic(
        r"(?i)\bbtl\b|\bucx\b|\bucp\b|\bmtl\b|\bpml\b|psm[23x]?\b|(?<!/)\btransport\b(?!/)",
        "mpi-nic-mismatch",
        "ib-misconfig",
        "wrong-interface",
    ),
    _topic(
        r"(?i)rank ?table|\bhccl|\bnpu\b|\bcann\b|\bEI\d{4}",
        "hccl-timeout",
        "hccl-rank-table",
        "hccl-memory",
    ),
    _topic(
        r"(?i)\bpmix?\b|\bpmi\d?\b|mpi (?:version|library|implementation)|\babi\b|singleton",
        "mpi-version-conflict",
        "env-not-propagated",
        "rank-mismatch",
    ),
    _topic(
        r"(?i)\bssh\b|\borted\b|\bprted\b|host key|publickey"
        r"|daemon.{0,30}(?:launch|start|remote)|\brsh\b",
        "ssh-launch-failure",
        "env-not-propagated",
        "hostname-unresolvable",
    ),
    _topic(
        r"(?i)nvidia-container|container runtime|\bOCI\b|--gpus|\bcdi\b",
        "container-gpu-runtime",
        "driver-mismatch",
        "device-visibility",
    ),
    _topic(
        r"(?i)(?:no|invalid|visible|available|count of|number of|find|any) .{0,20}(?:devices?|gpus?)\b"
        r"|ordinal|visible_devices|has no \w*gpu",
        "device-visibility",
        "container-gpu-runtime",
        "driver-mismatch",
    ),
    _topic(
        r"(?i)\bdriver\b|libcuda\b|cuda version|\bnvml\b|kernel module|nvidia-smi|\bptx\b"
        r"|kernel image",
        "driver-mismatch",
        "container-gpu-runtime",
        "nccl-version-mismatch",
    ),
    _topic(
        r"(?i)/dev/shm|shared memory|\bshm\b|shm_open|mmap",
        "shm-too-small",
        "stale-shm",
        "host-oom",
    ),
    _topic(
        r"(?i)\bgloo\b|full ?mesh|\bc10d\b.{0,40}address",
        "wrong-interface",
        "loopback-hostname",
        PEER,
    ),
    _topic(
        r"(?i)host ?names?\b|resolv|\bdns\b|getaddrinfo|getnameinfo|/etc/hosts",
        "hostname-unresolvable",
        "loopback-hostname",
        "wrong-interface",
    ),
    _topic(
        r"(?i)interface|\bifname\b|\bnics?\b|127\.0\.\d|localhost|loopback|local address",
        "wrong-interface",
        "loopback-hostname",
        "firewall-ports",
    ),
    _topic(
        r"(?i)\bbind\b|listen|in use\b|port \d|occupied",
        "master-port-in-use",
        "stale-process",
        "firewall-ports",
    ),
    _topic(
        r"(?i)unreachable|no route",
        "network-unreachable",
        "wrong-interface",
        "firewall-ports",
    ),
    _topic(
        r"(?i)clock|\bmunge|expired|not yet valid|token|credential|certificate",
        "clock-skew",
        "env-not-propagated",
        APPLICATION,
    ),
    _topic(
        r"(?i)world.?size|\bnnodes\b|\bslots?\b"
        r"|expect\w* .{0,30}(?:ranks?|nodes?|process|workers?)"
        r"|number of (?:nodes|ranks|process|tasks|workers)"
        r"|wait\w* for .{0,30}(?:nodes|ranks|workers|peers)",
        "rank-mismatch",
        PEER,
        "firewall-ports",
    ),
    _topic(
        r"(?i)cannot open shared|\.so\b|libr?ary|not found in path|command not found"
        r"|executable",
        "missing-library",
        "env-not-propagated",
        "multi-python",
    ),
    _topic(
        r"(?i)import|\bmodule|attribute|symbol|version|plugin|\bbuilt\b|not installed|compil",
        "multi-python",
        "env-not-propagated",
        "nccl-version-mismatch",
    ),
    _topic(
        r"(?i)no space|quota|disk|inode",
        "disk-full",
        "storage-fault",
        "shm-too-small",
    ),
    _topic(
        r"(?i)\bmount|\bnfs\b|lustre|gpfs|\bceph|weka|file ?system|checkpoint|dataset"
        r"|\bfile\b|director|\bpath\b|\bread(?:ing)?\b|\bwrit|archive|\bzip\b|\bload(?:ing)?\b",
        "storage-fault",
        "disk-full",
        APPLICATION,
    ),
    _topic(
        r"(?i)connect|socket|\btcp\b|refused|unavailable|rendezvous|handshake|endpoint",
        "firewall-ports",
        PEER,
        "wrong-interface",
    ),
    _topic(
        r"(?i)kill|\boom\b|out of memory|memory limit|evict|exit(?:ed)? (?:code|status)"
        r"|signal \d",
        "host-oom",
        PEER,
        APPLICATION,
    ),
    _topic(
        r"(?i)time[d-]?.?out|deadline|heartbeat|\blost\b|closed|abort|\bdied\b|\bdead\b|stuck|hang"
        r"|stall|collective|\brank\b|actor|worker|barrier|nccl|all_?reduce",
        PEER,
        APPLICATION,
        "firewall-ports",
    ),
    _topic(
        r"(?i)cuda|cudnn|cublas|\bgpu|\bhip\b|device",
        "gpu-hardware-xid",
        "driver-mismatch",
        "stale-process",
    ),
)


def causes_about(text: str) -> Iterator[str]:
    """Yield what tends to stand behind a text: the likeliest of each topic first, then the others.

    Args:
        text: lines of a log.
    """
    topics = [topic.causes for topic in _TOPICS if compiled(topic.pattern).search(text)]
    labels: set[str] = set()
    for place in range(max(map(len, topics), default=0)):
        for causes in topics:
            if place < len(causes) and causes[place] not in labels:
                labels.add(causes[place])
                yield causes[place]
