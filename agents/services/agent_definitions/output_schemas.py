"""Schemas of final answers, as people provide them."""

from __future__ import annotations

import json

from agents.services.errors import InvalidRequest
from agents.structured_output.schema import SchemaRefused, check_schema


def schema_text(schema: object) -> str:
    """Return `schema` in the form of an agent's version, empty for None. Raises `InvalidRequest`.

    The text has several lines, which keeps diffs of two versions readable.
    """
    if schema is None:
        return ""
    try:
        check_schema(schema)
    except SchemaRefused as error:
        raise InvalidRequest(f"output_schema: {error}", code="invalid_output_schema") from None
    return json.dumps(schema, ensure_ascii=False, indent=2)
