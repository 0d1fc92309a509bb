"""Errors of services. Doors convert them to a 4xx, a form error or a line on the terminal."""

from __future__ import annotations

from sandbox.errors import AgentError


class ServiceError(AgentError):
    """Base class. `message` can be shown to users; `code` is a stable word for programs.

    `http_status` is the status of an HTTP response with this error.
    """

    code = "refused"
    http_status = 400

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code


class InvalidRequest(ServiceError):
    """The request is invalid.

    >>> agent = create_deep_agent(scripted_model(["Hello."]), sandbox=False)
    >>> try:
    ...     asyncio.run(agent.run(""))
    ... except InvalidRequest as error:
    ...     print(error.code)
    invalid
    """

    code = "invalid"


class NotAllowed(ServiceError):
    """The user may see the object, but not do this to it.

    >>> NotAllowed("Only an administrator may do this.").http_status
    403
    """

    code = "not_allowed"
    http_status = 403


class NotFound(ServiceError):
    """The object does not exist, or the user may not see it.

    >>> agent = create_deep_agent(scripted_model(["Hello."]), sandbox=False)
    >>> try:
    ...     asyncio.run(agent.files("nothing"))
    ... except NotFound as error:
    ...     print(error.code)
    not_found
    """

    code = "not_found"
    http_status = 404


class NoSpace(ServiceError):
    """The disk has no space for this.

    >>> NoSpace("The disk is full.").code
    'disk_full'
    """

    code = "disk_full"
    http_status = 507


class Conflict(ServiceError):
    """The present state of the object does not allow this.

    >>> agent = create_deep_agent(scripted_model(["Hello."]), sandbox=False, name="first")
    >>> asyncio.run(agent.run("Hi", session_id="of-the-first"))
    'Hello.'
    >>> other = create_deep_agent(scripted_model(["Hello."]), sandbox=False, name="second")
    >>> try:
    ...     asyncio.run(other.pending("of-the-first"))
    ... except Conflict as error:
    ...     print(error.code)
    other_agent
    """

    code = "conflict"
    http_status = 409
