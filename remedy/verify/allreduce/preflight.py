"""Before an engine is started anywhere: whether every host can take part.

torch is looked for by its own launch, at no cost. Of the other engines one host without them would leave all
others waiting, so each host is asked first.
"""

from __future__ import annotations

from collections.abc import Mapping

from remedy.text import folded
from remedy.verify.allreduce.answers import AgentReport, read_reports
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.judge import impossible
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.script import scripts
from remedy.verify.scripts import Run, run_texts
from remedy.verify.verdict import Culprit, Rung, Verdict

SECONDS = 40.0  # for the check: an interpreter or two, and the engine's own --version


def lacks(run: Run, plan: RankPlan) -> dict[str, str]:
    """Ask what keeps each host from taking part, in words; empty where nothing does."""
    if ENGINES[plan.engine].name == "torch":
        return {}
    texts = {host: (text, SECONDS) for host, text in scripts(plan, only_look=True).items()}
    reports = read_reports(plan, run_texts(run, texts))
    return {name: lack for name, report in reports.items() if (lack := _lack(report))}


def _lack(report: AgentReport) -> str:
    if report.end is None:
        return report.silence
    if report.end.how == "no-python":
        return f"no Python 3.8 or newer was found {report.end.detail}".rstrip()
    return "" if report.end.how == "ready" else report.end.detail or report.end.how


def refusal(plan: RankPlan, lacking: Mapping[str, str]) -> tuple[Rung, Verdict]:
    """Return the rung and the verdict where some hosts cannot take part.

    Args:
        plan: what was to run.
        lacking: what each of them lacks, from ``lacks``.
    """
    engine = ENGINES[plan.engine]
    by_text: dict[str, list[str]] = {}
    for name, text in lacking.items():
        by_text.setdefault(text, []).append(name)
    words = "; ".join(f"{folded(hosts)}: {text}" for text, hosts in by_text.items())
    reason = f"the engine {engine.name} ({engine.title}) cannot run: {words}"
    culprits = tuple(
        Culprit(name=folded(hosts), hosts=tuple(hosts), reason=text, next_step=engine.install)
        for text, hosts in by_text.items()
    )
    verdict = impossible(plan, reason, lacking).model_copy(update={"culprits": culprits})
    return Rung(name="engine", passed=False, message=reason), verdict
