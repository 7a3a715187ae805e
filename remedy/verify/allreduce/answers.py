"""What one host said about its part: framed lines parsed by a strict schema.

A line counts only with the run's own nonce: what an earlier run left in a pipe, or what a host prints by
itself, is not a result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from remedy.verify.allreduce.engines import Backend
from remedy.verify.onhost.agent import MARK

if TYPE_CHECKING:
    from remedy.transport import Output

# In the order in which a rank goes through them; "" is a rank that never ran.
PHASES = ("", "started", "inside", "rendezvous", "group", "barrier", "reduced", "paired", "done")


class Said(BaseModel):
    """A record that came from a host: read from JSON, strictly, and never with NaN for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Identity(Said):
    """Who a rank says it is; ``software`` is what summed, where that is not torch."""

    hostname: str
    boot_id: str
    torch: str = ""
    nccl: str = ""
    software: str = ""
    device: str


class Sum(Said):
    """The proof: the digest of the summed vector, and the ranks whose place in it was not right."""

    digest: str
    missing: tuple[int, ...]


class Measured(Said):
    """One size of the sweep, as ``onhost.rank.rank.measure`` gives it."""

    bytes: int
    rounds: int
    seconds: float
    exact: bool
    spread: float = 0.0
    out_of_place: float = 0.0


class Exchange(Said):
    """What a rank exchanged with one of another host: bytes in either direction, and seconds for both."""

    rank: int
    bytes: int
    seconds: float


class Result(Said):
    """All that a rank which came to its end leaves."""

    nonce: str
    rank: int
    local_rank: int
    world: int
    backend: Backend
    unusable: Mapping[int, str]
    identity: Identity
    sum: Sum
    members: tuple[tuple[int, str, str], ...] | None
    members_digest: str
    sweep: tuple[Measured, ...]
    times: Mapping[str, float]
    inside: float | None = None
    own_check: bool = False
    pairs: tuple[Exchange, ...] = ()


class Failure(Said):
    """What a rank raised, and the last phase it had reached."""

    phase: str
    text: str
    long: str


class Who(Said):
    """Who a rank was before it became a program that leaves nothing but what it prints."""

    nonce: str
    rank: int
    pid: int
    hostname: str
    boot_id: str


class RankReport(Said):
    """How far one rank came, and what it left.

    Args:
        missing: ranks that it found not to be there any more, before anything was killed.
        exit_code: only where torchrun named one.
        state: of its process when the run was ended from outside: proc_pid_stat(5).
    """

    kind: Literal["rank"]
    local_rank: int
    phase: str
    times: Mapping[str, float]
    result: Result | None
    error: Failure | None
    missing: tuple[int, ...]
    who: Who | None = None
    exit_code: int | None
    state: str = ""
    network: tuple[str, ...]
    log: tuple[str, ...]


class LauncherReport(Said):
    """How the launcher ended (None: by our hand), and what an engine printed as its proof."""

    kind: Literal["launcher"]
    exit_code: int | None
    log: tuple[str, ...]
    output: tuple[str, ...] = ()


class EndReport(Said):
    """How the agent ended, and what it saw of the network.

    Args:
        how: "exited" is torchrun's own end; all others are named by what ended the run.
        own_name: the address that the host's own name has there, or why it has none.
        unanswered: (address, port, seconds) of connections that nobody answered.
        links: (own address, peer's address) of the connections that stood.
        left: processes that could not be ended.
        missed: ranks that NCCL's own RAS service missed during a hang, and how (``ras.missing``).
    """

    kind: Literal["end"]
    how: str
    detail: str = ""
    python: str = ""
    hostname: str = ""
    own_name: str = ""
    seconds: float = 0.0
    unanswered: tuple[tuple[str, int, float], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    left: tuple[int, ...] = ()
    missed: tuple[tuple[int, Literal["dead", "unresponsive", "missing", "behind"]], ...] = ()


class HostReport(Said):
    """Everything one host said in this run; ``end`` is None where it never came to a word.

    ``lost`` says why there is no report: the transport's error, or what could not be read.
    """

    host: str
    end: EndReport | None = None
    ranks: tuple[RankReport, ...] = ()
    launcher: LauncherReport | None = None
    lost: str = ""

    @property
    def least_phase(self) -> str:
        """The phase of the rank that is farthest behind."""
        return min((rank.phase for rank in self.ranks), key=phase_index, default="")


def phase_index(phase: str) -> int:
    """The place of a phase; a word we do not know counts as never run."""
    return PHASES.index(phase) if phase in PHASES else 0


def read(host: str, nonce: str, output: Output | None) -> HostReport:
    """Parse one host's output; never raises.

    Args:
        host: its name.
        nonce: of this run.
        output: None where the transport has nothing at all for the host.
    """
    if output is None:
        return HostReport(host=host, lost="nothing came back")
    end: EndReport | None = None
    launcher: LauncherReport | None = None
    ranks: dict[int, RankReport] = {}
    for line in output.stdout.splitlines():
        mark, _, rest = line.partition(" ")
        own, _, text = rest.partition(" ")
        if mark != MARK or own != nonce:
            continue
        try:
            kind = json.loads(text)["kind"]
            if kind == "rank":
                rank = RankReport.model_validate_json(text)
                if rank.local_rank in ranks:
                    raise ValueError(f"two reports of local rank {rank.local_rank}")
                ranks[rank.local_rank] = rank
            elif kind == "launcher":
                launcher = LauncherReport.model_validate_json(text)
            elif kind == "end":
                end = EndReport.model_validate_json(text)
        except (ValueError, KeyError, TypeError) as error:
            reason = str(error).splitlines()[0]
            return HostReport(host=host, lost=f"its report cannot be read ({reason})")
    lost = ""
    if end is None:
        last = output.stderr.strip().splitlines()[-1:]
        lost = output.error.message if output.error else (last or ["it ended without a report"])[0]
    return HostReport(
        host=host,
        end=end,
        ranks=tuple(ranks[number] for number in sorted(ranks)),
        launcher=launcher,
        lost=lost,
    )
