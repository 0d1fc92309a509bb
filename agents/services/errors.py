"""What a service refuses. Doors turn these into a 4xx, a form error or a line on the terminal."""

from __future__ import annotations


class ServiceError(Exception):
    """Base. `message` is fit to be shown; `code` is a stable word for programs.

    `http_status` is the status of an HTTP response that carries it.
    """

    code = "refused"
    http_status = 400

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code


class InvalidRequest(ServiceError):
    """What was asked for does not fit."""

    code = "invalid"


class NotAllowed(ServiceError):
    """The user may see it but not do this to it."""

    code = "not_allowed"
    http_status = 403


class NotFound(ServiceError):
    """There is no such thing, or none that this user may see."""

    code = "not_found"
    http_status = 404


class NoSpace(ServiceError):
    """The disk has no space for this."""

    code = "disk_full"
    http_status = 507


class Conflict(ServiceError):
    """It is no longer, or not yet, in a state where this is possible."""

    code = "conflict"
    http_status = 409
