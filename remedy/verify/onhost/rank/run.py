"""The way of a rank through all phases, the same for every engine.

It travels to the hosts: standard library only, Python >= 3.8. Nothing is believed because a program exits
with 0: a rank leaves facts, from which the controller works the verdict out by itself.
"""

from __future__ import annotations

from typing import Callable  # noqa: UP035  (Python 3.8)

from remedy.verify.onhost.rank.group import Group
from remedy.verify.onhost.rank.proof import prove
from remedy.verify.onhost.rank.rank import Rank, end


def run(rank: Rank, join: Callable[[], Group], check: Callable[[], None] | None = None) -> None:
    """Go through all phases, leave the result, and end.

    Args:
        rank: this one.
        join: makes the group; it may raise what it likes.
        check: the engine's own test, which raises where it fails; it comes after the proof.
    """
    rank.reach("started")
    try:
        group = join()
        rank.rank = group.rank
        rank.reach("group")
        group.meet()
        rank.reach("barrier")
        result = prove(rank, group)
        if check:
            check()
            result["engine_check"] = True
        rank.reach("done")
        rank.leave("result", {**result, "times": rank.times})
        group.leave()
    except BaseException as error:
        rank.fail(error)
    end(0)
