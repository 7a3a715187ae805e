"""The jobs: what is typed on each host, and how it is seen that all ranks summed together."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from remedy.firewall.ports import Framework
from remedy.lab.host import Host

HERE = Path(__file__).parent
FOLDER = "/root/clients"
_SUM = re.compile(r"sum (\d+) of (\d+) ranks")
_KNOWN = "ssh-keyscan -t ed25519 {names} >>/root/.ssh/known_hosts 2>/dev/null"


@dataclass(frozen=True)
class Job:
    """One way to start a job.

    Args:
        name: of the row.
        framework: as in the settings.
        launcher: the program that is typed.
        command: what is typed on each host: ``{i}`` its number, ``{n}`` how many, ``{m}`` the first host by
            name or address, ``{p}`` the ranks on each, ``{all}`` all hosts by name or address.
        document: the page that says so.
        program: the sum that it starts; "" where the launcher brings its own test.
        done: what its output holds when it is done, where the program is not one of the sums.
        names: whether hosts may be given by name; Paddle compares the master with addresses only.
        head_only: whether it is typed on the first host alone.
        logs: the files that hold the output of the ranks, beside what the launcher prints.
    """

    name: str
    framework: Framework
    launcher: str
    command: str
    document: str
    program: str = ""
    done: str = ""
    names: bool = True
    head_only: bool = False
    logs: str = ""


_TORCHRUN = "https://docs.pytorch.org/docs/stable/elastic/run.html"
_MPIRUN = "https://docs.open-mpi.org/en/v4.1.x/"
_PADDLE = (
    "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/launch_en.html"
)
_MSRUN = "https://www.mindspore.cn/tutorials/en/master/parallel/msrun_launcher.html"
_LAUNCH = "python -m paddle.distributed.launch --master={m}:8090 --nnodes={n} --nproc_per_node={p}"

JOBS: tuple[Job, ...] = (
    Job(
        "torchrun, static",
        "torch",
        "torchrun",
        "torchrun --nnodes={n} --node-rank={i} --nproc-per-node={p} --master-addr={m} --master-port=29500"
        " sum_torch.py",
        _TORCHRUN,
        "sum_torch.py",
    ),
    Job(
        "torchrun, c10d",
        "torch",
        "torchrun",
        "torchrun --nnodes={n} --nproc-per-node={p} --rdzv-id=7 --rdzv-backend=c10d --rdzv-endpoint={m}"
        " sum_torch.py",
        _TORCHRUN,
        "sum_torch.py",
    ),
    Job(
        "mpirun",
        "mpi",
        "mpirun",
        "mpirun --allow-run-as-root --host {all} -np {n} python3 " + f"{FOLDER}/sum_mpi.py",
        _MPIRUN,
        "sum_mpi.py",
        head_only=True,
    ),
    Job(
        "paddle.distributed.launch",
        "paddle",
        "paddle.distributed.launch",
        _LAUNCH + " --log_dir=log sum_paddle.py",
        _PADDLE,
        "sum_paddle.py",
        names=False,
        logs="log/workerlog.*",
    ),
    Job(
        "paddle.distributed.launch run_check",
        "paddle",
        "paddle.distributed.launch",
        _LAUNCH + " --log_dir=log run_check",
        _PADDLE,
        done="Distributed training completed",
        names=False,
        logs="log/workerlog.*",
    ),
    Job(
        "msrun",
        "mindspore",
        "msrun",
        "msrun --worker_num={world} --local_worker_num={p} --master_addr={m} --master_port=8118 --node_rank={i}"
        " --log_dir=log --join=True --cluster_time_out=120 sum_mindspore.py",
        _MSRUN,
        "sum_mindspore.py",
        logs="log/worker_*.log",
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: whether every rank that was started summed with all others, and what was printed."""

    good: bool
    output: Mapping[str, str]


def prepare(hosts: Sequence[Host]) -> None:
    """Put the programs on the hosts, and let root of each log in to the others, as mpirun needs it."""
    programs = sorted(HERE.glob("sum_*.py"))
    for host in hosts:
        host.must(f"mkdir -p {FOLDER} /root/.ssh")
        for path in (*programs, HERE / "watch.py"):
            host.write(f"{FOLDER}/{path.name}", path.read_bytes())
    head = hosts[0]
    key = "test -f /root/.ssh/id_ed25519 || ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519"
    public = head.must(f"{key}; cat /root/.ssh/id_ed25519.pub")
    for host in hosts:
        host.must("cat >>/root/.ssh/authorized_keys", stdin=public)
    names = " ".join(f"{host.name} {host.record.cluster_address}" for host in hosts)
    head.must(_KNOWN.format(names=names))


def run(
    job: Job, hosts: Sequence[Host], *, by_name: bool, ranks: int = 1, seconds: float = 120
) -> Outcome:
    """Run a job on lab hosts that ``prepare`` has seen.

    Args:
        job: which.
        hosts: the first is the master.
        by_name: whether hosts are given by name; else by their cluster address.
        ranks: on each host.
        seconds: when it is ended.
    """
    words = [host.name if by_name else host.record.cluster_address for host in hosts]
    count = len(hosts)

    def on(number: int) -> str:
        host = hosts[number]
        fill = {"i": number, "n": count, "p": ranks, "world": count * ranks}
        typed = job.command.format(m=words[0], all=",".join(words), **fill)
        # What ranks print is counted once: in their logs, where the launcher writes such.
        counted = f">&2 2>&1; cat {job.logs} 2>/dev/null" if job.logs else "2>&1"
        environment = Path(host.lab.python or "/usr/bin/python3").parent
        line = f"cd {FOLDER}; rm -rf log; export PATH={environment}:$PATH; {typed} {counted}; true"
        # By ssh: a job has what a session has.
        limited = f"timeout --kill-after=5 {seconds:.0f} sh -c {shlex.quote(line)}"
        done = subprocess.run(
            host.ssh([limited]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        printed[host.name] = done.stdout
        return done.stdout + done.stderr

    printed: dict[str, str] = {}
    numbers = range(1 if job.head_only else count)
    with ThreadPoolExecutor(len(hosts)) as pool:
        output = dict(zip((host.name for host in hosts), pool.map(on, numbers), strict=False))
    world = count * (1 if job.head_only else ranks)
    if job.done:
        every = len(printed) == count and all(job.done in text for text in printed.values())
        return Outcome(every, output)
    text = "\n".join(printed.values())
    return Outcome(_SUM.findall(text) == [(str(world), str(world))] * world, output)
