"""The section ``approval``: whose signatures a plan needs."""

from __future__ import annotations

from pydantic import Field

from remedy.spec.section import SpecSection


class ApprovalSpec(SpecSection):
    """Who has to agree before anything is changed.

    Args:
        required: how many valid signatures of the plan file are needed; with more than one, none may be the
            author's.
        allowed_signers: the file that says whose count, relative to the inventory; it MUST NOT be writable by
            those who write plans.
        revoked_keys: a file of keys that count no more, a list of public keys or a KRL.
    """

    required: int = Field(default=0, ge=0, le=10)
    allowed_signers: str = "allowed_signers"
    revoked_keys: str | None = None
