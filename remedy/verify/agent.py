"""The program that watches over one host's part of a verification, on that host.

It travels in the text of a script: standard library only, Python >= 3.8. It starts torchrun, sees to it
that everything ends in time, and leaves nothing behind: no process, no file, no port. Three things end a
run early: its deadline, the loss of whoever wanted the result, and its own death.

- *Nobody is listening.* sshd does not kill what it started when the client goes away, it just closes its
  ends: a poll of our standard output says so at once. A parent that is gone says it as well.
- *Its own death.* The kernel kills torchrun with us and the workers with torchrun (PR_SET_PDEATHSIG), and
  a guard, forked before anything else, removes the folder and whatever still carries the run's marker.

The environment is the one that the user's own commands get over ssh: an address or interface is never
set here, because the proof must be about what the user's jobs get.
"""

from __future__ import annotations

import glob
import importlib.metadata
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from remedy.verify import procs

MARK = "REMEDY-VERIFY"  # first word of each line that we print
MARKER = "REMEDY_VERIFY_RUN"  # the environment variable that all processes of a run carry
TICK = 0.1
LOOK_EVERY = 0.5  # looking through /proc costs milliseconds
BEAT_EVERY = 2.0
GRACE = 2.0  # between TERM and KILL
LINGER = 10.0  # how long torchrun may wait for other hosts once all ranks here are done
UNANSWERED_AFTER = 2.0  # seconds; the second SYN is sent after one (RFC 6298, section 2)
LOG_LINES = 40
LOG_WIDTH = 400
NETWORK_LINE = re.compile(r"Using network|NET/\w+ *: Using|Bootstrap *: Using")
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TOLD_TO_END: list[int] = []  # the signals that came; they only end the waiting
# What torchrun starts; the folder comes first also where Python is told to leave the script's out.
WORKER = """\
import sys
sys.path.insert(0, {directory!r})
from remedy.verify.worker.work import main
main()
"""
EXIT_CODE = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")


class Out:
    """Framed lines on standard output that never block us longer than they may."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        self.pending = b""
        self.broken = False
        os.set_blocking(1, False)

    def say(self, kind: str, **values: Any) -> None:
        """Queue one record, and write what the reader takes."""
        line = f"{MARK} {self.nonce} {json.dumps({'kind': kind, **values})}\n"
        self.pending += line.encode("ascii")
        self.flush(0.0)

    def flush(self, seconds: float) -> None:
        """Write what is queued, for at most this long."""
        end = time.monotonic() + seconds
        while self.pending and not self.broken:
            try:
                self.pending = self.pending[os.write(1, self.pending) :]
            except BlockingIOError:
                left = end - time.monotonic()
                if left <= 0:
                    return
                select.select([], [1], [], left)
            except OSError:
                self.broken = True

    def heard(self) -> bool:
        """Whether somebody still holds the other end of our standard output; waits one tick."""
        poll = select.poll()
        poll.register(1, 0)
        return not self.broken and not poll.poll(TICK * 1000)


class Watch:
    """What is seen of the run while it lasts: phases, connections, shared memory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.guard = 0
        self.waiting: dict[tuple[str, int, str], list[float]] = {}
        self.links: set[tuple[str, str]] = set()
        self.shm: set[str] = set()
        self.own_name = ""

    def resolve(self) -> None:
        """Find what the host's own name leads to: gloo offers that address to its peers.

        Left out where the environment names gloo's interface, because the name is then not used.
        """
        if os.environ.get("GLOO_SOCKET_IFNAME"):
            return
        try:
            found = socket.getaddrinfo(socket.gethostname(), None, 0, socket.SOCK_STREAM)
            self.own_name = str(found[0][4][0])
        except OSError as error:
            self.own_name = f"does not resolve ({error.strerror})"

    def read(self, kind: str) -> dict[int, dict[str, Any]]:
        """The JSON files of one kind, by local rank."""
        found = {}
        for path in glob.glob(f"{self.directory}/{kind}.*.json"):  # noqa: PTH207
            found[int(path.split(".")[-2])] = json.loads(procs.read(path) or b"{}")
        return found

    def look(self) -> None:
        """Note the connections of the tree, and the shared memory it holds under a name."""
        now = time.monotonic()
        tree = procs.descendants(os.getpid())
        inodes = procs.owned_inodes(tree)
        for sock in procs.sockets():
            if sock.inode not in inodes:
                continue
            if sock.state == procs.SYN_SENT:
                self.waiting.setdefault((*sock.remote, sock.inode), [now, now])[1] = now
            elif sock.state == procs.ESTABLISHED:
                self.links.add((sock.local[0], sock.remote[0]))
                self.waiting.pop((*sock.remote, sock.inode), None)
        try:
            named = any(name.startswith(("nccl-", "torch_")) for name in os.listdir("/dev/shm"))  # noqa: PTH208, S108
        except OSError:
            named = False
        for pid in tree if named else []:
            text = procs.read(f"/proc/{pid}/maps").decode("utf-8", "replace")
            self.shm.update(re.findall(r"(/dev/shm/(?:nccl-|torch_)[\w-]+)$", text, re.M))

    def unanswered(self) -> list[list[Any]]:
        """Connection attempts that nobody answered: address, port, seconds."""
        longest: dict[tuple[str, int], float] = {}
        for (address, port, _), (first, last) in self.waiting.items():
            if last - first >= UNANSWERED_AFTER:
                longest[address, port] = max(last - first, longest.get((address, port), 0.0))
        return [[address, port, round(t, 1)] for (address, port), t in sorted(longest.items())]


def tail(path: str, lines: int = LOG_LINES) -> list[str]:
    """The last lines of a log, each shortened."""
    text = procs.read(path)[-65536:].decode("utf-8", "replace")
    return [line[:LOG_WIDTH] for line in text.splitlines()[-lines:]]


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:
    """Why this host cannot take part, as (how, detail), found before anything is started."""
    try:
        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "no-torch", f"{sys.executable} has no torch"
    family = socket.AF_INET6 if ":" in config["address"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((config["address"], 0))
        except OSError as error:
            return (
                "no-address",
                f"{config['address']} is not an address of this host ({error.strerror})",
            )
    if config["node"] == 0:
        for family, everywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # As torch's store does it: connections that are only winding down do not count.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((everywhere, config["port"]))
                    probe.listen(1)
                except OSError:
                    by = procs.holder(config["port"])
                    if by:
                        return "port-in-use", f"port {config['port']} is held by {by}"
    return None


def guard(directory: str, marker: str) -> tuple[int, int]:
    """Fork the process that cleans up should this one be killed.

    Returns:
        its process id, and the descriptor: a byte written to it sends the guard home.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reader)
        return pid, writer
    os.setsid()
    # It must not hold the ssh channel open, nor the other end of its own pipe.
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(writer)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if not os.read(reader, 1):
        procs.end_all(os.getpid(), marker, set(), 0.0)
        shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)


def torchrun(config: dict[str, Any], directory: str) -> subprocess.Popen[bytes]:
    """Start torchrun with static rendezvous by address: names may be what is broken."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(config["nodes"])]
    command += ["--node-rank", str(config["node"]), "--nproc-per-node", str(config["ranks"])]
    command += ["--master-addr", config["master"], "--master-port", str(config["port"])]
    command += ["--local-addr", config["address"], "--max-restarts", "0"]
    command += [
        "--rdzv-id",
        config["nonce"],
        "--rdzv-conf",
        f"timeout={config['join_seconds']:.0f}",
    ]
    command += ["--monitor-interval", "0.1", "--log-dir", f"{directory}/logs", "--redirects", "3"]
    command += [f"{directory}/worker.py", f"{directory}/config.json"]
    environment = dict(os.environ)
    environment[MARKER] = config["nonce"]
    # Everything that torch writes by the way goes with the folder, and nothing into its installation.
    environment.update(TMPDIR=directory, PYTHONDONTWRITEBYTECODE="1")
    for name, value in (
        ("OMP_NUM_THREADS", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NET,ENV"),
    ):
        environment.setdefault(name, value)
    if config["alike"]:
        # Every host numbers its ranks by itself, so that each gets as far as it can alone.
        environment["TORCH_ELASTIC_WORKER_IDENTICAL"] = "1"
    with open(f"{directory}/torchrun.log", "wb") as log:  # noqa: PTH123
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: procs.prctl(procs.PR_SET_PDEATHSIG, signal.SIGKILL),
        )


def watch(config: dict[str, Any], out: Out, seen: Watch, run: subprocess.Popen[bytes]) -> str:
    """Wait for the end of the run, and return how it came: the first of what ends it."""
    parent = config["parent"]
    end = config["began"] + config["deadline"]
    looked = beat = 0.0
    finished = None
    while not TOLD_TO_END:
        if run.poll() is not None:
            return "exited"
        now = time.monotonic()
        if now > end:
            return "deadline"
        if now - looked > LOOK_EVERY:
            looked = now
            seen.look()
            phases = [value.get("phase", "") for value in seen.read("phase").values()]
            if len(phases) == config["ranks"] and set(phases) == {"done"}:
                finished = finished or now
                if now - finished > LINGER:
                    return "exited"
            if now - beat > BEAT_EVERY:
                beat = now
                out.say("beat", phases=phases)
        if not out.heard() or os.getppid() != parent:
            return "orphaned"
    return "terminated"


def report(out: Out, seen: Watch, config: dict[str, Any], code: int | None) -> None:
    """Queue a record for each rank."""
    phases, results, errors = seen.read("phase"), seen.read("result"), seen.read("error")
    missing = seen.read("missing")
    launcher = "\n".join(tail(f"{seen.directory}/torchrun.log", 400))
    codes = {int(rank): int(number) for number, rank in EXIT_CODE.findall(launcher)}
    for rank in range(config["ranks"]):
        result = results.get(rank)
        network: list[str] = []
        log: list[str] = []
        for path in glob.glob(f"{seen.directory}/logs/*/attempt_0/{rank}/std*.log"):  # noqa: PTH207
            network += [line for line in tail(path, 5000) if NETWORK_LINE.search(line)]
            log += [] if result else tail(path)
        out.say(
            "rank",
            local_rank=rank,
            phase=phases.get(rank, {}).get("phase", ""),
            times=phases.get(rank, {}).get("times", {}),
            result=result,
            error=errors.get(rank),
            missing=missing.get(rank, {}).get("ranks", []),
            exit_code=codes.get(rank),
            network=network[:4],
            log=log,
        )
    whole = len(results) == config["ranks"]
    out.say("launcher", exit_code=code, log=[] if whole else tail(f"{seen.directory}/torchrun.log"))


def unload(files: dict[str, str], directory: str) -> None:
    """Write files into a folder, by their paths below it; each folder between is a Python package."""
    for path, text in files.items():
        parts = path.split("/")[:-1]
        for depth in range(len(parts)):
            package = "/".join([directory, *parts[: depth + 1]])
            if not os.path.isdir(package):  # noqa: PTH112
                os.mkdir(package)  # noqa: PTH102
                open(f"{package}/__init__.py", "w").close()  # noqa: PTH123
        with open(f"{directory}/{path}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)


def take_part(config: dict[str, Any], out: Out, seen: Watch, worker: dict[str, str]) -> str:
    """Run torchrun to its end, whichever it is, and queue what the ranks left; returns how it ended."""
    config["directory"] = seen.directory
    start = WORKER.format(directory=seen.directory)
    unload({**worker, "worker.py": start, "config.json": json.dumps(config)}, seen.directory)
    run = torchrun(config, seen.directory)
    # In a thread that nobody waits for: a name server that is silent takes its time.
    threading.Thread(target=seen.resolve, daemon=True).start()
    how = watch(config, out, seen, run)
    if how != "exited":
        seen.look()
    procs.end_all(os.getpid(), f"{MARKER}={config['nonce']}", {seen.guard}, GRACE)
    report(out, seen, config, run.poll())
    for path in seen.shm:
        # Segments that the workers could not unlink because they were killed.
        if os.path.exists(path):  # noqa: PTH110
            os.unlink(path)  # noqa: PTH108
    return how


def main(config: dict[str, Any], worker: dict[str, str]) -> None:
    """Run this host's part, and print how it went.

    Args:
        config: the host's part of the plan, as ``launch.config`` makes it.
        worker: the sources of the worker, by their paths.
    """
    config["parent"] = os.getppid()
    config["began"] = time.monotonic()
    for number in ENDING:
        signal.signal(number, lambda number, _: TOLD_TO_END.append(number))
    out = Out(config["nonce"])
    procs.prctl(procs.PR_SET_PDEATHSIG, signal.SIGTERM)
    procs.prctl(procs.PR_SET_CHILD_SUBREAPER, 1)
    how, detail = unfit(config) or ("", "")
    seen = Watch("")
    left: list[int] = []
    if not how:
        marker = f"{MARKER}={config['nonce']}"
        try:
            seen.directory = tempfile.mkdtemp(prefix="remedy-verify-")
            seen.guard, leash = guard(seen.directory, marker)
            how = take_part(config, out, seen, worker)
        except OSError as error:
            how, detail = "no-space", f"{type(error).__name__}: {error}"
        finally:
            if seen.guard:
                left = procs.end_all(os.getpid(), marker, {seen.guard}, 0.0)
                shutil.rmtree(seen.directory, ignore_errors=True)
                os.write(leash, b".")
                os.waitpid(seen.guard, 0)
    out.say(
        "end",
        how=how,
        detail=detail,
        python=sys.executable,
        hostname=socket.gethostname(),
        seconds=round(time.monotonic() - config["began"], 3),
        own_name=seen.own_name,
        unanswered=seen.unanswered(),
        links=sorted(seen.links),
        left=left,
    )
    out.flush(10.0)
    os.set_blocking(1, True)
