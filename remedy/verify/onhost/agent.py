"""The program that watches over one host's part of a verification, on that host.

It travels in the text of a script: standard library only, Python >= 3.8. It starts what the engine of the
run says (``engines``), such as torchrun, sees to it that everything ends in time, and leaves
nothing behind: no process, no file, no port. Three things end a run early: its deadline, the loss of whoever
reads the result, and its own death.

- *Nobody is listening.* sshd does not kill what it started when the client goes away, it just closes its
  ends: a poll of our standard output says so at once. A parent that is gone says it as well.
- *Its own death.* The kernel kills the launcher with us and torch's workers with it (PR_SET_PDEATHSIG), and
  a guard, forked before anything else, removes the folder and whatever still carries the run's marker.

The environment is the one that the user's own commands get over ssh: what somebody chose there, such as an
interface, stays, because the proof must be about what the user's jobs get.
"""

from __future__ import annotations

import glob
import importlib
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

from remedy.verify.onhost import procs
from remedy.verify.onhost.watch import RunWatch, tail

MARK = "REMEDY-VERIFY"  # first word of each line that we print
MARKER = "REMEDY_VERIFY_RUN"  # the environment variable that all processes of a run carry
TICK = 0.1
LOOK_EVERY = 0.5  # looking through /proc costs milliseconds
BEAT_EVERY = 2.0
GRACE = 2.0  # between TERM and KILL
LINGER = 10.0  # how long a launcher may wait for other hosts once all ranks here are done
NETWORK_LINE = re.compile(r"Using network|NET/\w+ *: Using|Bootstrap *: Using")
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SIGNALS: list[int] = []  # the signals that came; they only end the waiting
LAUNCHER_LOG = "launcher.log"
OUTPUT_LINES = 8192  # of what an engine prints as its proof: a line a rank, and one a size
# A rank of an engine: it finds its modules beside itself, also where Python is set to be careful.
WORKER = """\
import sys
sys.path.insert(0, {directory!a})
from {worker} import main
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
                remaining = end - time.monotonic()
                if remaining <= 0:
                    return
                select.select([], [1], [], remaining)
            except OSError:
                self.broken = True

    def heard(self) -> bool:
        """Say whether somebody still holds the other end of our standard output; waits one tick."""
        poll = select.poll()
        poll.register(1, 0)
        return not self.broken and not poll.poll(TICK * 1000)


def unfit(config: dict[str, Any], engine: Any) -> tuple[str, str] | None:
    """Find out why this host cannot take part, as (how, detail), before anything is started."""
    lacking: tuple[str, str] | None = engine.unfit(config)
    if lacking:
        return lacking
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


def launch(config: dict[str, Any], directory: str, engine: Any) -> subprocess.Popen[bytes]:
    """Start what the engine runs on this host."""
    command, extra = engine.command(config, directory)
    environment = dict(os.environ)
    environment[MARKER] = host_marker(config).partition("=")[2]
    # Everything that is written by the way goes with the folder, and nothing into an installation.
    environment.update(TMPDIR=directory, PYTHONDONTWRITEBYTECODE="1")
    for name, value in (
        ("OMP_NUM_THREADS", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NET,ENV"),
    ):
        environment.setdefault(name, value)
    environment.update(extra)
    with open(f"{directory}/{LAUNCHER_LOG}", "wb") as log:  # noqa: PTH123
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


def host_marker(config: dict[str, Any]) -> str:
    """Give the ``NAME=value`` that this host's processes of a run carry.

    A host's own: where two share their processes (a machine that stands twice in the inventory, containers with
    the host's process ids), the first to end must not end those of the other.
    """
    return f"{MARKER}={config['nonce']}.{config['node']}"


def unload(cargo: dict[str, str], config: dict[str, Any], worker: str) -> None:
    """Write what the engine's processes run into the folder of the run.

    Args:
        cargo: sources by the full names of modules; "" is a package.
        config: what they are given.
        worker: the module whose ``main`` is a rank.
    """
    directory = config["directory"]
    for name, text in cargo.items():
        path = f"{directory}/{name.replace('.', '/')}"
        if not text:
            os.makedirs(path)  # noqa: PTH103
        with open(f"{path}.py" if text else f"{path}/__init__.py", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)
    with open(f"{directory}/worker.py", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(WORKER.format(directory=directory, worker=worker))
    with open(f"{directory}/config.json", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(json.dumps(config))


def watch(
    config: dict[str, Any], out: Out, observed: RunWatch, run: subprocess.Popen[bytes]
) -> str:
    """Wait for the end of the run, and return how it came: the first of what ends it."""
    parent = config["parent"]
    end = config["began"] + config["deadline"]
    checked = beat = 0.0
    finished = None
    while not SIGNALS:
        if run.poll() is not None:
            return "exited"
        now = time.monotonic()
        if now > end:
            return "deadline"
        if now - checked > LOOK_EVERY:
            checked = now
            observed.look()
            phases = [value.get("phase", "") for value in observed.read("phase").values()]
            if config["backend"] in ("nccl", "auto"):
                observed.progress(phases, now)
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


def report(
    out: Out, observed: RunWatch, config: dict[str, Any], engine: Any, code: int | None
) -> None:
    """Queue a record for each rank, and one for the launcher."""
    phases, results, errors = (
        observed.read("phase"),
        observed.read("result"),
        observed.read("error"),
    )
    missing, processes = observed.read("missing"), observed.read("process")
    launcher = "\n".join(tail(f"{observed.directory}/{LAUNCHER_LOG}", 400))
    codes = {int(rank): int(number) for number, rank in EXIT_CODE.findall(launcher)}
    for rank in range(config["ranks"]):
        result = results.get(rank)
        network: list[str] = []
        log: list[str] = []
        for path in glob.glob(f"{observed.directory}/{engine.LOGS.format(rank=rank)}"):  # noqa: PTH207
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
            process=processes.get(rank),
            exit_code=codes.get(rank),
            state=observed.states.get(rank, ""),
            network=network[:4],
            log=log,
        )
    whole = len(results) == config["ranks"]
    log = [] if whole else tail(f"{observed.directory}/{LAUNCHER_LOG}")
    # Of an engine whose proof is what it prints.
    path = getattr(engine, "OUTPUT", "")
    output = tail(f"{observed.directory}/{path}", OUTPUT_LINES) if path else []
    out.say("launcher", exit_code=code, log=log, output=output)


def take_part(
    config: dict[str, Any], out: Out, observed: RunWatch, cargo: dict[str, str], engine: Any
) -> str:
    """Run the engine to its end, whichever it is, and queue what the ranks left; returns how it ended."""
    config["directory"] = observed.directory
    unload(cargo, config, engine.WORKER)
    run = launch(config, observed.directory, engine)
    # In a thread that nobody waits for: a name server that is silent takes its time.
    threading.Thread(target=observed.resolve, daemon=True).start()
    how = watch(config, out, observed, run)
    if how != "exited":
        observed.look()
        observed.note_states(run.pid, config["ranks"])
    procs.end_all(os.getpid(), host_marker(config), {observed.guard}, GRACE)
    report(out, observed, config, engine, run.poll())
    for path in observed.shm:
        # Segments that the workers could not unlink because they were killed.
        if os.path.exists(path):  # noqa: PTH110
            os.unlink(path)  # noqa: PTH108
    return how


def main(config: dict[str, Any], cargo: dict[str, str]) -> None:
    """Run this host's part, and print how it went.

    Args:
        config: the host's part of the plan, as ``launch.config`` makes it.
        cargo: the sources that travelled, by the full names of modules.
    """
    config["parent"] = os.getppid()
    config["began"] = time.monotonic()
    for number in ENDING:
        signal.signal(number, lambda number, _: SIGNALS.append(number))
    out = Out(config["nonce"])
    procs.prctl(procs.PR_SET_PDEATHSIG, signal.SIGTERM)
    procs.prctl(procs.PR_SET_CHILD_SUBREAPER, 1)
    engine = importlib.import_module(f"remedy.verify.onhost.engines.{config['engine']}")
    how, detail = unfit(config, engine) or ("ready" if config["only_look"] else "", "")
    observed = RunWatch("")
    remaining: list[int] = []
    if not how:
        try:
            observed.directory = tempfile.mkdtemp(prefix="remedy-verify-")
            observed.guard, leash = guard(observed.directory, host_marker(config))
            how = take_part(config, out, observed, cargo, engine)
        except OSError as error:
            how, detail = "no-space", f"{type(error).__name__}: {error}"
        finally:
            if observed.guard:
                remaining = procs.end_all(os.getpid(), host_marker(config), {observed.guard}, 0.0)
                shutil.rmtree(observed.directory, ignore_errors=True)
                os.write(leash, b".")
                os.waitpid(observed.guard, 0)
    out.say(
        "end",
        how=how,
        detail=detail,
        python=sys.executable,
        hostname=socket.gethostname(),
        seconds=round(time.monotonic() - config["began"], 3),
        name_address=observed.name_address,
        unanswered=observed.unanswered(),
        links=sorted(observed.links),
        missed=sorted(observed.missed.items()),
        remaining=remaining,
    )
    out.flush(10.0)
    os.set_blocking(1, True)
