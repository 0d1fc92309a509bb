"""Pages with a field into which a secret is typed and never shown again."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest


class TypedFieldAdmin(admin.ModelAdmin):
    """Leaves `typed_field` out for people who only read: there is nothing in it to be read."""

    typed_field: ClassVar[str]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        may_type = (
            self.has_add_permission(request)
            if obj is None
            else self.has_change_permission(request, obj)
        )
        if may_type:
            return found
        return [
            (
                title,
                {
                    **options,
                    "fields": [name for name in options["fields"] if name != self.typed_field],
                },
            )
            for title, options in found
        ]
