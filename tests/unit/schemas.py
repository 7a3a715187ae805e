"""Whether a document has the shape of its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def conforms(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Whether a value has the shape that a schema asks for, as far as pydantic's schemas go."""
    if "$ref" in schema:
        return conforms(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema or "oneOf" in schema:
        return any(conforms(value, one, root) for one in schema.get("anyOf", schema.get("oneOf")))
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    types: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    kind = schema.get("type")
    if kind is not None and not isinstance(value, types[kind]):
        return False
    if kind == "array":
        return all(conforms(one, schema.get("items", {}), root) for one in value)
    if kind == "object":
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        return set(schema.get("required", ())) <= set(value) and all(
            conforms(one, known[key], root)
            if key in known
            else more is True or (more is not False and conforms(one, more, root))
            for key, one in value.items()
        )
    return True
