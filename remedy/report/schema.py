"""The JSON Schemas of what remedy writes, made from the models that write it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from remedy.audit.journal import RecordDocument
from remedy.diagnose.document import DiagnosisDocument
from remedy.plan import PlanFile, section_models
from remedy.report.document import RunDocument
from remedy.report.facts import FactsDocument
from remedy.report.keys import TrustDocument
from remedy.report.records import (
    AcceptDocument,
    AuditDocument,
    ErrorDocument,
    ExportDocument,
    HistoryDocument,
    StoryDocument,
)
from remedy.spec import SpecSection
from remedy.spec.words import introduction, meanings

# The dialect that pydantic writes: https://json-schema.org/draft/2020-12
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, type[BaseModel]] = {
    "plan": PlanFile,
    "run": RunDocument,
    "diagnosis": DiagnosisDocument,
    "facts": FactsDocument,
    "history": HistoryDocument,
    "story": StoryDocument,
    "audit": AuditDocument,
    "accept": AcceptDocument,
    "export": ExportDocument,
    "trust": TrustDocument,
    "error": ErrorDocument,
    "journal": RecordDocument,
}


class _Generator(GenerateJsonSchema):
    """Schemas in which a named tuple is an object with its fields, as ``remedy.report.facts`` writes it."""

    def named_tuple_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a named tuple."""
        return self._fields((field["name"], field["schema"]) for field in schema["fields"])

    def call_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a named tuple, which to pydantic before 2.14 is a call with its fields."""
        arguments = schema["arguments_schema"]["arguments_schema"]
        return self._fields((argument["name"], argument["schema"]) for argument in arguments)

    def _fields(self, fields: Iterable[tuple[str, Any]]) -> JsonSchemaValue:
        properties = {name: self.generate_inner(schema) for name, schema in fields}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document."""
    return model_schema(kind, MODELS[kind])


def spec_schema() -> dict[str, Any]:
    """Return the JSON Schema of remedy.yaml: every section with its settings, and nothing else."""
    sections = {name: _section_schema(model) for name, model in section_models().items()}
    return {
        "$schema": DIALECT,
        "title": "remedy.yaml",
        "description": "What the user wants of the hosts; every setting has a default.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": sections,
    }


def _section_schema(model: type[SpecSection]) -> dict[str, Any]:
    """Return the schema of a section, whole in itself; an empty section has its defaults."""
    schema = model.model_json_schema(mode="validation")
    texts = meanings(model)
    for name, setting in schema.get("properties", {}).items():
        if name in texts:
            setting["description"] = texts[name]
    about = introduction(model)
    return {**schema, "type": ["object", "null"], "description": about or schema["title"]}


def model_schema(kind: str, model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model, with the title of its kind."""
    schema = model.model_json_schema(
        by_alias=True, mode="serialization", schema_generator=_Generator
    )
    return {"$schema": DIALECT, **schema, "title": f"remedy {kind}"}
