"""The form of final answers, as people give it."""

from __future__ import annotations

import json

from agents.services.errors import InvalidRequest
from agents.structured_output.schema import SchemaRefused, check_schema


def schema_text(schema: object) -> str:
    """`schema` as an agent's version holds it; empty for None. Raises `InvalidRequest`.

    In several lines, so that the difference of two versions can be read.
    """
    if schema is None:
        return ""
    try:
        check_schema(schema)
    except SchemaRefused as error:
        raise InvalidRequest(f"output_schema: {error}", code="invalid_output_schema") from None
    return json.dumps(schema, ensure_ascii=False, indent=2)
