"""Where a job ran, as its logs show by the way: on how many hosts, over which network, in containers or not.

What is not shown is not known: no answer depends on it alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

OPENING = (
    16 << 10
)  # bytes at the beginning of a log that are read for it, and characters at its end
WIDEST = 240  # characters of a line in which it begins

SOCKET, INFINIBAND, ROCE, FABRIC = "socket", "infiniband", "roce", "fabric"
TCP, RDMA = "tcp of UCX", "rdma of UCX"

# The number of hosts as launchers name it, and NCCL in its communicators.
_NODES = re.compile(
    r"(?:nnodes|num[_-]nodes|num[_-]machines|SLURM_NNODES|SLURM_JOB_NUM_NODES)['\"]?(?: ?[=:] ?| )"
    r"['\"]?(?P<launcher>\d{1,5})\b(?!:)|\bnNodes (?P<nccl>\d{1,5})\b"
)
_WORLD = re.compile(
    r"n[rR]anks[ =](?P<nccl>\d{1,6})\b|world_size['\"]?(?: ?[=:] ?| )(?P<launcher>\d{1,6})\b"
    r"|WORLD_SIZE=(?P<variable>\d{1,6})\b|MEMBER: \d{1,6}/(?P<members>\d{1,6})\b"
)
# A meeting place that only processes of the same host find.
_OWN_PLACE = re.compile(
    r"(?:MASTER_ADDR|init_method|rdzv_endpoint|--master[_-]addr)['\"]?(?: ?[=:] ?| )['\"]?(?:tcp://)?"
    r"(?:localhost|127\.0\.0\.1)\b"
)
_NCCL = re.compile(r"(?:^|[ |])(?P<host>[\w.-]{1,64}):\d{1,8}:\d{1,8} \[(?P<local>\d{1,3})\] ")
_TESTS_ROW = re.compile(
    r"# +Rank +\d{1,6} (?:Group +\d{1,4} +)?Pid +\d{1,8} on +(?P<host>\S{1,64}) device +\d"
)
_NETWORKS = (
    (ROCE, re.compile(r"mlx\d_\w{1,12}:\d/RoCE|link_layer:\s{1,8}Ethernet|RoCE v2")),
    (INFINIBAND, re.compile(r"mlx\d_\w{1,12}:\d/IB\b|link_layer:\s{1,8}InfiniBand")),
    (FABRIC, re.compile(r"NET/OFI (?:Selected|Using|Running)|Using network (?:AWS |Lib)")),
    (SOCKET, re.compile(r"Using (?:network Socket|internal Network Socket)|via NET/Socket/")),
    (TCP, re.compile(r"ep_cfg\[\d{1,4}\]: (?:tag|am|rma)\(tcp/")),
    (RDMA, re.compile(r"ep_cfg\[\d{1,4}\]: [^\n]{0,80}\((?:rc|dc|ud)_\w{2,12}/")),
)
# What a tool shows to be there, whether the job used it or not.
_FABRICS = (
    (FABRIC, re.compile(r"^ *provider: efa\b", re.MULTILINE)),
    (INFINIBAND, re.compile(r"\bState: Active\b[^/]{0,160}\bRate: (?:40|56|100|200|400|800)\b")),
)
CPU, GPU = "cpu", "gpu"
_DEVICES = (
    (
        CPU,
        re.compile(
            r"\bdevice['\"]?(?: ?[=:] ?| )['\"]?cpu\b|\bGPU available: False|\bGPU will not be used\b"
            r"|\bcuda(?:_| is )?(?:available|enabled)\W{1,3}False"
            r"|\bno GPU(?:/TPU)? (?:was )?found, (?:falling back to|using) (?:the )?CPU\b"
            r"|\b(?:running|training|fall(?:ing|s)? back|fell back)(?: on| to) (?:the )?CPU\b"
            r"|\bcuda (?:is )?not available|\bsetting device to CPU|\bSkipping registering GPU devices",
            re.IGNORECASE,
        ),
    ),
    (
        GPU,
        re.compile(
            r"\bcuda:\d|(?<!--)\bdevice['\"]?(?: ?[=:] ?| )['\"]?(?:cuda|gpu)\b|\bGPU available: True"
            r"|\bcuda(?:_| is )?(?:available|enabled)\W{1,3}True|NCCL INFO|\bUsing (?:GPU|cuda)\b",
            re.IGNORECASE,
        ),
    ),
)
_PYTHONS = re.compile(r"/python(3\.\d{1,2})/")
_OF_DOCKER = re.compile(r"[0-9a-f]{12}")  # its own names of hosts
# What launchers put before lines is not among it: it changes no answer.
_CONTAINERS = (
    *("nvidia-container-cli", "pyxis:", "enroot", "apptainer", "singularity", "docker://"),
    *(
        "docker run",
        "docker exec",
        "podman run",
        "podman exec",
        "kubelet",
        "/.dockerenv",
        "containerd",
    ),
)
_ROWS = ("] NCCL ", "] INFO ", "# ")  # one of them stands on every line that names a host


@dataclass(frozen=True)
class JobSetting:
    """What logs show of where their job ran.

    Args:
        nodes: the numbers of hosts that it is said to have.
        hosts: the names that its lines begin with.
        is_at_home: whether its processes meet at an address that no other host reaches.
        is_complete: whether all its ranks are seen on one host.
        world: how many ranks it has, 0 where that is not shown.
        networks: over which it sends.
        fabrics: that a tool shows to be there.
        is_contained: whether it runs in containers.
        devices: that it says it computes on.
        pythons: versions of Python whose files it runs, as "3.11".
    """

    nodes: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    is_at_home: bool = False
    is_complete: bool = False
    world: int = 0
    networks: frozenset[str] = frozenset()
    fabrics: frozenset[str] = frozenset()
    is_contained: bool = False
    devices: frozenset[str] = frozenset()
    pythons: frozenset[str] = frozenset()

    @property
    def is_of_one_host(self) -> bool:
        """Whether the job has no second host, as far as anything shows."""
        if len(self.hosts) > 1 or any(number > 1 for number in self.nodes):
            return False
        return bool(self.nodes) or self.is_at_home or self.is_complete

    @property
    def is_of_many_hosts(self) -> bool:
        """Whether the logs show more than one host."""
        return len(self.hosts) > 1 or any(number > 1 for number in self.nodes)


def setting_of(text: str) -> JobSetting:
    """Read where a job ran from lines of one log.

    Args:
        text: its beginning and its end.
    """
    nodes = {int(match["launcher"] or match["nccl"]) for match in _NODES.finditer(text)}
    world = max((int(match[match.lastgroup or 0]) for match in _WORLD.finditer(text)), default=0)
    places, rows = _places(text)  # the beginning and the end of a short log are the same lines
    most = max((len(ranks) for ranks in places.values()), default=0)
    hosts = {*places, *rows.values()}
    return JobSetting(
        nodes=frozenset(nodes - {0}),
        hosts=frozenset(hosts),
        is_at_home="--standalone" in text or bool(_OWN_PLACE.search(text)),
        is_complete=len(hosts) == 1 and (len(rows) > 1 or 1 < world <= most),
        world=world,
        networks=frozenset(name for name, pattern in _NETWORKS if pattern.search(text)),
        fabrics=frozenset(name for name, pattern in _FABRICS if pattern.search(text)),
        is_contained=any(map(_OF_DOCKER.fullmatch, places))
        or any(word in text for word in _CONTAINERS),
        devices=frozenset(name for name, pattern in _DEVICES if pattern.search(text)),
        pythons=frozenset(_PYTHONS.findall(text)),
    )


def remarks(setting: JobSetting) -> tuple[str, ...]:
    """Return what is worth knowing of a job that went well: it may be slow for it.

    Args:
        setting: of the job.
    """
    if setting.networks != {SOCKET} or not setting.is_of_many_hosts:
        return ()
    slow = "where the hosts have InfiniBand, RoCE or EFA, the job is slow for it"
    why = "its lines NET/IB and NET/Plugin say why they were not used"
    return (f"NCCL sent over TCP sockets: {slow} ({why})",)


def _places(text: str) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return the cards that NCCL's lines name, by host, and the host of each row of nccl-tests."""
    places: dict[str, set[str]] = defaultdict(set)
    rows: dict[str, str] = {}
    for line in text.splitlines():
        if not any(mark in line for mark in _ROWS):
            continue
        if match := _NCCL.search(line[:WIDEST]):
            places[match["host"]].add(match["local"])
        elif row := _TESTS_ROW.search(line[:WIDEST]):
            rows[row[0]] = row["host"]
    return places, rows


def together(settings: Iterable[JobSetting]) -> JobSetting:
    """Return what all logs of a job show of where it ran."""
    known = list(settings)
    return JobSetting(
        nodes=frozenset().union(*(setting.nodes for setting in known)),
        hosts=frozenset().union(*(setting.hosts for setting in known)),
        is_at_home=any(setting.is_at_home for setting in known),
        is_complete=any(setting.is_complete for setting in known),
        world=max((setting.world for setting in known), default=0),
        networks=frozenset().union(*(setting.networks for setting in known)),
        fabrics=frozenset().union(*(setting.fabrics for setting in known)),
        is_contained=any(setting.is_contained for setting in known),
        devices=frozenset().union(*(setting.devices for setting in known)),
        pythons=frozenset().union(*(setting.pythons for setting in known)),
    )
