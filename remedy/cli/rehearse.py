"""The rehearsal of ``remedy apply --rehearse``: what would become of each change; nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from remedy.cli.common import Session, print_json
from remedy.text import counted

if TYPE_CHECKING:
    from remedy.apply.report import HostReport
    from remedy.audit.agreement import Agreement
    from remedy.errors import RemedyError
    from remedy.plan import Plan

STYLES = {"ready": "green", "already": "green", "skipped": "yellow"}


def rehearse(
    session: Session,
    plan: Plan,
    agreement: Agreement | None,
    absent: Mapping[str, RemedyError],
) -> int:
    """Ask each host of a plan whether it could be carried out there, show that and record it.

    Args:
        session: the hosts.
        plan: the part that would be carried out.
        agreement: the saved plan that it is of, None for one that was made just now.
        absent: the hosts that could not be read.

    Returns:
        the exit code: what an apply of this plan would end with, as far as that is known before.
    """
    from remedy.apply.outcome import exit_code_of, most_severe
    from remedy.apply.start import new_run_id
    from remedy.audit.agreement import titles

    run = new_run_id()
    with session.stage(f"Rehearsing on {counted(len(plan.hosts), 'host')}"):
        reports = session.pipeline.rehearse(plan, run)
    errors = {
        **absent,
        **{name: report.error for name, report in reports.items() if report.error is not None},
    }
    codes = [error.exit_code for error in errors.values()]
    code = most_severe([exit_code_of(reports.values()), *codes])
    digest = plan.digest if agreement is None else agreement.plan.digest
    session.note(
        "rehearsal",
        "rehearsed",
        run=run,
        digest=digest,
        changes=titles(plan),
        hosts={name: report.record() for name, report in reports.items()},
        exit_code=code,
    )
    if session.options.as_json:
        print_json(
            {
                "schema": "remedy.rehearsal/1",
                "run": run,
                "plan": digest,
                "hosts": {name: _told(report) for name, report in reports.items()},
                "errors": {name: error.message for name, error in errors.items()},
                "exit_code": code,
            }
        )
    else:
        _show(session, reports, errors)
    return code


def _told(report: HostReport) -> dict[str, object]:
    return {
        "refused": report.refused,
        "changes": [result.model_dump(mode="json") for result in report.results.values()],
    }


def _show(
    session: Session, reports: Mapping[str, HostReport], errors: Mapping[str, RemedyError]
) -> None:
    """Show what would become of each change, hosts that share it together."""
    from remedy.text import fold

    groups: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for host, report in reports.items():
        for result in report.results.values():
            groups[(result.id, result.status.value, result.detail, result.lines)].append(host)
    for (change, status, detail, lines), hosts in groups.items():
        line = Text(f"{status:<12}", style=STYLES.get(status, "red"))
        line.append(f"{fold(hosts)}: {change}", style="default")
        session.console.print(line.append(f": {detail}" if detail else "", style="default"))
        for text in lines:
            session.console.print(Text(f"    {text}", style="dim"))
    for host, report in reports.items():
        if report.refused:
            session.console.print(Text(f"{host}: refused: {report.refused}", style="red"))
    for error in errors.values():
        session.console.print(Text(error.message, style="red"))
        if error.next_step:
            session.console.print(Text(f"  {error.next_step}", style="cyan"))
    session.console.print("rehearsed: nothing was written on any host", markup=False)
