"""The tools of MCP servers, as a person has accepted them."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from typing import Any

from pydantic import BaseModel

from agents.features.mcp_client.options import McpTools, McpToolSpec
from agents.features.mcp_client.protocol.definitions import PREFIX
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.input_schema import input_model
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.middleware import LoadContext, RunContext
from agents.middleware.base import Middleware, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.providers.base import Block
from agents.spec import AgentSpec
from sandbox.errors import FileError, SandboxError

with lazy_modules:
    # They take 7 ms, and few agents have MCP servers.
    from agents.features.mcp_client import runs
    from agents.features.mcp_client.protocol import results


DIRECTORY = "/sandbox/shared/results"


class McpMiddleware(Middleware):
    """The accepted tools of the agent's servers. A server cannot add tools during a run."""

    name = "mcp"
    profiles = frozenset({"full", "sandbox_only"})
    tool_prefix = PREFIX
    tool_source = "MCP servers"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return [
            _tool(tool)
            for tool in spec.option(McpTools).mcp_tools
            if not spec.read_only or tool.effect == Effect.READ
        ]

    def every_tool(self) -> list[Tool[Any]]:
        """Return no tools: an agent can only name those of its servers."""
        return []

    def load(self, context: LoadContext) -> runs.RunServers | None:
        return runs.RunServers() if context.spec.option(McpTools).mcp_tools else None

    async def close(self, run: RunContext) -> None:
        await run.state(runs.RunServers).close(run)


def _tool(tool: McpToolSpec) -> Tool[Any]:
    return Tool(
        name=tool.name,
        description=tool.description or f"{tool.tool} of the MCP server {tool.server}.",
        input_model=input_model(tool.name, tool.input_schema),
        run=partial(_run, tool),
        effect=Effect(tool.effect),
        time_limit=float(tool.seconds),
        has_timeout_field=False,
    )


async def _run(tool: McpToolSpec, context: ToolContext, given: BaseModel) -> ToolResult:
    arguments = dict(given.model_extra or {})
    try:
        result = await context.state(runs.RunServers).call(context, tool, arguments)
    except McpError as problem:
        unsure = problem.unsure and tool.effect != Effect.READ
        advice = " It may have been carried out: check before you repeat it." if unsure else ""
        return error(problem.message + advice, "outcome_unknown" if unsure else problem.code)
    pictures = await context.takes_images()
    answer = await context.in_thread(partial(results.read_answer, result, pictures=pictures))
    return await _result(context, tool, answer)


async def _result(context: ToolContext, tool: McpToolSpec, answer: results.Answer) -> ToolResult:
    texts: list[str] = []
    blocks: list[Block] = []
    for number, part in enumerate(answer.parts):
        if isinstance(part, bytes):
            blocks.append(_picture(part))
        elif isinstance(part, results.File):
            texts.append(await context.in_thread(_keep, context, tool, number, part))
        elif part:
            texts.append(part.encode("utf-8", "replace").decode("utf-8"))
    text = "\n\n".join(texts)
    code = "tool_error" if answer.is_error else ""
    if not blocks:
        return ToolResult(text, is_error=answer.is_error, code=code)
    if text:
        blocks.insert(0, {"type": "text", "text": text})
    return ToolResult(blocks, is_error=answer.is_error, code=code, blocks=True)


def _picture(png: bytes) -> Block:
    data = base64.b64encode(png).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def _keep(context: ToolContext, tool: McpToolSpec, number: int, part: results.File) -> str:
    """Store a file of an answer under a name that Vel chooses. Return the line for the model."""
    source = f"{context.run_id}:{context.call_id}:{number}"
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    path = f"{DIRECTORY}/mcp-{tool.server}-{digest}.{part.ending}"
    size = f"{len(part.data):,} bytes"
    try:
        context.files().write_bytes(path, part.data)
    except (FileError, SandboxError, OSError) as problem:
        return f"[{part.kind} of {size}, which could not be kept: {problem}]"
    return f"[{part.kind} of {size}: {path}]"


MIDDLEWARE = [McpMiddleware()]
