"""Which changes of a plan file remedy would make itself: they are made again from the state, and compared."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.plan.change import Change
from remedy.plan.plan import Plan


def vouched(plan: Plan, current: Plan) -> Mapping[tuple[str, str], bool]:
    """Return for each change, by host and id, whether remedy makes the same for the host as it is now.

    Compared is all of it, the words as well: a change that is called low risk, and is not, is not the same.

    Args:
        plan: a saved one, from anybody.
        current: what remedy decides for the hosts as they were just read.
    """
    made = {(change.host, _meaning(change)) for change in current.changes}
    return {(c.host, c.id): (c.host, _meaning(c)) in made for c in plan.changes}


def _meaning(change: Change) -> str:
    """Return a change without its number: of a plan for one remedy it has a different one."""
    return change.model_dump_json(exclude={"id"})
