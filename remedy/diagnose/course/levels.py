"""What a record's own level says: a program that informs reports no failure, whatever its words speak for.

The same holds of what the kernel prints of links and disks while it starts: they come up one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from remedy.diagnose import lines
from remedy.diagnose.catalogue import Role, catalogue
from remedy.diagnose.endings.progress import reports_failure
from remedy.diagnose.scanner.exceptions import is_named
from remedy.diagnose.scanner.log_scan import Event

STARTING = 90.0  # seconds in which a machine starts
HINT = 0.45  # what is left of the weight of a text that is no failure: it orders what is offered
_FAILURES = frozenset((Role.CAUSE, Role.APPLICATION, Role.CONSEQUENCE))
_COMES_UP = frozenset(("ib-link-fault", "network-unreachable", "p2p-acs-iommu", "storage-fault"))
# As UCX, libfabric, Python's logging, glog and Rust's tracing write it: in capitals or brackets.
_DEBUG = re.compile(
    r"(?:^|[\s\[|/])(?:DEBUG|TRACE|DIAG|VERBOSE)(?:[\s\]:|/]|$)"
    r"|<(?:debug|trace|info)>|\[(?:debug|trace)\]"
)
# What a harness records of the commands that it runs, at whatever level.
_RECORDED = re.compile(r"\b(?:stdout|stderr)\b")
# As torch's libraries write a warning. Who lost another then goes on, or had ended already.
_WARNS = re.compile(r"(?:^|[\s:])\[?W\d{3,4} \d\d:\d\d:\d\d\.\d+ ")
INFORMS = re.compile(r"\bINFO\b|(?:^|[\s\[])I\d{4} \d\d:\d\d|\[[Ii](?:nfo)?\]")
# What its own program says it did without (Open MPI, and others).
_IGNORED = re.compile(
    r"\((?:ignored|harmless|non-fatal)\)\W{0,3}$|\b[Ww]ill ignore (?:this |the )?error and continue"
)
# A command that somebody gave, and not what it printed: of a shell (set -x), of sudo, cron, audit and Ansible.
_COMMAND = re.compile(
    r"^\+{1,3} \S|\bCOMMAND=|\bCMD \(|\bproctitle=|\btype=EXECVE\b|Invoked with (?:_raw_params|cmd)="
)
# What a script prints of its environment, configure of a host, and a program of its settings.
_PRINTED = re.compile(
    r"^(?:declare -x |export )?_?[A-Z][A-Z0-9_]{2,60}=|^checking (?:whether|for) .{1,120}\.\.\. "
    r"|(?:^|[\] =])\w{0,40}(?:Args|Arguments|Config|Namespace)\(\w{1,60}="
    r"|(?:\b\w{1,60}=[^,=\n]{1,80}, ){4}|(?:['\"]--[\w-]{2,60}['\"],? (?:['\"][^'\"-][^'\"]{0,80}['\"],? )?){2}"
)
# A count of nothing, a metric's too. "Rank 0 failed" counts nothing.
_NONE = re.compile(
    r"(?:counts?|errors?|events?|since boot|kills?|failures?|retired|pending)\s*[:=]\s*0\s*$"
    r"|\b(?:counts?|errors|failures)(?: ?[:=])? ?0(?:$|[,;] )"
    r"|\b0 (?:(?:fatal |critical )?(?:errors?|failures?)|Xid|ECC|OOM|oom|new [a-z]{3,20})\b"
    r"|\b0 of \d{1,9} (?:[a-z]{2,20} ){1,3}failed\b"
    r"|(?:^|[,;(]) ?0 (?:failed|lost|dead|unhealthy)(?:$|[,;)])|\bfailed 0 times\b"
    r"|^\w{3,120}\{[^{}]{0,400}\} 0(?:\.0)?(?: \d{10,13})?\s*$"
)
# A test that passed, or was not run: of GoogleTest, pytest, unittest and Rust.
_TESTED = re.compile(
    r"^\[ +(?:OK|RUN|PASSED|SKIPPED) +\] "
    r"|\.py::\w.{0,300} (?:PASSED|SKIPPED|XFAIL)\b|^(?:PASSED|SKIPPED|XFAIL) (?:\[\d{1,6}\] )?\S{1,200}\.py\b"
    r"|\.\.\. (?:ok|skipped\b.{0,200})$"
)
_UPTIME = re.compile(r"^(?:<\d>)?(?:kern\s*:\w+\s*: )?\[ *(\d{1,9}\.\d{6})\] ")


def at_their_level(events: Iterable[Event]) -> list[Event]:
    """Return the events without those of debugging, commands, tests, counts of 0, and what was ignored.

    What only informs, or starts, decides nothing.

    An entry that was written for such a record, as its examples show, keeps its weight.

    Args:
        events: of all logs.
    """
    kept = []
    for event in events:
        if event.role not in _FAILURES:
            kept.extend([] if event.role is Role.SIGN and _shows_nothing(event.text) else [event])
        elif is_no_report(event.text, event.symptom):
            continue
        elif _DEBUG.search(event.text) and not _RECORDED.search(event.text):
            kept.extend([event] if event.symptom in _written_for(_DEBUG) else [])
        elif _starts(event) or _only_informs(event) or _warns_of_others(event):
            kept.append(as_hint(event))
        else:
            kept.append(event)
    return kept


@cache
def _written_for(level: re.Pattern[str]) -> frozenset[str]:
    """Return the entries that were written for records of a level."""
    return frozenset(entry.id for entry in catalogue() if any(map(level.search, entry.examples)))


def is_no_report(line: str, symptom: str = "") -> bool:
    """Return whether a line shows a command, a setting, a test that passed, a count of 0, or what was ignored.

    Args:
        line: of a log.
        symptom: the entry that knows it; one that was written for settings reads them.
    """
    text = lines.split(line).text
    if _shows_nothing(line) or any(map(_COMMAND.search, (line, text))):
        return True
    if symptom in _written_for(_PRINTED) or reports_failure(text) or is_named(text):
        return False
    return _PRINTED.search(text) is not None


def _shows_nothing(line: str) -> bool:
    """Return whether a line shows a test that passed, a count of 0, or what was ignored."""
    texts = lines.beginnings(line)
    return any(pattern.search(text) for pattern in (_IGNORED, _NONE, _TESTED) for text in texts)


def _only_informs(event: Event) -> bool:
    if not INFORMS.search(event.text) or event.symptom in _written_for(INFORMS):
        return False
    return not reports_failure(event.text)


def _warns_of_others(event: Event) -> bool:
    """Return whether a warning tells that another is gone, which the end of a good run looks like too."""
    return event.details.get("level") == "warning" or (
        event.role is Role.CONSEQUENCE and _WARNS.search(event.text) is not None
    )


def _starts(event: Event) -> bool:
    """Return whether the kernel prints something of what comes up while it starts."""
    match = _UPTIME.match(lines.split(event.text).text)
    if match is None or float(match[1]) >= STARTING:
        return False
    return {cause.label for cause in event.causes} <= _COMES_UP


def as_hint(event: Event) -> Event:
    """Return an event as one that decides nothing, and orders what is offered."""
    causes = (c.model_copy(update={"weight": c.weight * HINT}) for c in event.causes)
    return replace(event, role=Role.SIGN, causes=tuple(causes))
