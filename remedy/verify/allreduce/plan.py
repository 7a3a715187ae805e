"""From a plan of ranks to the shell text that each host runs; pure but for the nonce and the port.

One command a host: a POSIX shell finds an interpreter that has torch and becomes the agent, whose text,
together with the worker's, travels in the same script. Nothing is installed, and nothing is quoted by hand.
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Sequence
from random import SystemRandom
from typing import Literal, get_args

from pydantic import Field

from remedy.errors import SpecError
from remedy.spec import EngineName, VerifySpec
from remedy.spec.verify import PORTS
from remedy.values import Record
from remedy.verify.allreduce import bandwidth as mark
from remedy.verify.allreduce.engines import ENGINES, Backend
from remedy.verify.onhost.agent import GRACE, MARK
from remedy.verify.packing import start

# Where torch is often found when the user's own ``python3`` has none; the first that has it is taken.
INTERPRETERS = (
    "python3",
    "python",
    '"$VIRTUAL_ENV/bin/python"',
    '"$CONDA_PREFIX/bin/python"',
    "/opt/conda/bin/python3",
    "/opt/miniconda3/bin/python3",
    "/opt/venv/bin/python3",
    "/usr/local/bin/python3",
    '"$HOME/miniconda3/bin/python3"',
    '"$HOME/anaconda3/bin/python3"',
    '"$HOME/.venv/bin/python3"',
)
# Bytes that are measured where the user names none: to a size that fills the links of the day.
CPU_SIZES = (8, 65_536, 1_048_576, 16_777_216)
GPU_SIZES = (8, 1_048_576, 33_554_432, 268_435_456, 1_073_741_824)
# Beyond the agent's own deadline: finding the interpreter, killing, and the last lines on their way.
MARGIN = 15.0 + GRACE


class Candidate(Record):
    """A host that shall take part: its name, its cluster address, and how many GPUs it has (0: none)."""

    name: str
    address: str
    gpus: int = 0
    python: str | None = None


class RankHost(Record):
    """One host of a plan: where it is, how many ranks it runs and by which interpreter."""

    name: str
    address: str
    ranks: int
    python: str | None = None


class RankPlan(Record):
    """Who takes part in one verification, and how it is started.

    Args:
        nonce: 16 hexadecimal digits, new for each run: results with another one are not this run's.
        hosts: in rank order; the first holds the rendezvous.
        port: TCP port of the rendezvous.
        deadline: seconds after which each host ends its part by itself.
        backend: what the proof must run on; "nccl" where every host has GPUs.
        engine: what runs it.
        secret: known to this run's hosts alone; what one of them tells another is signed with it.
        sizes: bytes to measure; None fits them to the device.
        min_busbw: GB/s that the largest size must reach.
        all_reduce_perf: where nccl-tests' program is; "" looks for it.
        unjudged: why the bandwidth cannot be judged, although the user gave a mark; a run then fails.
        limit: GB/s that the slowest host's links can carry, where it is known.
    """

    nonce: str
    hosts: tuple[RankHost, ...]
    port: int
    deadline: float
    backend: Backend | Literal["auto"]
    engine: EngineName = "torch"
    secret: str = Field(default="", repr=False)
    all_reduce_perf: str = ""
    sizes: tuple[int, ...] | None = None
    min_busbw: float | None = None
    unjudged: str = ""
    limit: float | None = None

    @property
    def world(self) -> int:
        """How many ranks there are in all."""
        return sum(host.ranks for host in self.hosts)

    def sizes_on(self, backend: Backend) -> tuple[int, ...]:
        """The bytes that are measured, rising: whole float32 numbers, so multiples of four."""
        wanted = self.sizes or (GPU_SIZES if backend == "nccl" else CPU_SIZES)
        return tuple(sorted({size - size % 4 for size in wanted}))

    @property
    def rank_hosts(self) -> tuple[str, ...]:
        """The host name of each rank."""
        return tuple(host.name for host in self.hosts for _ in range(host.ranks))


def default_deadline(hosts: int) -> float:
    """Seconds that a healthy run of this many hosts never needs: importing torch twice dominates.

    A healthy run of 3 hosts on 2 shared cores takes about 12 s; four that were starved of processor time had
    not imported it after 45. A broken one ends only at the deadline.
    """
    return min(90.0 + hosts, 300.0)


def plan_ranks(
    candidates: Sequence[Candidate],
    spec: VerifySpec | None = None,
    limit: float | None = None,
    unknown: Sequence[str] = (),
) -> RankPlan:
    """Decide how many ranks run where, on which port and backend.

    Args:
        candidates: in the order of the ranks.
        spec: what the user said.
        limit: GB/s that the slowest host can carry, where it is known.
        unknown: the hosts whose limit is not known.

    Raises:
        SpecError: a number in the spec is not possible.
    """
    spec = spec or VerifySpec()
    if spec.ranks_per_host != "auto" and spec.ranks_per_host < 1:
        raise SpecError(
            f"verify.ranks_per_host is {spec.ranks_per_host}", next_step="Give 1 or more."
        )
    if spec.sizes is not None and (not spec.sizes or min(spec.sizes) < 4):
        raise SpecError("verify.sizes needs sizes of 4 bytes or more", next_step="Leave it out.")
    engine = ENGINES[spec.engine]
    counts = [host.gpus for host in candidates]
    backend: Backend | Literal["auto"] = engine.backend or spec.backend
    if backend == "auto":
        # Where some hosts have GPUs and some have none, the ranks agree among themselves.
        backend = "nccl" if counts and all(counts) else "auto" if any(counts) else engine.cpu
    # One rank a host wherever the world is not all GPUs: CPU ranks prove nothing more by number.
    each = [count if backend == "nccl" else 1 for count in counts]
    if spec.ranks_per_host != "auto":
        each = [spec.ranks_per_host] * len(each)
    return RankPlan(
        nonce=secrets.token_hex(8),
        hosts=tuple(
            RankHost(
                name=host.name,
                address=host.address,
                ranks=max(1, ranks),
                python=host.python or spec.python,
            )
            for host, ranks in zip(candidates, each, strict=True)
        ),
        port=spec.port or SystemRandom().choice(PORTS),
        deadline=spec.deadline or default_deadline(len(candidates)) + engine.patience,
        backend=backend,
        engine=spec.engine,
        secret=secrets.token_hex(16),
        all_reduce_perf=spec.all_reduce_perf or "",
        sizes=spec.sizes,
        min_busbw=mark.in_gbps(spec.min_busbw, limit),
        unjudged=mark.unjudged(spec.min_busbw, limit, unknown),
        limit=limit,
    )


def config(plan: RankPlan, node: int) -> dict[str, object]:
    """What one host's agent and workers are told; all times in seconds."""
    host = plan.hosts[node]
    return {
        "nonce": plan.nonce,
        "node": node,
        "nodes": len(plan.hosts),
        "ranks": host.ranks,
        "alike": len({host.ranks for host in plan.hosts}) == 1,
        "address": host.address,
        "master": plan.hosts[0].address,
        "port": plan.port,
        "engine": ENGINES[plan.engine].module,
        "only_look": False,
        "secret": plan.secret,
        "all_reduce_perf": plan.all_reduce_perf,
        "world": plan.world,
        # What the one that starts the others has to know of them.
        "hosts": [[one.address, one.ranks] for one in plan.hosts] if node == 0 else [],
        "backend": plan.backend,
        # The ranks agree on the backend only when they have met.
        "sizes": {name: plan.sizes_on(name) for name in get_args(Backend)},
        "deadline": plan.deadline,
        # Joining and grouping end before the deadline, so that torch's own words can still be heard.
        "join_seconds": max(8.0, plan.deadline * 0.5),
        "group_seconds": max(5.0, plan.deadline * 0.3),
        "sweep_seconds": min(20.0, plan.deadline * 0.1),
    }


# Says "torch" (or whichever the engine needs) where it is installed; its package is looked for, not imported:
# that costs a second. The first entry of the path is the working directory, where a folder called torch may be
# anything.
_PROBE = """\
import sys
sys.path.pop(0)
assert sys.version_info >= (3, 8)
from importlib import metadata
found = "bare"
for name in {needs!r}:
    try:
        metadata.version(name)
        found = {word!r}
    except metadata.PackageNotFoundError:
        pass
print(found)
"""


def script(plan: RankPlan, node: int, *, only_look: bool = False) -> str:
    """The POSIX sh text of one host.

    Args:
        plan: the whole run.
        node: the host's place in ``plan.hosts``.
        only_look: whether the host only says if it could take part.
    """
    host = plan.hosts[node]
    engine = ENGINES[plan.engine]
    end = f"REMEDY_{plan.nonce}"
    python = start(engine.cargo, {**config(plan, node), "only_look": only_look})
    word = engine.needs[0] if engine.needs else "bare"
    probe = _PROBE.format(needs=engine.needs, word=word)
    none = json.dumps({"kind": "end", "how": "no-python", "detail": host.python or ""})
    choices = given(host.python) if host.python else " ".join(INTERPRETERS)
    return "\n".join(
        (
            "found= ; bare=",
            f"for python in {choices}; do",
            '  command -v "$python" >/dev/null 2>&1 || continue',
            f'  case $("$python" -c {shlex.quote(probe)} </dev/null 2>/dev/null) in',
            f"    {word}) found=$python; break ;;",
            "    bare) bare=${bare:-$python} ;;",
            "  esac",
            "done",
            "found=${found:-$bare}",
            '[ -n "$found" ] || {',
            f"  printf '%s\\n' {shlex.quote(f'{MARK} {plan.nonce} {none}')}",
            "  exit 0",
            "}",
            # The shell becomes the agent: one process less between it and whoever wants the result.
            f"exec \"$found\" - <<'{end}'",
            f"{python}{end}",
            "",
        )
    )


def given(python: str) -> str:
    """A named interpreter as a shell word; ``~/`` is the home folder, as in an interactive shell."""
    if python.startswith("~/"):
        return f'"$HOME"/{shlex.quote(python[2:])}'
    return shlex.quote(python)


def script_deadline(plan: RankPlan) -> float:
    """Seconds after which the host ends the whole script, should the agent itself be stuck."""
    return plan.deadline + MARGIN
