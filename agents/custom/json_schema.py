"""Inputs of tools defined by a JSON Schema instead of type hints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import BaseModel, ConfigDict, create_model, model_validator

from agents.custom.signature import InvalidTool


def model_of_schema(name: str, schema: Any) -> type[BaseModel]:
    """Return a model that shows `schema` to the agent and checks inputs by it.

    Raises `InvalidTool` if it is not a JSON Schema of an object, or has a `$ref`.
    """
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise InvalidTool(f"The input_schema of {name} must be a JSON Schema of type object.")
    try:
        plain = json.loads(json.dumps(schema))
    except (TypeError, ValueError):
        raise InvalidTool(f"The input_schema of {name} must contain JSON data only.") from None
    kept: dict[str, Any] = {"type": "object", "properties": {}, **plain}
    if _has_reference(kept):
        raise InvalidTool(f"The input_schema of {name} has a $ref: write it out, without $ref.")
    try:
        Draft202012Validator.check_schema(kept)
    except SchemaError as error:
        raise InvalidTool(f"The input_schema of {name}: {error.message}") from None
    validator = Draft202012Validator(kept)

    class _Given(BaseModel):
        model_config = ConfigDict(extra="allow", protected_namespaces=())

        @model_validator(mode="before")
        @classmethod
        def _fits(cls, data: Any) -> Any:
            try:
                validator.validate(data)
            except ValidationError as error:
                place = ".".join(str(part) for part in error.absolute_path)
                raise ValueError(f"{place}: {error.message}" if place else error.message) from None
            return data

        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
            return kept

    return create_model(f"{name}_input", __base__=_Given)


def _has_reference(node: Any) -> bool:
    if isinstance(node, Mapping):
        return "$ref" in node or any(_has_reference(value) for value in node.values())
    return isinstance(node, list) and any(_has_reference(item) for item in node)
