"""What each host reports of its part: framed lines, parsed by a strict schema.

A line counts only with the run's own nonce: what an earlier run left in a pipe, or what a host prints by
itself, is not a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from remedy.answers import read_answer
from remedy.bounds import read_json
from remedy.transport import Output
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.onhost.agent import MARK
from remedy.verify.scripts import why_silent
from remedy.verify.verdict import Backend

# In the order in which a rank goes through them; "" is a rank that never ran.
PHASES = ("", "started", "inside", "rendezvous", "group", "barrier", "reduced", "paired", "done")


class HostMessage(BaseModel):
    """A record that came from a host: read from JSON, strictly, and never with NaN for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class RankIdentity(HostMessage):
    """Who a rank says it is; ``software`` is what summed, where that is not torch; ``step`` is of Slurm."""

    hostname: str
    boot_id: str
    torch: str = ""
    nccl: str = ""
    software: str = ""
    device: str
    step: str = ""


class Sum(HostMessage):
    """The proof: the digest of the summed vector, and the ranks whose place in it was not right."""

    digest: str
    missing: tuple[int, ...]


class Measurement(HostMessage):
    """One size of the sweep, as ``onhost.rank.sweep.measure`` gives it."""

    bytes: int
    rounds: int
    seconds: float
    exact: bool
    spread: float = 0.0
    out_of_place: float = 0.0


class Exchange(HostMessage):
    """What a rank exchanged with one of another host: bytes in either direction, and seconds for both."""

    rank: int
    bytes: int
    seconds: float


class RankResult(HostMessage):
    """All that a rank leaves which came to its end."""

    nonce: str
    rank: int
    local_rank: int
    world: int
    backend: Backend
    unusable: Mapping[int, str]
    identity: RankIdentity
    sum: Sum
    members: tuple[tuple[int, str, str], ...] | None
    members_digest: str
    sweep: tuple[Measurement, ...]
    times: Mapping[str, float]
    inside: float | None = None
    engine_check: bool = False
    pairs: tuple[Exchange, ...] = ()


class RankError(HostMessage):
    """What a rank raised, and the last phase it had reached."""

    phase: str
    text: str
    long: str


class ProcessIdentity(HostMessage):
    """Who a rank was before it became a program that leaves nothing but what it prints."""

    nonce: str
    rank: int
    pid: int
    hostname: str
    boot_id: str
    step: str = ""


class RankReport(HostMessage):
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
    result: RankResult | None
    error: RankError | None
    missing: tuple[int, ...]
    process: ProcessIdentity | None = None
    exit_code: int | None
    state: str = ""
    network: tuple[str, ...]
    log: tuple[str, ...]


class LauncherReport(HostMessage):
    """How the launcher ended (None: by our hand), and what an engine printed as its proof."""

    kind: Literal["launcher"]
    exit_code: int | None
    log: tuple[str, ...]
    output: tuple[str, ...] = ()


class EndReport(HostMessage):
    """How the agent ended, and what it saw of the network.

    Args:
        how: "exited" is torchrun's own end; all others are named by what ended the run.
        name_address: the address that the host's own name has there, or why it has none.
        unanswered: (address, port, seconds) of connections that nobody answered.
        links: (own address, peer's address) of the connections that stood.
        remaining: processes that could not be ended.
        missed: ranks that NCCL's own RAS service missed during a hang, and how (``ras_answer.missing``).
    """

    kind: Literal["end"]
    how: str
    detail: str = ""
    python: str = ""
    hostname: str = ""
    name_address: str = ""
    seconds: float = 0.0
    unanswered: tuple[tuple[str, int, float], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    remaining: tuple[int, ...] = ()
    missed: tuple[tuple[int, Literal["dead", "unresponsive", "missing", "behind"]], ...] = ()


class AgentReport(HostMessage):
    """Everything one host reported in this run.

    Args:
        end: None where nothing of it arrived.
        failure: why there is no report: the transport's error, or what could not be read.
    """

    host: str
    end: EndReport | None = None
    ranks: tuple[RankReport, ...] = ()
    launcher: LauncherReport | None = None
    failure: str = ""

    @property
    def results(self) -> list[RankResult]:
        """The results of the ranks that came to their end."""
        return [rank.result for rank in self.ranks if rank.result is not None]

    @property
    def silence(self) -> str:
        """``failure``, without the host's name before it."""
        return self.failure.removeprefix(f"{self.host}: ")

    @property
    def least_phase(self) -> str:
        """The phase of the rank that is farthest behind."""
        return min((rank.phase for rank in self.ranks), key=phase_index, default="")


def phase_index(phase: str) -> int:
    """Return the place of a phase; an unknown word counts as never run."""
    return PHASES.index(phase) if phase in PHASES else 0


def read_reports(plan: RankPlan, outputs: Mapping[str, Output]) -> dict[str, AgentReport]:
    """Parse what the hosts of a plan printed; never raises.

    Args:
        plan: what was run.
        outputs: by host name; for one that is missing here the transport has nothing at all.
    """
    return {
        host.name: read_report(host.name, plan.nonce, outputs.get(host.name)) for host in plan.hosts
    }


def read_report(host: str, nonce: str, output: Output | None) -> AgentReport:
    """Parse one host's output; never raises.

    Args:
        host: its name.
        nonce: of this run.
        output: None where the transport has nothing at all for the host.
    """
    end: EndReport | None = None
    launcher: LauncherReport | None = None
    ranks: dict[int, RankReport] = {}
    answer = read_answer(output.stdout if output else "", nonce, mark=MARK)
    try:
        for text in answer.lines:
            kind = read_json(text)["kind"]
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
        return AgentReport(host=host, failure=f"its report cannot be read ({reason})")
    return AgentReport(
        host=host,
        end=end,
        ranks=tuple(ranks[number] for number in sorted(ranks)),
        launcher=launcher,
        failure="" if end else answer.fault or why_silent(output),
    )
