"""A field for the tools of an agent: all of its profile, or chosen ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.json_input import JsonText
from agents.doors.agent_form.listed import listed
from agents.hidden_text import visible
from agents.middleware.registry import described_tools
from agents.spec import ALL_TOOLS

MODES = {
    "all": _("All tools of its profile"),
    "some": _("Only the chosen tools"),
    "more": _("All tools of its profile, and the chosen tools"),
}


@dataclass(frozen=True)
class Choice:
    """A checkbox. `name` is sent; the other texts are safe to display."""

    name: str
    label: str
    description: str
    effect: str
    is_chosen: bool


class ToolsWidget(forms.Widget):
    """Radio buttons for the mode, and a checkbox for each tool with its description and effect."""

    template_name = "agents/form/tools.html"

    class Media:
        css = {"all": ["agents/web/agent_form.css"]}
        js = [forms.Script("agents/web/agent_form.js", type="module")]

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-mode" not in data

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if name in data or f"{name}-mode" not in data:
            return data.get(name)
        mode, chosen = data.get(f"{name}-mode"), listed(data, f"{name}-pick")
        if mode == "all":
            return ""
        return json.dumps([ALL_TOOLS, *chosen] if mode == "more" else chosen)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        chosen: Any = value
        if isinstance(value, str):
            try:
                chosen = json.loads(value) if value else None
            except (ValueError, RecursionError):
                return {**context, "text": value}
        if chosen is not None and not isinstance(chosen, list | tuple):
            return {**context, "text": value}
        mode = "all" if chosen is None else "more" if ALL_TOOLS in chosen else "some"
        id_ = context["widget"]["attrs"].get("id") or f"id_{name}"
        return {
            **context,
            "modes": [(key, label, key == mode, f"{id_}-{key}") for key, label in MODES.items()],
            "choices": _choices({str(each) for each in chosen or ()} - {ALL_TOOLS}),
        }


def _choices(chosen: set[str]) -> list[Choice]:
    try:
        known = described_tools()
    except ImproperlyConfigured:
        known = {}  # the system checks report the error
    found = [
        Choice(name, visible(name), visible(description), effect, name in chosen)
        for name, (description, effect) in known.items()
    ]
    missing = sorted(chosen - known.keys())
    words = gettext("Not one of Vel's own tools, for example a tool of an MCP server.")
    return found + [Choice(name, visible(name), words, "", is_chosen=True) for name in missing]


class ToolsField(JsonText):
    """A list of names, or None for all tools of the profile."""

    def __init__(self, *, check: Callable[[Any], Any] | None = None, **options: Any) -> None:
        super().__init__(empty=None, check=check, widget=ToolsWidget(), **options)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the names differ. Their order has no meaning."""
        try:
            found = self.to_python(data)
        except ValidationError:
            return True
        if initial is None or not isinstance(found, list):
            return bool(found != initial)
        return sorted(map(str, found)) != sorted(initial)
