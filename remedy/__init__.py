"""remedy: fix the host state that hangs multi-node GPU training, and prove it."""

from __future__ import annotations

__version__ = "0.1.0"
