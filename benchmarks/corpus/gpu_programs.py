"""Recordings of many kinds of GPU programs: hosts that share one GPU, with one fault each.

    python -m benchmarks.corpus.gpu_programs FOLDER [NAME ...]

The hosts are network namespaces with a name, a boot-id, an /etc/hosts, a /dev/shm, a home and processes
of their own (``tests.local.rooms``). FOLDER gets a folder of logs for each job, and index.tsv. A job is a
shell text that each host runs; what makes its fault comes in that text, or in one that is run before and
not recorded. Names: only these jobs. The whole ends within ``WHOLE`` seconds. With TRAIN_DEVICE=cpu and
JAX_PLATFORMS=cpu the jobs that need no CUDA run over gloo, as tests/diagnose/tenth was made.
"""

from __future__ import annotations

import collections
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from benchmarks.corpus.gpu_programs_job import Job
from benchmarks.corpus.gpu_programs_network import NETWORK as NETWORK_JOBS
from benchmarks.corpus.gpu_programs_others import OTHERS
from benchmarks.corpus.gpu_programs_torch import TORCH
from tests.local.rooms import NETWORK, Rooms

HERE = Path(__file__).parent
WORKERS = 16
WHOLE = 410.0
"""Seconds after which everything is ended, whatever it does."""
TOGETHER = 270.0
"""Seconds after which no job starts but those that have the GPU for themselves."""
HEAD, TAIL = 200_000, 80_000  # bytes of a log that are kept
FAILED = 97
OWN = ["unshare", "-m", "-u", "--pid", "--fork", "--kill-child", "--mount-proc"]
# $1 the boot-id's file, $2 the name, $3 the hosts file, $4 what it sources, $5 the setup, $6 the job, $7 where
# the setup prints. The last shell stays, as the first process, so that signals mean what they mean elsewhere.
BOOT = """
hostname "$2" && mount --bind "$1" /proc/sys/kernel/random/boot_id && mount --bind "$3" /etc/hosts &&
mkdir -p /mnt && mount -t tmpfs -o size=4g tmpfs /mnt && mount -t tmpfs -o size=8g tmpfs /dev/shm &&
mkdir -p /mnt/home /mnt/job && cp "$CORPUS"/train_gpu_*.py /mnt/job/ &&
cp "$4" /mnt/job/launch.sh && cd /mnt/job || exit 97
export HOME=/mnt/home HOSTNAME="$2"
bash -e -c ". ./launch.sh
$5" >"$7" 2>&1 </dev/null || exit 97
bash -c ". ./launch.sh
$6"
exit $?
"""
# What the jobs' shell texts call.
WORDS = r"""
on() { [ "$NODE" = "$1" ]; }
at() { until grep -q -e "$1" "$LOG"; do sleep 0.1; done; }
rules() { nft -f - <<END
table inet filter { chain $1 { type filter hook $1 priority 0; policy accept; $2; }; }
END
}
KNOWN='iif "lo" accept; ct state established,related accept;'
take() { $PY -c "import socket, time; s = socket.create_server(('', $1)); time.sleep(100)" & sleep 1.5; }
child() { cat /proc/$1/task/$1/children; }
worker() { child $(child $1); }
torch_run() {
    $PY -m torch.distributed.run --nnodes $NNODES --nproc-per-node ${EACH:-1} --node-rank $NODE \
        --master-addr ${AT:-$MASTER} --master-port $PORT "$@"
}
c10d_run() {
    $PY -m torch.distributed.run --nnodes $NNODES --nproc-per-node 1 --rdzv-backend c10d --rdzv-id 4417 \
        --rdzv-endpoint ${AT:-$FIRST}:$PORT --rdzv-conf join_timeout=20,timeout=20,read_timeout=20 "$@"
}
env_run() {
    RANK=${AS:-$NODE} WORLD_SIZE=${OF:-$NNODES} LOCAL_RANK=0 MASTER_ADDR=${AT:-$MASTER} \
        MASTER_PORT=$PORT $PY "$@"
}
accelerate_run() {
    $PY -m accelerate.commands.launch --multi_gpu --num_machines $NNODES --num_processes ${OF:-$NNODES} \
        --machine_rank $NODE --main_process_ip $MASTER --main_process_port $PORT --mixed_precision no \
        --dynamo_backend no "$@"
}
lightning_run() {
    MASTER_ADDR=${AT:-$MASTER} MASTER_PORT=$PORT NODE_RANK=$NODE $PY train_gpu_lightning.py --nodes $NNODES "$@"
}
jax_run() {
    $PY train_gpu_jax.py --coordinator ${AT:-$MASTER}:$PORT --processes ${OF:-$NNODES} \
        --process ${AS:-$NODE} "$@"
}
cupy_run() { $PY train_gpu_cupy.py --host $MASTER --processes ${OF:-$NNODES} --rank ${AS:-$NODE} "$@"; }
without_library() {
    for folder in $(ldconfig -p | sed -n "s|.* => \(/.*\)/$1.*|\1|p" | sort -u) $2; do
        [ -d $folder ] || continue
        mkdir -p /mnt/over/$folder.up /mnt/over/$folder.work
        mount -t overlay -o lowerdir=$folder,upperdir=/mnt/over/$folder.up,workdir=/mnt/over/$folder.work \
            overlay $folder
        rm -f $folder/$1*
    done
}
without_devices() {
    mkdir /mnt/dev /mnt/dev/shm
    mount -t tmpfs tmpfs /mnt/dev
    mkdir /mnt/dev/shm && mount -t tmpfs tmpfs /mnt/dev/shm
    for node in null zero full random urandom tty; do
        touch /mnt/dev/$node && mount --bind /dev/$node /mnt/dev/$node
    done
    ln -s /proc/self/fd /mnt/dev/fd
    mount --rbind /mnt/dev /dev
}
hold() {
    $PY -c "
import time, torch
free = torch.cuda.mem_get_info()[0]
kept = torch.empty(free - ($1 << 20), dtype=torch.uint8, device='cuda')
open('/mnt/held', 'w').close()
time.sleep(100)" &
    for _ in $(seq 250); do [ -e /mnt/held ] && return; sleep 0.1; done
    return 1
}
"""


def spread(stream: IO[bytes], path: Path, prefix: str, host: str) -> None:
    """Keep the head and the tail of what a host prints, with a prefix as some launchers write it."""
    rest: collections.deque[bytes] = collections.deque()
    size = held = 0
    with path.open("wb", buffering=0) as log:
        for line in stream:
            if prefix == "kubectl":
                now = datetime.datetime.now(datetime.timezone.utc)
                line = f"{now:%Y-%m-%dT%H:%M:%S.%f}{time.time_ns() % 1000:03d}Z ".encode() + line
            elif prefix == "pdsh":
                line = f"{host}: ".encode() + line
            line = line[:4000] if len(line) <= 4000 else line[:3999] + b"\n"
            if size < HEAD:
                log.write(line)
                size += len(line)
                continue
            rest.append(line)
            held += len(line)
            while held > TAIL:
                held -= len(rest.popleft())
        log.write(b"".join(rest))


class Recorder:
    """One job on its hosts.

    Args:
        job: what is recorded.
        folder: where its logs go.
        end: when everything ends, by time.monotonic().
    """

    def __init__(self, job: Job, folder: Path, end: float) -> None:
        self.job = job
        self.folder = folder
        self.end = end
        self.hosts = job.hosts.split()

    def words(self, node: int, room: str, kept: Path) -> tuple[list[str], dict[str, str]]:
        """The command of one host, and its environment."""
        host = self.hosts[node]
        boot_id = kept / f"boot{node}"
        same = "sameboot" in self.job.options
        boot_id.write_text(
            f"{uuid.uuid5(uuid.NAMESPACE_DNS, str(kept)) if same else uuid.uuid4()}\n"
        )
        hosts = kept / f"hosts{node}"
        names = [f"{NETWORK}.{number} {name}\n" for number, name in enumerate(self.hosts, 1)]
        if "noname" in self.job.options:
            names = [line for line in names if line.split()[1] != host]
        hosts.write_text(
            "127.0.0.1 localhost\n" + self.job.names.replace("HOST", host) + "".join(names)
        )
        (kept / "words.sh").write_text(WORDS)
        values = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NCCL_")},
            "CORPUS": str(HERE),
            "PY": sys.executable,
            "PYTHONUNBUFFERED": "1",
            "NODE": str(node),
            "NNODES": str(len(self.hosts)),
            "MASTER": f"{NETWORK}.1",
            "FIRST": self.hosts[0],
            "PORT": "29500",
            "LOG": str(self.log(node)),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "XLA_PYTHON_CLIENT_MEM_FRACTION": ".02",
            "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cuda"),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self.job.debug:
            values["NCCL_DEBUG"] = self.job.debug
        boot = ["sh", "-c", BOOT, "sh", str(boot_id), host, str(hosts), str(kept / "words.sh")]
        texts = [self.job.setup or ":", self.job.run, str(kept / f"setup{node}")]
        return ["nsenter", f"--net=/run/netns/{room}", *OWN, *boot, *texts], values

    def log(self, node: int) -> Path:
        """Where a host's log lies; hosts of one name get their number to it."""
        host = self.hosts[node]
        return self.folder / f"{host}{f'-{node}' if self.hosts.count(host) > 1 else ''}.log"

    def record(self) -> None:
        """Run the job, and keep what its hosts print.

        Raises:
            RuntimeError: its fault could not be made here.
        """
        missing = [need for need in self.job.needs.split() if shutil.which(need) is None]
        if missing:
            raise RuntimeError(f"no {missing[0]}")
        if time.monotonic() > self.end - 15:
            raise RuntimeError("no time left")
        rooms = Rooms(len(self.hosts))
        self.folder.mkdir(parents=True)
        running: list[subprocess.Popen[bytes]] = []
        readers: list[threading.Thread] = []
        with tempfile.TemporaryDirectory() as name:
            kept = Path(name)
            try:
                rooms.make()
                for node, room in enumerate(rooms.names.values()):
                    words, values = self.words(node, room, kept)
                    process = subprocess.Popen(
                        words,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        env=values,
                    )
                    running.append(process)
                    assert process.stdout is not None
                    given = (process.stdout, self.log(node), self.job.prefix, self.hosts[node])
                    readers.append(threading.Thread(target=spread, args=given, daemon=True))
                    readers[-1].start()
                stop = min(time.monotonic() + self.job.limit, self.end)
                while (
                    any(process.poll() is None for process in running) and time.monotonic() < stop
                ):
                    if FAILED in [process.returncode for process in running]:
                        break
                    time.sleep(0.2)
            finally:
                for process in running:
                    process.kill()
                    process.wait()
                for reader in readers:
                    reader.join(5)
                rooms.remove()
            for node, process in enumerate(running):
                if process.returncode == FAILED:
                    said = kept / f"setup{node}"
                    text = said.read_text(errors="replace")[-600:] if said.exists() else "no boot"
                    raise RuntimeError(f"setup: {text}")
        if not any(self.log(node).stat().st_size for node in range(len(self.hosts))):
            raise RuntimeError("nothing printed")


def main() -> None:
    """Record all jobs, those that fill the GPU last and one at a time."""
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    jobs = [job for job in (*NETWORK_JOBS, *TORCH, *OTHERS) if not only or job.name in only]
    start = time.monotonic()
    rows = ["file\tlabel\tsecondary\tcommand"]

    def row_of(job: Job) -> str:
        begun = time.monotonic()
        problem = "" if job.alone or begun < start + TOGETHER else "no time left"
        if not problem:
            try:
                Recorder(job, folder / job.name, start + WHOLE).record()
            except Exception as error:
                problem = str(error)
                shutil.rmtree(folder / job.name, ignore_errors=True)
        spent = f"{time.monotonic() - begun:.0f} s, at {time.monotonic() - start:.0f} s"
        print(job.name, f"not recorded: {problem}" if problem else f"recorded, {spent}", flush=True)
        return "" if problem else "\t".join((job.name, job.label, job.secondary, job.command))

    for workers, alone in ((WORKERS, False), (1, True)):
        with ThreadPoolExecutor(workers) as pool:
            for row in pool.map(row_of, [job for job in jobs if job.alone == alone]):
                if row:
                    rows.append(row)
    (folder / "index.tsv").write_text("\n".join(rows) + "\n")
    for pattern in ("remedy-gpu-*", "memory/remedy-gpu-*"):
        for group in Path("/sys/fs/cgroup").glob(pattern):
            group.rmdir()


if __name__ == "__main__":
    main()
