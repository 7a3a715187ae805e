"""Faults that jobs leave behind when they die, and the living things that look like them."""

from __future__ import annotations

import shlex
import subprocess

from remedy.errors import LabError
from remedy.lab.fault import HEALTHY, REPAIRED, by_hand
from remedy.lab.faults import fault
from remedy.lab.host import Host

TRAINER = 1000
"""The lab's ordinary user."""

_ATTACH = """\
import ctypes, os, signal, sys, time
os.setgid({uid})
os.setuid({uid})
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
segment = libc.shmget(0, {size}, 0o1600)
assert segment >= 0 and libc.shmat(segment, None, 0) != ctypes.c_void_p(-1).value
print(segment, flush=True)
{end}
"""
SEGMENT_BYTES = 4 << 20


def _segment(host: Host, end: str) -> None:
    """Make and attach a System V segment as an ordinary user.

    Args:
        host: where.
        end: what the process then does, in Python.
    """
    script = _ATTACH.format(uid=TRAINER, size=SEGMENT_BYTES, end=end)
    start(host, ["python3", "-c", script], ready="[0-9]")


def start(host: Host, command: list[str], *, ready: str) -> None:
    """Start a program that goes on by itself, and wait until its output matches.

    Args:
        host: where.
        command: the program.
        ready: a regular expression of grep.
    """
    host.must(
        f"log=$(mktemp); chmod 666 $log; setsid {shlex.join(command)} </dev/null >$log 2>&1 & "
        f"for _ in $(seq 200); do grep -q {shlex.quote(ready)} $log && exit; sleep 0.05; done;"
        " cat $log >&2; exit 1"
    )


@fault(
    "stale-sysv-segment",
    "a System V segment of a job that was killed; no process is attached",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="it is younger than sysv_ipc.min_age_minutes",
)
def stale_sysv_segment(host: Host) -> None:
    _segment(host, "os.kill(os.getpid(), signal.SIGKILL)")


@fault(
    "busy-sysv-segment",
    "a System V segment that a running job is attached to",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="it is in use",
)
def busy_sysv_segment(host: Host) -> None:
    _segment(host, "time.sleep(1 << 20)")


# Named as NCCL, PyTorch, Open MPI and UCX name theirs.
_FILES = """\
cd /dev/shm
for name in nccl-Dead01 torch_4711_1234567_0 vader_segment.node.1000.5ee50001.1 ucx_shm_posix_7f3a; do
    head -c 2097152 /dev/zero >"$name"
    chown 1000:1000 "$name"
done
"""

_HOLD = """\
import mmap, os, time
os.setgid({uid})
os.setuid({uid})
def make(name):
    file = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, 1 << 20)
    return file
mapped, opened = make("nccl-Live01"), make("torch_4712_7654321_0")
memory = mmap.mmap(mapped, 1 << 20)
os.close(mapped)
print("held", flush=True)
time.sleep(1 << 20)
"""


@fault(
    "stale-shm-files",
    "files of NCCL, PyTorch, Open MPI and UCX in /dev/shm that no process uses",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="they are younger than shm_leftovers.min_age_minutes",
)
def stale_shm_files(host: Host) -> None:
    host.must(_FILES)


@fault(
    "busy-shm-files",
    "a running job maps one such file and has a second one open",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="they are in use",
)
def busy_shm_files(host: Host) -> None:
    start(host, ["python3", "-c", _HOLD.format(uid=TRAINER)], ready="held")


def torchrun(host: Host, port: int = 29500) -> list[str]:
    """Return the command line of a launcher that waits for a second host, which never comes.

    Args:
        host: where it is to run.
        port: the rendezvous port, which it holds.

    Raises:
        LabError: there is no torch on this machine.
    """
    if host.lab.python is None:
        raise LabError("there is no torch on this machine", next_step="Install it: see README.md.")
    address = host.record.cluster_address
    options = ["--nnodes", "2", "--node-rank", "0", "--nproc-per-node", "1"]
    where = ["--master-addr", address, "--master-port", str(port)]
    return [host.lab.python, "-m", "torch.distributed.run", *options, *where, "/dev/null"]


def wait_for_port(host: Host, port: int = 29500) -> None:
    """Wait until somebody listens.

    Args:
        host: where.
        port: on which port.
    """
    host.must(
        f"for _ in $(seq 600); do ss -H -ltn 'sport = :{port}' | grep -q . && exit; sleep 0.1; done;"
        f" echo 'nobody listens on port {port}' >&2; exit 1"
    )


@fault(
    "orphan-torchrun",
    "a torchrun whose ssh client was killed runs on and holds port 29500",
    repair=by_hand("orphans.end"),
    log=HEALTHY,
)
def orphan_torchrun(host: Host) -> None:
    held = "ss -H -ltn 'sport = :29500' | grep -q ."
    if host.run(held).returncode == 0:
        return
    client = subprocess.Popen(
        host.ssh(torchrun(host)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_port(host)
    finally:
        client.kill()
        client.wait()
    # sshd notices a moment later.
    host.must(
        "for _ in $(seq 100); do"
        " pid=$(ss -H -ltnp 'sport = :29500' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p');"
        " grep -q '^PPid:[[:blank:]]*1$' /proc/$pid/status && exit; sleep 0.1; done; exit 1"
    )
