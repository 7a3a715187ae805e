"""The receipts of a run: what the host itself noted of each step, for when the controller heard no answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from remedy.answers import read_block
from remedy.apply.script import ROOT
from remedy.bounds import read_json
from remedy.plan.identities import machine_mark

MARK = "remedy-receipts"
AT_WORK = "at-work"
# A run notes two lines a change and five of its own.
LINES = 2000

# A line of the host's own making could hold anything; these hold nothing but what a run writes.
_ID = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_TIME = re.compile(r"[0-9TZ:.+-]{1,40}")

# Whether the script of run $RUN holds the lock: its process is there, and began when the owner says (lock.sh).
_AT_WORK = f"""\
set -f
set -- $(readlink {ROOT}/owner)
if [ "${{2-}}" = "$RUN" ] && read -r boot </proc/sys/kernel/random/boot_id && [ "${{3-}}" = "$boot" ] &&
    {{ read -r stat <"/proc/$4/stat"; }} 2>/dev/null; then
    set -- "$5" ${{stat##*\\) }}
    [ "$1" != "${{21-}}" ] || work={AT_WORK}
fi
"""


@dataclass(frozen=True)
class Receipts:
    """What a host noted of one run.

    Args:
        began: when, RFC 3339 by the host's clock; "" where the host knows nothing of the run.
        changes: the last that was noted of each change: started, done or failed.
        ended: whether the run's script came to its end there.
        guard: the last that was noted of its guard: armed, confirmed, reverting or reverted; "" for none.
        time: of the last line.
        machine: what stands for the machine-id of the host (``machine_mark``); "" where it has none.
        at_work: whether the run's script holds the host's lock and has not ended.
    """

    began: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    ended: bool = False
    guard: str = ""
    time: str = ""
    machine: str = ""
    at_work: bool = False

    @property
    def summary(self) -> str:
        """The receipts in words."""
        if not self.began:
            more = "its script has just begun there" if self.at_work else "nothing was begun there"
            return f"the host has no receipt of this run: {more}"
        made = [change for change, state in self.changes if state == "done"]
        words = [f"began {self.began}", f"made {', '.join(made) or 'no change'}"]
        words += [f"{state} {change}" for change, state in self.changes if state == "failed"]
        open_steps = [change for change, state in self.changes if state == "started"]
        end = "its end is not noted yet" if self.at_work else "its end was not noted"
        words += [f"{change} was begun, and {end}" for change in open_steps]
        if self.at_work:
            words.append("the script is at work there")
        elif not self.ended:
            words.append("the script did not come to its end")
        guard = {
            "armed": "guarded changes wait for their confirmation",
            "confirmed": "guarded changes were confirmed",
            "reverting": "the host began to take the guarded changes back",
            "reverted": "the host took the guarded changes back",
        }
        words += [f"{guard[self.guard]} ({self.time})"] if self.guard else []
        return "; ".join(words)


def question(run: str, nonce: str) -> str:
    """Return the sh text that prints which machine a host is, and what it noted of a run; run as root."""
    path, mark = shlex.quote(f"{ROOT}/runs/{run}/receipt.jsonl"), f"{MARK} {nonce}"
    read = f"if [ -e {path} ]; then tail -n {LINES} {path}; fi"
    machine = 'read -r id </etc/machine-id; echo "$id"; echo "$work"'
    begin = f"RUN={shlex.quote(run)}; id=; work=\n{_AT_WORK}echo {mark} begin"
    return f"{begin}; {machine}; {read} && echo {mark} end\n"


def parse(stdout: str, nonce: str) -> Receipts | None:
    """Return what a host noted of a run; None where it did not print all of it."""
    block = read_block(stdout, nonce, MARK, ("begin",))
    if block is None or not block.complete:
        return None
    machine, work, *lines = [*block.text.splitlines(), "", ""]
    mark = machine_mark(machine.strip()) if machine.strip() else ""
    return replace(summed_up(lines), machine=mark, at_work=work == AT_WORK)


def summed_up(lines: Iterable[str]) -> Receipts:
    """Return what lines of receipts say together; a line that is torn says nothing."""
    began = guard = time = ""
    changes: dict[str, str] = {}
    ended = False
    for line in lines:
        try:
            entry = read_json(line)
            moment, change, state = str(entry["time"]), str(entry["change"]), str(entry["state"])
        except (ValueError, KeyError, TypeError):
            continue
        if not (_ID.fullmatch(change) and _TIME.fullmatch(moment)):
            continue
        began = began or moment
        if change != "-":
            changes |= {change: state} if state in ("started", "done", "failed") else {}
        elif state in ("armed", "confirmed", "reverting", "reverted"):
            guard, time = state, moment
        ended |= (change, state) == ("-", "ended")
    return Receipts(began, tuple(changes.items()), ended, guard, time)
