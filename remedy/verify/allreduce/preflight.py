"""Before an engine is started anywhere: can every host take part?

torch is looked for by its own launch, at no cost. Of the other engines one host without them would leave all
others waiting, so each host is asked first.
"""

from __future__ import annotations

from collections.abc import Mapping

from remedy.verify.allreduce.answers import read
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan, script
from remedy.verify.allreduce.run import Run
from remedy.verify.verdict import Culprit, Rung, Verdict, impossible

SECONDS = 40.0  # for a look: an interpreter or two, and the engine's own --version


def ask(run: Run, plan: RankPlan) -> dict[str, str]:
    """What keeps each host from taking part, in words; empty where nothing does."""
    from remedy.transport import Script

    texts = {
        host.name: Script(script(plan, node, only_look=True), SECONDS)
        for node, host in enumerate(plan.hosts)
    }
    outputs = run(texts)
    found: dict[str, str] = {}
    for name in texts:
        report = read(name, plan.nonce, outputs.get(name))
        if report.end is None:
            found[name] = report.lost.removeprefix(f"{name}: ")
        elif report.end.how == "no-python":
            found[name] = f"no Python 3.8 or newer was found {report.end.detail}".rstrip()
        elif report.end.how != "ready":
            found[name] = report.end.detail or report.end.how
    return found


def refusal(plan: RankPlan, lacking: Mapping[str, str]) -> tuple[Rung, Verdict]:
    """The rung and the verdict where some hosts cannot take part.

    Args:
        plan: what should have run.
        lacking: what each of them lacks, from ``ask``.
    """
    engine = ENGINES[plan.engine]
    by_text: dict[str, list[str]] = {}
    for name, text in lacking.items():
        by_text.setdefault(text, []).append(name)
    reason = f"the engine {engine.name} ({engine.title}) cannot run: " + "; ".join(
        f"{names(hosts)}: {text}" for text, hosts in by_text.items()
    )
    causes = tuple(
        Culprit(what=names(hosts), hosts=tuple(hosts), reason=text, next_step=engine.install)
        for text, hosts in by_text.items()
    )
    verdict = impossible(plan, reason, lacking).model_copy(update={"causes": causes})
    return Rung(name="engine", passed=False, said=reason), verdict
