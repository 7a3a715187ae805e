"""What the processes of a verification printed, host by host: for finding out why it failed."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.verify.allreduce.answers import AgentReport


def logs_of(reports: Mapping[str, AgentReport]) -> dict[str, tuple[str, ...]]:
    """Return the lines of each process that printed any, by its name, such as gpu02/rank1.

    Args:
        reports: by host.
    """
    logs: dict[str, tuple[str, ...]] = {}
    for name, report in reports.items():
        for rank in report.ranks:
            raised = rank.error.long.splitlines() if rank.error else []
            lines = [*rank.network, *rank.log]
            lines += [line for line in raised if line not in lines]
            logs[f"{name}/rank{rank.local_rank}"] = tuple(lines)
        logs[f"{name}/launcher"] = report.launcher.log if report.launcher else ()
        logs[f"{name}/network"] = tuple(
            f"no answer from {address} port {port} for {waited:g} s"
            for address, port, waited in (report.end.unanswered if report.end else ())
        )
    return {name: lines for name, lines in logs.items() if lines}
