"""JSON that is stored as exact text on every database."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class JSONTextField(models.TextField):
    """A JSON value that is loaded exactly as it was stored.

    PostgreSQL's jsonb reorders keys, normalises numbers and refuses NUL. A digest of the stored
    value would differ from the digest of the loaded one.
    """

    # The type that django-stubs gives to the attribute of an instance.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
