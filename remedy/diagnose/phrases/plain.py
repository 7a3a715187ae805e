"""What programs of any make say in plain English: the thing that failed stands beside the failure.

Such words decide as little as those of the system: what they say is possible at most.
"""

from __future__ import annotations

from typing import NamedTuple

from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import APPLICATION


class Words(NamedTuple):
    """Words, and what stands behind them.

    Args:
        pattern: the words.
        causes: the likeliest first.
    """

    pattern: str
    causes: tuple[CauseWeight, ...]


def words(pattern: str, *causes: tuple[str, float], because: str) -> Words:
    """Return words with what stands behind them.

    Args:
        pattern: the words.
        causes: each with its weight, the likeliest first.
        because: why it can be those causes.
    """
    weights = (CauseWeight(label=label, weight=weight, because=because) for label, weight in causes)
    return Words(pattern, tuple(weights))


# An address of the web: the name of a host of the job has no dots, or ends as only those of a cluster do.
PUBLIC = r"https?://(?:[\w-]+\.)+(?!local\b|internal\b|lan\b|svc\b|cluster\b)[a-z]{2,10}(?![\w.-])"
_RDMA = r"(?:\bibv_|\b[Vv]erbs\b|\bmlx\d|\bRDMA\b|\brdma_|\bQP\b|\bGID\b|\bsgid|\bRoCE)"
# What an address is asked of that is no host: this one, or an interface, also as part of a name (gpu02-ib0).
_INTERFACE = (
    r"(?:this|the|any|lo)\b|\w*[Ii]nterface|(?:[\w.-]{1,60}-)?"
    r"(?:(?:eth|en[opsx]|ib|bond|br|hsn|wl|veth|vlan|roce|rdma|mlx)\w*\d|(?:eth|ib|bond|br|hsn|wl|net)\b)"
)
_FAILS = r"(?:[Ff]ail\w*|[Uu]nable|[Cc]annot|[Cc]an't|[Cc]ould ?n[o']t|[Nn]ot able)"

# Read before the words of the system: they name the thing.
NARROW = (
    words(
        r"(?i)(?<!fails, )check (?:for |the |your )?firewall|by .{0,20}firewall"
        r"|firewall .{0,20}(?:block|reject|drop)",
        ("firewall-ports", 0.6),
        ("wrong-interface", 0.45),
        ("peer-died-timeout", 0.4),
        because="the program itself names a firewall",
    ),
    words(
        _RDMA
        + r".{0,200}(?:[Tt]imed out|ETIMEDOUT|[Uu]nreachable|Invalid argument|\[?\b(?:110|22)\]?$)",
        ("ib-misconfig", 0.58),
        ("ib-link-fault", 0.5),
        ("network-unreachable", 0.4),
        because="an adapter's way to its peer was not set up: GID, port or network",
    ),
    words(
        _FAILS + r" to (?:re)?register .{0,40}[Mm]emory|" + _FAILS + r" to create .{0,20}\bcq\b"
        r"|\bcreate .{0,20}(?:\bcq\b|completion queue)",
        ("memlock-limit", 0.57),
        ("gdr-peermem", 0.48),
        ("ib-misconfig", 0.45),
        because="an adapter was not given the memory that it asked for",
    ),
    words(
        r"/dev/(?:infiniband|hfi1|uverbs|rdma)\S{0,40}.{0,60}(?:[Ff]ail|[Nn]o such|[Nn]ot found|[Mm]issing)",
        ("ib-misconfig", 0.57),
        ("mpi-nic-mismatch", 0.5),
        because="the adapter's device is not there, or not for this process",
    ),
    words(
        r"/dev/(?:nvidia|dri/|kfd|davinci)\S{0,40}.{0,40}(?:[Nn]o such|[Nn]ot found|[Mm]issing|[Dd]enied)",
        ("container-gpu-runtime", 0.57),
        ("driver-mismatch", 0.5),
        ("device-visibility", 0.45),
        because="the device of a card is not there, or not for this process",
    ),
    words(
        r"(?i)\bcuda\b.{0,20}\berror:? (?:code |number )?\(?(?:35|36|803|804)\b"
        r"|driver (?:version )?is (?:too old|insufficient|older)|(?:newer|too old) .{0,20}\bdriver\b",
        ("driver-mismatch", 0.6),
        ("container-gpu-runtime", 0.4),
        because="the driver is older than what the program was built for",
    ),
    words(
        r"(?i)system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady",
        ("fabricmanager-not-running", 0.6),
        ("driver-mismatch", 0.42),
        ("gpu-hardware-xid", 0.38),
        because="CUDA waits for the fabric manager (error 802)",
    ),
    words(
        r"(?i)uncorrectable ecc|ECC_UNCORRECTABLE|fallen off the bus|\bgpu is lost\b|hardware stack error"
        r"|uncorrectable nvlink",
        ("gpu-hardware-xid", 0.62),
        because="CUDA reports that the card or its links failed",
    ),
    words(
        r"(?i)invalid device ordinal|no (?:cuda|rocm)-capable device|CUDA_ERROR_(?:NO|INVALID)_DEVICE"
        r"|no cuda gpus are available",
        ("device-visibility", 0.6),
        ("container-gpu-runtime", 0.46),
        ("driver-mismatch", 0.4),
        because="CUDA does not see the card that was asked for",
    ),
    words(
        r"(?i)peer access (?:is |has )?(?:not|n't|unsupported)|peer mapping resources|PEER_ACCESS_UNSUPPORTED",
        ("p2p-acs-iommu", 0.58),
        ("device-visibility", 0.42),
        because="CUDA cannot map the memory of one card into another",
    ),
    words(
        r"(?i)exceed\w* .{0,20}memory limits?|memory limit (?:was )?(?:exceeded|reached|hit)",
        ("host-oom", 0.62),
        because="a limit on memory ended it",
    ),
    words(
        # Processes are bound to cores, and memory to nodes of it, by the same word.
        r"(?i)^(?!.*\b(?:memory|cores?|cpus?|numa|threads?|processes|processors?|locations?|affinity"
        r"|bind\w* (?:a |the |new )*process)\b)"
        r".*(?:\bbind(?:ing)?\b.{0,30}\bfail|fail\w* to (?:bind|listen)"
        r"|(?:cannot|could not|unable to) (?:bind|listen))",
        ("master-port-in-use", 0.57),
        ("wrong-interface", 0.48),
        ("hostname-unresolvable", 0.4),
        because="a port is taken, or the address to listen on is not this host's",
    ),
    words(
        r"(?i)(?:\bnot reach|unreach|fail|cannot|unable|denied|refused).{0,60}"
        r"\b(?:via|by|over|through|with) ssh\b"
        r"|\bpassword-?less ssh\b",
        ("ssh-launch-failure", 0.6),
        ("hostname-unresolvable", 0.42),
        ("firewall-ports", 0.36),
        because="the launcher did not get into a host by ssh",
    ),
    words(
        rf"{_FAILS} (?:to )?(?:load|open|find) .{{0,30}}\b(?:shared )?librar(?:y|ies)\b",
        ("missing-library", 0.57),
        ("env-not-propagated", 0.46),
        ("multi-python", 0.36),
        because="the loader does not find a library",
    ),
    words(
        rf"{_FAILS} (?:to )?start .{{0,24}}\bserver\b",
        ("master-port-in-use", 0.56),
        ("wrong-interface", 0.45),
        (APPLICATION, 0.44),
        because="a server could not listen: its port is taken, or its address is not this host's",
    ),
    words(
        rf"{_FAILS} (?:to )?(?:parse|look ?up|understand|interpret) (?:the |an? |this )?(?:\w+ )?"
        r"(?:addr(?:ess)?|host ?name|host|end ?point)\b",
        ("hostname-unresolvable", 0.57),
        (APPLICATION, 0.5),
        ("env-not-propagated", 0.38),
        because="a name that has no address, or a text that is no address",
    ),
    words(
        rf"{_FAILS} (?:to )?(?:find|get|determine|obtain|resolve) (?:the |an? )?(?:ip |IP |network )?"
        rf"address(?:es)? (?:of|for):? (?:host )?['\"]?(?!{_INTERFACE})[\w-]*[a-z][\w.-]*",
        ("hostname-unresolvable", 0.57),
        ("wrong-interface", 0.45),
        ("loopback-hostname", 0.36),
        because="the name of a host has no address",
    ),
    words(
        r"(?i)(?:find|get|determine|obtain|no)\b.{0,20} (?:ip |network )?address(?:es)? "
        r"(?:associated|for|of|on|from)\b",
        ("wrong-interface", 0.56),
        ("hostname-unresolvable", 0.5),
        ("loopback-hostname", 0.4),
        because="no address was found where one was asked for",
    ),
)
_OTHERS = (
    r"(?:ranks?|workers?|tasks?|nodes?|peers?|actors?|executors?|replicas?|engines?|process(?:es)?)"
)
# Read after them, of every line and of every exception.
PLAIN = (
    words(
        rf"(?i)\b(?:other|remote|another) {_OTHERS}\b.{{0,40}}"
        r"\b(?:did ?n[o']t|ha(?:s|ve) ?n[o']t|never|failed|died|crashed|exited|left|lost)\b"
        rf"|\b(?:lost|removing|removed?) (?:all |the )?{_OTHERS}\b"
        rf"|\b{_OTHERS}\b .{{0,60}}\b(?:is|are|was|were|has|have|became)\b (?:been )?"
        r"(?:unavailable|unreachable|unresponsive|unhealthy|gone|lost|dead|died|disappeared"
        r"|not (?:alive|responding))\b"
        rf"|(?i:\b{_OTHERS}\b (?:\S{{1,40}} )?(?:died|crashed|disconnected|vanished|went away)\b)"
        r"|(?i:\bkeep-?alive\b.{0,20}\btime-?out\b|\b(?:no|missed|stopped sending) heartbeats?\b)",
        ("peer-died-timeout", 0.57),
        ("host-oom", 0.38),
        ("firewall-ports", 0.36),
        because="somebody else of the job is gone, or was not heard of",
    ),
    words(
        rf"{_FAILS} (?:to (?:\w+ )?|\w+ )?(?:connect|reach|contact)\b|no \w+ (?:responded|answered)\b",
        ("peer-died-timeout", 0.56),
        ("firewall-ports", 0.5),
        ("wrong-interface", 0.46),
        because="somebody could not be reached",
    ),
)
# What is about something of a host leaves open what it was (topics.py).
OWN = words(
    r"^(?:\d{1,5}: |\[rank\d{1,5}\]: ?)?"
    r"(?:\W{0,3}(?:[Ff]atal )?(?:[Ee]rror|ERROR)\W{0,2}:|\[(?:[Ee]rror|ERROR|FATAL)\] "
    r"|[Aa]ssertion [Ff]ailed\b"
    # Launchers and shells report what is not their own.
    r"|(?!srun|s?batch|slurm|mpi|prte|orte|ssh|bash|make|kube|docker|ERROR)[a-z][\w.-]{1,40}: [Ee]rror: )",
    (APPLICATION, 0.56),
    because="the program itself reports an error, in words of its own",
)
# A process that was ended says less than what was said before.
ENDED = (
    words(
        r"\bKilled\b|SIGKILL|[Ss]ignal:? \(?9\b|[Ee]xit(?:ed with)? (?:code|status):? (?:137|-9)\b",
        ("host-oom", 0.5),
        ("peer-died-timeout", 0.4),
        because="a process was killed; the kernel's log says why",
    ),
    words(
        r"[Ss]egmentation fault|SIGSEGV|core dumped",
        (APPLICATION, 0.56),
        ("nccl-version-mismatch", 0.3),
        because="the program crashed",
    ),
    OWN,
)
