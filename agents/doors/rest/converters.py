"""Path converters of the REST API. `agents.doors.rest.base` registers them."""

from __future__ import annotations

from django.urls import register_converter


class OpaqueId:
    """An id in Vel's format. Other texts do not reach the database."""

    regex = "[0-9A-Za-z_-]{1,64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class AgentName:
    """The id of an agent, or its slug."""

    regex = "[0-9A-Za-z_-]{1,100}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class CallId:
    """The id that a model's server gave a call: any short text without a slash."""

    regex = r"[^/\x00]{1,200}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class ManagedId(CallId):
    """The id of an object that people manage: some are names, as those of machines."""


register_converter(OpaqueId, "opaque_id")
register_converter(AgentName, "agent_name")
register_converter(CallId, "call_id")
register_converter(ManagedId, "managed_id")
