"""Which changes of a plan file remedy would make itself: they are made again from the state, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from remedy.plan.change import Change
from remedy.plan.plan import Plan


def vouched(plan: Plan, current: Plan) -> Mapping[tuple[str, str], bool]:
    """Return for each change, by host and id, whether remedy makes the same for the host as it is now.

    Compared is all of it, the words as well: a change that is called low risk, and is not, is not the same. Nor
    is one that stands there twice, before the one that remedy makes first, or under another id.

    Args:
        plan: a saved one, from anybody.
        current: what remedy decides for the hosts as they were just read.
    """
    result: dict[tuple[str, str], bool] = {}
    for host in plan.hosts:
        made = [_meaning(change) for change in current.for_host(host)]
        place = 0
        for number, change in enumerate(plan.for_host(host), 1):
            meaning = _meaning(change)
            is_made = meaning in made[place:] and change.id == f"{number:02d}-{change.remedy}"
            result[host, change.id] = is_made
            place = made.index(meaning, place) + 1 if is_made else place
    return result


def vouched_findings(plan: Plan, current: Plan) -> tuple[bool, ...]:
    """Return for each finding of a plan whether remedy finds the same on the host as it is now, once."""
    made = Counter(finding.model_dump_json() for finding in current.findings)
    result = []
    for finding in plan.findings:
        text = finding.model_dump_json()
        result.append(made[text] > 0)
        made[text] -= 1
    return tuple(result)


def _meaning(change: Change) -> str:
    """Return a change without its number: of a plan for one remedy it has a different one."""
    return change.model_dump_json(exclude={"id"})
