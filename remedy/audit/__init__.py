"""The audit trail: what was done, to which host, by whom, and whether it was proved."""

from __future__ import annotations

from remedy.audit.journal import GENESIS, Journal, JournalRecord, verify_chain

__all__ = ["GENESIS", "Journal", "JournalRecord", "verify_chain"]
