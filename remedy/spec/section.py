"""What every section of ``remedy.yaml`` is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecSection(BaseModel):
    """A section of ``remedy.yaml``: closed to unknown keys, never changed after reading."""

    # The validator of a section is made when the file has that section: there are some forty.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
