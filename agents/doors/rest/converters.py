"""Parts of the paths of the REST API. `agents.doors.rest.base` imports it for patterns."""

from __future__ import annotations

from django.urls import register_converter


class OpaqueId:
    """Any id that Vel could have made. Other texts do not reach the database."""

    regex = "[0-9A-Za-z_-]{1,64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class CallId:
    """The id that a model's server gave a call: anything short, in one part of the path."""

    regex = r"[^/\x00]{1,200}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(OpaqueId, "opaque_id")
register_converter(CallId, "call_id")
