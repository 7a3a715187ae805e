"""The state that a plan promises: what a second probe will find when the plan was carried out.

It lets planning be checked against itself, without hosts: what a plan promises must need no plan.
"""

from __future__ import annotations

from remedy.plan.change import Change, FileAction
from remedy.plan.fleet import Fleet
from remedy.plan.plan import Plan
from remedy.plan.registry import find_remedy
from remedy.probe import File, HostState


def promised(fleet: Fleet, plan: Plan) -> Fleet:
    """Return the fleet as it is once ``plan`` was carried out.

    Args:
        fleet: the fleet that the plan was made for.
        plan: its changes, in order; also those of an inverse plan.
    """
    states = dict(fleet.states)
    for name in plan.hosts:
        for change in plan.for_host(name):
            states[name] = after(states[name], change, plan)
    return Fleet(fleet.inventory, states, fleet.spec, fleet.missing)


def after(state: HostState, change: Change, plan: Plan) -> HostState:
    """Return a host as it is once one change of ``plan`` was carried out."""
    action = change.action
    if isinstance(action, FileAction):
        old = state.files.get(action.path)
        file = File(
            path=action.path,
            real_path=action.real_path,
            exists=action.after is not None,
            content=b"" if action.after is None else plan.contents[action.after],
            mode=old.mode if isinstance(old, File) and old.exists else action.mode,
        )
        state = state.model_copy(update={"files": {**state.files, action.path: file}})
    promise = find_remedy(change.remedy).promise
    return state if promise is None else promise(state, change)
