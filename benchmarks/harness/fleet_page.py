"""The figures of the fleet's benchmark that are compared, and the page that shows them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.figures import Goal, Spread, ratio
from benchmarks.harness.report import Results, as_markdown

PROBE_RUNS = 20
PROBE_HOSTS = 3
PROBE_TITLE = f"CPU time of one probe ({PROBE_RUNS} runs on each of {PROBE_HOSTS} hosts)"
METHOD = Path(__file__).parents[1] / "fleet" / "method.md"


def goals(results: Results, probe_milliseconds: Spread) -> list[Goal]:
    """Return the figures that are compared, from the samples and the CPU time of a probe."""
    first = {key: [s.seconds for s in samples] for key, samples in results.first.items()}
    again = {key: [s.seconds for s in samples] for key, samples in results.again.items()}
    mine = [*results.first["remedy"], *results.again["remedy"]]
    to_ansible = ratio(again["remedy"], again["ansible"]) if "ansible" in again else None
    return [
        Goal("nothing to do: remedy / floor (a)", 1.3, "", ratio(again["remedy"], again["floor"])),
        Goal(
            "nothing to do: remedy / pyinfra operations (b)",
            0.4,
            "",
            ratio(again["remedy"], again["pyinfra"]),
        ),
        Goal(
            "nothing to do: remedy / pyinfra --yes",
            None,
            "",
            ratio(again["remedy"], again["pyinfra-yes"]),
        ),
        Goal("nothing to do: remedy / ansible-core (c)", 1 / 25, "", to_ansible, digits=3),
        Goal(
            "fresh hosts: remedy / pyinfra operations (b)",
            0.7,
            "",
            ratio(first["remedy"], first["pyinfra"]),
        ),
        Goal(
            "fresh hosts: remedy / pyinfra --yes",
            None,
            "",
            ratio(first["remedy"], first["pyinfra-yes"]),
        ),
        Goal(
            PROBE_TITLE,
            60,
            " ms",
            probe_milliseconds,
            digits=0,
        ),
        Goal(
            "peak memory of the controller, the highest counts",
            150,
            " MiB",
            Spread.of([s.peak_mib for s in mine]),
            digits=0,
            worst=True,
        ),
    ]


def probe_time(results: Results) -> Spread:
    """Return the CPU time of a probe among the figures of a run, of which the samples are not kept."""
    return next(goal.result for goal in results.goals if goal.title == PROBE_TITLE and goal.result)


def page(results: Results) -> str:
    """Return the page of the results, with how they were measured."""
    return as_markdown(results, METHOD.read_text(encoding="utf-8"))
