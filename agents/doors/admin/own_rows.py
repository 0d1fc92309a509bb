"""Rows of a feature that belong to one agent, in the form of the agent.

A feature lists subclasses of `OwnRowsInline` in its `admin.AGENT_INLINES`. They are saved with the
agent as one version. See `agents.kernel.relations.OwnRows`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest


class OwnRowsFormSet(BaseInlineFormSet):
    """The rows of a relation. It does not save them: `save_agent` stores the rows in `kept`."""

    relation: ClassVar[str]

    def kept(self) -> list[Any]:
        """Return the rows that the agent keeps."""
        gone = self.deleted_forms
        return [
            form.instance
            for form in self.forms
            if form not in gone and (form in self.initial_forms or form.has_changed())
        ]


class OwnRowsInline(admin.StackedInline):
    """The rows in the agent's form, for people who can change the agent."""

    formset: type[OwnRowsFormSet]
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        needed = "agents.add_agent" if obj is None else "agents.change_agent"
        return bool(request.user.has_perm(needed))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_look = request.user.has_perm("agents.view_agent")
        return bool(may_look or self.has_add_permission(request, obj))
