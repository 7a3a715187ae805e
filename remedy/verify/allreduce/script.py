"""From a plan of ranks to the shell text that each host runs. Pure.

One command a host: a POSIX shell finds an interpreter that has torch and becomes the agent, whose text,
together with the ranks', travels in the same script. Nothing is installed, and nothing is quoted by hand.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import get_args

from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan, join_seconds
from remedy.verify.onhost.agent import GRACE, MARK
from remedy.verify.packing import start
from remedy.verify.scripts import INTERPRETERS, interpreter_text, interpreter_word
from remedy.verify.verdict import Backend

# Beyond the agent's own deadline: finding the interpreter, killing, and the last lines on their way.
MARGIN = 15.0 + GRACE


def config(
    plan: RankPlan, node: int, shared: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Make the configuration of one host's agent and ranks; all times in seconds.

    Args:
        plan: the whole run.
        node: the host's place in ``plan.hosts``.
        shared: from ``shared_config``, where scripts of many hosts are made.
    """
    me = plan.hosts[node]
    return {
        **(shared_config(plan) if shared is None else shared),
        "node": node,
        "ranks": me.ranks,
        "address": me.address,
        # For the host that starts the others.
        "hosts": [[host.address, host.ranks] for host in plan.hosts] if node == 0 else [],
    }


def shared_config(plan: RankPlan) -> dict[str, object]:
    """Make the part of the configuration that all hosts of a run have alike."""
    return {
        "nonce": plan.nonce,
        "nodes": len(plan.hosts),
        "alike": len({host.ranks for host in plan.hosts}) == 1,
        "master": plan.hosts[0].address,
        "port": plan.port,
        "engine": ENGINES[plan.engine].module,
        "only_look": False,
        "secret": plan.secret,
        "all_reduce_perf": plan.all_reduce_perf,
        "world": plan.world,
        "backend": plan.backend,
        # The ranks agree on the backend only when they have met.
        "sizes": {name: plan.sizes_on(name) for name in get_args(Backend)},
        "deadline": plan.deadline,
        # Joining and grouping end before the deadline, so that torch's own messages still arrive.
        "join_seconds": join_seconds(plan.deadline),
        "group_seconds": max(5.0, plan.deadline * 0.3),
        "sweep_seconds": min(20.0, plan.deadline * 0.1),
    }


# Says "torch" (or whichever the engine needs) where it is installed; its package is looked for, not imported:
# that costs a second. The first entry of the path is the working directory, where a folder called torch may be
# anything.
_PROBE = """\
import sys
sys.path.pop(0)
assert sys.version_info >= (3, 8)
from importlib import metadata
found = "bare"
for name in {needs!r}:
    try:
        metadata.version(name)
        found = {word!r}
    except metadata.PackageNotFoundError:
        pass
print(found)
"""


def scripts(plan: RankPlan, *, only_look: bool = False) -> dict[str, str]:
    """Render the texts of all hosts of a run, by name; ``only_look`` as for ``script``."""
    shared = shared_config(plan)
    return {
        host.name: script(plan, node, only_look=only_look, shared=shared)
        for node, host in enumerate(plan.hosts)
    }


def script(
    plan: RankPlan,
    node: int,
    *,
    only_look: bool = False,
    shared: Mapping[str, object] | None = None,
) -> str:
    """Render the POSIX sh text of one host.

    Args:
        plan: the whole run.
        node: the host's place in ``plan.hosts``.
        only_look: whether the host only says if it could take part.
        shared: as for ``config``.
    """
    host = plan.hosts[node]
    engine = ENGINES[plan.engine]
    end = f"REMEDY_{plan.nonce}"
    python = start(engine.cargo, {**config(plan, node, shared), "only_look": only_look})
    word = engine.needs[0] if engine.needs else "bare"
    probe = _PROBE.format(needs=engine.needs, word=word)
    # ``why`` is put in by the shell: it holds no character that JSON reads as more than a letter.
    none = json.dumps({"kind": "end", "how": "no-python", "detail": ""}).removesuffix('"}')
    choices = interpreter_word(host.python) if host.python else " ".join(INTERPRETERS)
    return "\n".join(
        (
            interpreter_text(choices, probe, word),
            "found=${found:-$bare}",
            '[ -n "$found" ] || {',
            f'  printf \'%s%s"}}\\n\' {shlex.quote(f"{MARK} {plan.nonce} {none}")} "$why"',
            "  exit 0",
            "}",
            # The shell becomes the agent: one process less between it and whoever reads the result.
            f"exec \"$found\" - <<'{end}'",
            f"{python}{end}",
            "",
        )
    )


def script_deadline(plan: RankPlan) -> float:
    """Return seconds after which the host ends the whole script, should the agent itself be stuck."""
    return plan.deadline + MARGIN
