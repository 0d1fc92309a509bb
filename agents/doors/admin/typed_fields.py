"""Admin pages with a write-only field for a secret."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest


class TypedFieldAdmin(admin.ModelAdmin):
    """An admin that hides `typed_field`, which has no readable value, from read-only users."""

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
