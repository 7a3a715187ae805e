"""The JSON Schemas of what remedy writes, made from the models that write it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from remedy.audit.journal import RecordDocument
from remedy.diagnose.document import DiagnosisDocument
from remedy.plan import PlanFile
from remedy.report.document import RunDocument

# The dialect that pydantic writes: https://json-schema.org/draft/2020-12
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, type[BaseModel]] = {
    "plan": PlanFile,
    "run": RunDocument,
    "diagnosis": DiagnosisDocument,
    "journal": RecordDocument,
}


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of ``plan``, ``run``, ``diagnosis`` or ``journal``."""
    model = MODELS[kind]
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": DIALECT, **schema, "title": f"remedy {kind}"}
