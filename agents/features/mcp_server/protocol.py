"""The protocol, by the package `mcp`: its server for one request, without sessions.

The package answers both kinds of clients: those that start with `initialize`, and those of
2026-07-28 with independent requests. The modules `calls` and `tools` carry out the requests.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from django.db import InterfaceError, OperationalError

from agents.disk_space import full_disk
from agents.features.mcp_server.bridge import Receive, Scope, Send
from agents.features.mcp_server.caller import Caller, in_database
from agents.features.mcp_server.calls import Asked, UnknownTool, call_tool
from agents.features.mcp_server.tools import CANCEL_RUN, GET_RUN, MAX_BODY_BYTES, tools_page
from agents.features.mcp_server.waiting import Tell, refusal
from agents.kernel.lazy_modules import lazy_modules
from agents.services.errors import InvalidRequest, NoSpace, ServiceError

with lazy_modules:
    # Imported for the first client: it takes 0.7 s of CPU and loads a web server that is not used.
    from mcp import types
    from mcp.server import context, lowlevel, streamable_http_manager
    from mcp.shared import exceptions


logger = logging.getLogger(__name__)

CALLER = "vel.caller"
"""Key of the `Caller` in a request's scope."""
INSTRUCTIONS = (
    "Each tool but two is an agent of Vel. It works alone, remembers its conversation (pass its "
    "thread again) and may ask a person before it acts. A call without an answer yet continues "
    f"without you: {GET_RUN} has its answer later, and {CANCEL_RUN} ends it."
)


class PackageMissing(Exception):
    """The package `mcp` is not installed."""


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request with a `Caller` in its scope. Raises `PackageMissing`."""
    manager_type, server = _server()
    manager = manager_type(server, stateless=True, max_request_body_size=MAX_BODY_BYTES)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


@lru_cache(maxsize=1)
def _server() -> tuple[type[Any], lowlevel.Server[Any]]:
    try:
        server_type = lowlevel.Server
        manager_type = streamable_http_manager.StreamableHTTPSessionManager
    except ImportError:
        raise PackageMissing from None
    # It logs the start and the end of each request.
    logging.getLogger("mcp.server").setLevel(logging.WARNING)
    server = server_type(
        "vel",
        version="1",
        title="Vel",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_no_parameters_in_headers,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    return manager_type, server


async def _list_tools(ctx: context.ServerRequestContext[Any, Any], params: Any) -> Any:
    cursor = params.cursor if params is not None else None
    try:
        tools, following = await in_database(tools_page, _caller(ctx), cursor)
    except InvalidRequest as error:
        raise exceptions.MCPError(code=types.INVALID_PARAMS, message=error.message) from None
    except Exception as error:
        logger.exception("the list of MCP tools failed")
        # The package would send the exception's text to the client.
        raise exceptions.MCPError(
            code=types.INTERNAL_ERROR, message=_unforeseen(error)[0]
        ) from None
    return types.ListToolsResult.model_validate({"tools": tools, "nextCursor": following})


async def _call_tool(ctx: context.ServerRequestContext[Any, Any], params: Any) -> Any:
    asked = Asked(_caller(ctx), params.name, params.arguments or {}, ctx.request_id, _tell(ctx))
    try:
        result = await call_tool(asked)
    except UnknownTool:
        raise exceptions.MCPError(
            code=types.INVALID_PARAMS, message="Unknown tool. List the tools again."
        ) from None
    except ServiceError as error:
        result = refusal(error.message, error.code)
    except Exception as error:
        logger.exception("an MCP call failed")
        result = refusal(*_unforeseen(error))
    return types.CallToolResult.model_validate(result)


def _caller(ctx: context.ServerRequestContext[Any, Any]) -> Caller:
    request: Any = ctx.request
    caller: Caller = request.scope[CALLER]
    return caller


def _tell(ctx: context.ServerRequestContext[Any, Any]) -> Tell | None:
    """Return a function that sends progress, or None if the client did not request progress."""
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        return None
    count = 0

    async def tell(message: str) -> None:
        nonlocal count
        count += 1
        await ctx.session.report_progress(count, message=message)

    return tell


def _unforeseen(error: Exception) -> tuple[str, str]:
    if text := full_disk(error):
        return text, NoSpace.code
    if isinstance(error, OperationalError | InterfaceError):
        return "The database is busy or cannot be reached: try again.", "database_unavailable"
    return "This failed on our side and was logged.", "internal_error"


def _no_parameters_in_headers(name: str) -> None:
    """Return None: no tool has arguments that are repeated in headers."""
