"""The audit trail: what was done, to which host, by whom, and whether it was proved."""

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
