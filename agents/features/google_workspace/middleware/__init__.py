"""The tools of Gmail and Google Calendar."""

from __future__ import annotations

from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.base import Middleware, Tool
from agents.spec import AgentSpec

with lazy_modules:
    # The tools take 25 ms, and few agents have them.
    from agents.features.google_workspace.middleware import calendar, calendar_changes, gmail


class GmailMiddleware(Middleware):
    """The tools of Gmail, for agents with the integration `gmail`."""

    name = "gmail"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if "gmail" not in spec.integrations:
            return []
        return gmail.READING if spec.read_only else self.every_tool()

    def every_tool(self) -> list[Tool[Any]]:
        return [*gmail.READING, *gmail.CHANGING]

    def wanted_by(self, spec: AgentSpec) -> str:
        return "integrations" if "gmail" in spec.integrations else ""


class CalendarMiddleware(Middleware):
    """The tools of Google Calendar, for agents with the integration `calendar`."""

    name = "calendar"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if "calendar" not in spec.integrations:
            return []
        return calendar.READING if spec.read_only else self.every_tool()

    def every_tool(self) -> list[Tool[Any]]:
        return [*calendar.READING, *calendar_changes.CHANGING]

    def wanted_by(self, spec: AgentSpec) -> str:
        return "integrations" if "calendar" in spec.integrations else ""


MIDDLEWARE = (GmailMiddleware(), CalendarMiddleware())
