"""``remedy apply`` with a plan for a host, and no answer from another; no host is there: for its question.

With DEAF in the environment SIGTERM comes to another thread: it does not end what the main one waits in, as if
it had come just before that began.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

if "DEAF" in os.environ:
    # Before gevent makes threads and sleep its own.
    _thread.start_new_thread(time.sleep, (120,))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

from typing import Any

from remedy.audit.agreement import Agreement
from remedy.cli.main import main
from remedy.errors import UnreachableError
from remedy.plan import Change, CommandAction, Fleet, Plan
from remedy.runs import apply
from remedy.runs.gate import Proposal
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session
from tests.unit.build import record


def propose(session: Session, **_: Any) -> Proposal:
    """Stand in for what reads the hosts."""
    action = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
    change = record(Change, id="01-x", host="gpu01", title="t", action=action)
    plan = record(Plan, changes=(change,))
    fleet = Fleet(session.inventory, {}, session.spec)
    errors = {"gpu02": UnreachableError("gpu02: no connection", next_step="Is it up?")}
    return Proposal("apply", Agreement(plan), plan, ProbeResult(fleet, errors))


if __name__ == "__main__":
    apply.propose = propose
    sys.argv[0] = "remedy"
    main()
