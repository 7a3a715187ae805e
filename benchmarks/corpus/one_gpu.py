"""Recordings over NCCL: two hosts that share one GPU, with one fault each.

    python -m benchmarks.corpus.one_gpu FOLDER PREFIX

The hosts are network namespaces with a name, a boot-id, an /etc/hosts and a firewall of their own
(``tests.local.rooms``). FOLDER gets a folder of two logs for each scenario, its name with PREFIX, and
index.tsv. Where REMEDY_OTHER_NCCL names another libnccl, one scenario has it on the second host.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.local.rooms import NETWORK, Rooms, ip

PORT = 29400
MASTER = f"{NETWORK}.1"
LAUNCH = f"--nnodes 2 --nproc-per-node 1 --node-rank {{node}} --master-addr {MASTER} --master-port {PORT}"
TRAIN = Path(__file__).with_name("train_nccl.py")
WORKERS = 20
LIMIT = 80.0  # seconds, for a scenario
DEAD = "rank-mismatch;peer-died-timeout"
LOST = "host-oom;peer-died-timeout"
WAIT = "application-error;unknown"
FEW = "firewall-ports;peer-died-timeout;unknown"
OWN = ["unshare", "-m", "-u", "--pid", "--fork", "--kill-child", "--mount-proc"]
BOOT = (
    'hostname "$2" && mount --bind "$1" /proc/sys/kernel/random/boot_id && mount --bind "$3" /etc/hosts '
    '&& shift 3 && exec "$@"'
)


@dataclass(frozen=True)
class Fault:
    """One recording.

    Args:
        label: its cause.
        secondary: what counts as right, too, as in an index.
        train: arguments of the training program.
        launch: arguments of torchrun of each host; ``{node}`` is its number.
        environment: variables of each host, by its number; -1: both.
        before: what is done to the hosts at first.
        at_step: what is done to them once they train.
        limits: what the shell of a host does first, by its number.
        names: lines of /etc/hosts that come before those of the cluster.
    """

    label: str
    secondary: str = ""
    train: str = ""
    launch: str = LAUNCH
    environment: dict[int, dict[str, str]] = field(default_factory=dict)
    before: Callable[[Rooms], None] | None = None
    at_step: Callable[[Rooms], None] | None = None
    limits: dict[int, str] = field(default_factory=dict)
    names: str = ""


def closed(verdict: str) -> Callable[[Rooms], None]:
    """Close the ports that the kernel draws, in one host."""

    def close(rooms: Rooms) -> None:
        rules = (
            "table inet filter { chain input { type filter hook input priority 0; policy accept; "
            f'iif "lo" accept; ct state established,related accept; tcp dport {PORT} accept; '
            f"ip protocol tcp {verdict}; }}; }}\n"
        )
        rooms.nft("gpu01", rules)
        rooms.nft("gpu02", rules)

    return close


def link(*words: str) -> Callable[[Rooms], None]:
    """Change the interface of the second host."""
    return lambda rooms: ip("-n", rooms.names["gpu02"], "link", "set", "eth0", *words)


def wide(rooms: Rooms) -> None:
    """Give hosts a larger MTU than what is between them lets through."""
    for room in rooms.names.values():
        ip("-n", room, "link", "set", "eth0", "mtu", "9000")


def taken(rooms: Rooms) -> None:
    """Have somebody else listen on the launcher's port."""
    listen = f"import socket, time; s = socket.create_server(('', {PORT})); time.sleep({LIMIT})"
    words = ["ip", "netns", "exec", rooms.names["gpu01"], sys.executable, "-c", listen]
    subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)


def silent(rooms: Rooms) -> None:
    """Have nothing more arrive at the second host, not even what belongs to its connections."""
    rooms.nft(
        "gpu02",
        "table inet silent { chain input { type filter hook input priority -10; policy drop; "
        'iif "lo" accept; }; }\n',
    )


INFO = {"NCCL_DEBUG": "INFO"}
OTHER = "REMEDY_OTHER_NCCL"
"""The variable that names another release of libnccl, for hosts that do not agree."""
FAULTS = {
    "good": Fault("healthy"),
    "firewall-drop": Fault("firewall-ports", DEAD, before=closed("drop")),
    "firewall-reject": Fault("firewall-ports", DEAD, before=closed("reject")),
    "interface-none": Fault("wrong-interface", environment={-1: {"NCCL_SOCKET_IFNAME": "ib0"}}),
    "interface-one": Fault(
        "wrong-interface", "peer-died-timeout", environment={1: {"NCCL_SOCKET_IFNAME": "ib0"}}
    ),
    "interface-lo": Fault(
        "wrong-interface", "loopback-hostname", environment={-1: {"NCCL_SOCKET_IFNAME": "lo"}}
    ),
    "kill": Fault("unknown", LOST, train="--fail kill"),
    "raise": Fault("application-error", "", train="--fail raise"),
    "stall": Fault("peer-died-timeout", WAIT, train="--fail stall"),
    "one-ended": Fault("peer-died-timeout", WAIT, train="--fail exit"),
    "sizes": Fault("application-error", "peer-died-timeout", train="--fail sizes --rank -1"),
    "order": Fault("application-error", "peer-died-timeout", train="--fail order --rank -1"),
    "memory": Fault("application-error", "", train="--fail memory"),
    "assert": Fault("application-error", "", train="--fail assert"),
    "ordinal": Fault("device-visibility", "application-error;rank-mismatch", train="--device 1"),
    "hidden": Fault(
        "device-visibility",
        "application-error;container-gpu-runtime",
        environment={1: {"CUDA_VISIBLE_DEVICES": ""}},
    ),
    "same-gpu": Fault(
        "duplicate-gpu",
        "device-visibility",
        launch="--standalone --nproc-per-node 2",
    ),
    "no-plugin": Fault(
        "ib-misconfig",
        "ib-link-fault;wrong-interface;env-not-propagated",
        environment={-1: {"NCCL_NET": "IB"}},
    ),
    "files": Fault("nofile-limit", "application-error", limits={1: "ulimit -n 40"}),
    "mtu": Fault("mtu-mismatch", "peer-died-timeout;unknown", train="--width 2048", before=wide),
    "link-down": Fault("network-unreachable", "peer-died-timeout;unknown", at_step=link("down")),
    "one-of-two": Fault(
        "rank-mismatch",
        FEW,
        launch=LAUNCH.replace("--nnodes 2", "--nnodes 3"),
    ),
    "no-name": Fault(
        "hostname-unresolvable",
        "unknown",
        launch=LAUNCH.replace(MASTER, "gpu09"),
    ),
    "family": Fault(
        "ipv6-issue",
        "wrong-interface;env-not-propagated;peer-died-timeout",
        environment={1: {"NCCL_SOCKET_FAMILY": "AF_INET6"}},
    ),
    "same-rank": Fault(
        "rank-mismatch",
        "master-port-in-use;peer-died-timeout;unknown",
        launch=LAUNCH.replace("{node}", "0"),
    ),
    "port-taken": Fault("master-port-in-use", DEAD, before=taken),
    "loopback": Fault(
        "loopback-hostname",
        FEW,
        launch=LAUNCH.replace(MASTER, "gpu01"),
        names="127.0.1.1 gpu01\n",
    ),
    "absent": Fault(
        "device-visibility",
        "application-error;container-gpu-runtime",
        environment={-1: {"CUDA_VISIBLE_DEVICES": "3"}},
    ),
    "disk": Fault("disk-full", "", train="--fail disk"),
    "shm": Fault(
        "shm-too-small",
        "",
        train="--fail shm",
        limits={1: "mount -t tmpfs -o size=64m tmpfs /dev/shm"},
    ),
    "silence": Fault("peer-died-timeout", "network-unreachable;firewall-ports", at_step=silent),
    **(
        {
            "versions": Fault(
                "nccl-version-mismatch",
                "peer-died-timeout;application-error;unknown",
                environment={1: {"LD_PRELOAD": os.environ[OTHER]}},
            )
        }
        if OTHER in os.environ
        else {}
    ),
}
QUIET = (
    "good",
    "firewall-drop",
    "firewall-reject",
    "kill",
    "raise",
    "stall",
    "one-ended",
    "link-down",
    "mtu",
    "interface-one",
    "same-rank",
    "port-taken",
    "loopback",
    "disk",
    "shm",
    "silence",
    *(["versions"] if OTHER in os.environ else []),
)


def record(fault: Fault, debug: dict[str, str], folder: Path) -> None:
    """Run one scenario, and keep what both hosts print."""
    rooms = Rooms(2)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as kept:
        hosts = Path(kept) / "hosts"
        hosts.write_text(
            f"127.0.0.1 localhost\n{fault.names}"
            + "".join(f"{NETWORK}.{number} {host}\n" for number, host in enumerate(rooms.names, 1))
        )
        running: list[subprocess.Popen[bytes]] = []
        try:
            rooms.make()
            if fault.before is not None:
                fault.before(rooms)
            for node, (host, room) in enumerate(rooms.names.items()):
                boot_id = Path(kept) / host
                boot_id.write_text(f"{uuid.uuid4()}\n")
                values = {
                    **debug,
                    **fault.environment.get(-1, {}),
                    **fault.environment.get(node, {}),
                }
                launch = f"-m torch.distributed.run {fault.launch.format(node=node)} {TRAIN} {fault.train}"
                run = f"{fault.limits.get(node, ':')}; exec {shlex.quote(sys.executable)} {launch}"
                boot = ["sh", "-c", BOOT, "sh", str(boot_id), host, str(hosts)]
                given = [f"{key}={value}" for key, value in values.items()]
                words = [
                    "nsenter",
                    f"--net=/run/netns/{room}",
                    *OWN,
                    *boot,
                    "env",
                    *given,
                    "sh",
                    "-c",
                    run,
                ]
                log = (folder / f"{host}.log").open("wb")
                running.append(
                    subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
                )
            end = time.monotonic() + LIMIT
            acted = fault.at_step is None
            while any(process.poll() is None for process in running) and time.monotonic() < end:
                if not acted and "step 5 " in (folder / "gpu01.log").read_text(errors="replace"):
                    acted = True
                    assert fault.at_step is not None
                    fault.at_step(rooms)
                time.sleep(0.2)
        finally:
            for process in running:
                process.kill()
                process.wait()
            rooms.remove()


def main() -> None:
    """Record all scenarios, some with what NCCL prints by itself only."""
    folder, prefix = Path(sys.argv[1]), sys.argv[2]
    rows = [(f"{prefix}-{name}", name, INFO) for name in FAULTS] + [
        (f"{prefix}-quiet-{name}", name, {}) for name in QUIET
    ]
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(record, FAULTS[name], debug, folder / row) for row, name, debug in rows]
        for (row, _, _), job in zip(rows, jobs, strict=True):
            problem = job.exception()
            print(row, "recorded" if problem is None else f"not recorded: {problem}", flush=True)
    lines = ["file\tlabel\tsecondary\tcommand"]
    for row, name, _ in rows:
        fault = FAULTS[name]
        command = f"torchrun train_nccl.py {fault.train}".rstrip()
        lines.append(f"{row}\t{fault.label}\t{fault.secondary}\t{command}")
    (folder / "index.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
