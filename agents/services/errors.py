"""What a service refuses. Doors turn these into a 4xx, a form error or a line on the terminal."""

from __future__ import annotations


class ServiceError(Exception):
    """Base. `message` is fit to be shown; `code` is a stable word for programs."""

    code = "refused"

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code


class InvalidRequest(ServiceError):
    """What was asked for does not fit. HTTP 400."""

    code = "invalid"


class NotAllowed(ServiceError):
    """The user may see it but not do this to it. HTTP 403."""

    code = "not_allowed"


class NotFound(ServiceError):
    """There is no such thing, or none that this user may see. HTTP 404."""

    code = "not_found"


class NoSpace(ServiceError):
    """The disk has no space for this. HTTP 507."""

    code = "disk_full"


class Conflict(ServiceError):
    """It is no longer, or not yet, in a state where this is possible. HTTP 409."""

    code = "conflict"
