"""What a change that writes a file by a command of its own says of the file before it."""

from __future__ import annotations

from remedy.plan import sha256
from remedy.probe import File


def file_digest(file: File) -> str:
    """Return the digest of a file's content, "absent" where there is no file."""
    return sha256(file.content) if file.exists else "absent"
