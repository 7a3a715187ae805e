"""What every section of ``remedy.yaml`` is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecSection(BaseModel):
    """A section of ``remedy.yaml``: closed to unknown keys, never changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")
