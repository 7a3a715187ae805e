"""The audit trail: what was done, to which host, by whom, and whether it was proved.

``journal`` writes and checks the chained records, ``story`` puts those of a run together, ``export`` makes a
table of them. ``approval`` signs plans, ``agreement`` keeps what was agreed to. ``witness`` compares the
journal with the hosts, ``survival`` compares its last runs with the hosts after a boot.
"""

from __future__ import annotations

from remedy.audit.journal import GENESIS, Head, Journal, JournalRecord, verify_chain
from remedy.audit.story import Story, hosts_of_plan, read_stories, stories

__all__ = [
    "GENESIS",
    "Head",
    "Journal",
    "JournalRecord",
    "Story",
    "hosts_of_plan",
    "read_stories",
    "stories",
    "verify_chain",
]
