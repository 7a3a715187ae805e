"""What every section of ``remedy.yaml`` is."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class SpecSection(BaseModel):
    """A section of ``remedy.yaml``: closed to unknown keys, never changed after reading."""

    # The validator of a section is made when the file has that section: there are some forty.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_plain(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse words and numbers for true and false: in YAML 1.2, and so for editors, ``yes`` is text."""
        kind = cls.model_fields[info.field_name or ""].annotation
        kinds = get_args(kind) or (kind,)
        if bool in kinds and isinstance(value, str | int) and not isinstance(value, bool):
            raise PydanticCustomError("bool_type", "neither true nor false")
        return value
