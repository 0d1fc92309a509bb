"""Tools that run commands and Python in the sandbox.

The module also describes the network of commands: in a sentence of the prompt, in lines for the
model, and in events of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from agents.events.append import EventDraft
from agents.events.catalogue.sandbox import SandboxConnection
from agents.kernel.mounts import mounts
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.command_tools import (
    BESIDE_FILES,
    IN_SANDBOX,
    CommandTool,
    ExecuteInput,
    ExecutePythonInput,
)
from agents.middleware.context import ToolContext
from agents.middleware.filesystem import layout
from agents.middleware.program_files import call_limits
from agents.models import Effect
from agents.settings import DataSettings
from agents.spec import AgentSpec
from agents.telemetry.tool_watch import watched_command
from sandbox.backends import AdaptedBackend
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.policy import MAX_TIMEOUT
from sandbox.result import ExecutionResult
from sandbox.toolboxes.find import find_toolbox

_PACKAGES_NAMED = 12
_DELIVER = ", and put deliverables into /sandbox/outputs."
_ANSWER = ". You can change no file: put what you found into your answer."


class ExecuteInSandboxInput(BaseModel):
    command: str = Field(min_length=1)
    timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=MAX_TIMEOUT,
        validation_alias=AliasChoices("timeout_seconds", "timeout"),
    )

    @property
    def timeout(self) -> float | None:
        return self.timeout_seconds


async def _run(context: ToolContext, source: str, *, python: bool) -> ExecutionResult:
    """Run code in the thread's sandbox.

    If the call is cancelled, the command is killed, and the call waits for its end.
    """
    cancel = Cancellation()

    def blocking() -> ExecutionResult:
        sandbox = context.sandbox(context.deadline)
        start = sandbox.start_python if python else sandbox.start
        execution = start(
            source,
            timeout=context.deadline,
            on_output=context.progress,
            marker=context.marker,
            cancel=cancel,
        )
        return execution.wait()

    with watched_command("python" if python else "bash", source) as watch:
        watch.result = await context.in_thread(blocking, on_cancel=cancel.cancel)
        return with_refusals(watch.result)


def _as_result(context: ToolContext, result: ExecutionResult) -> ToolResult:
    content: dict[str, Any] = {
        "success": result.success,
        "exit_code": result.exit_code,
        "stdout": result.stdout,
    }
    if result.stderr:
        content["stderr"] = result.stderr
    if result.timed_out:
        content["timed_out"] = True
    for mount in mounts():
        if not result.success and f"{mount.root}/" in result.stderr:
            content["note"] = f"Commands do not see {mount.root}: use read_file."
    return ToolResult(
        content,
        # A failed command is a normal result; only a command that was stopped is an error.
        is_error=result.timed_out,
        code="timeout" if result.timed_out else "",
        events=connection_events(context.call_id, result),
    )


async def execute(context: ToolContext, given: ExecuteInput) -> ToolResult:
    try:
        return _as_result(context, await _run(context, given.command, python=False))
    except SandboxError as problem:
        return error(str(problem), "sandbox")


async def execute_python(context: ToolContext, given: ExecutePythonInput) -> ToolResult:
    try:
        return _as_result(context, await _run(context, given.code, python=True))
    except SandboxError as problem:
        return error(str(problem), "sandbox")


async def execute_in_sandbox(context: ToolContext, given: ExecuteInSandboxInput) -> ToolResult:
    """Run a command, and return stdout and stderr as one text."""
    try:
        result = await _run(context, given.command, python=False)
    except SandboxError as problem:
        return error(str(problem), "sandbox")
    output = "\n".join(part.rstrip("\n") for part in (result.stdout, result.stderr) if part)
    if result.timed_out:
        output += f"\n[timed out after {context.deadline:g} s; exit code {result.exit_code}]"
    elif not result.success:
        output += f"\n[exit code {result.exit_code}]"
    return ToolResult(
        output.strip("\n") or "[no output]",
        # A failed command is a normal result; only a command that was stopped is an error.
        is_error=result.timed_out,
        code="timeout" if result.timed_out else "",
        events=connection_events(context.call_id, result),
    )


def _runs_beside_files(
    backend: AdaptedBackend, tool: CommandTool
) -> Callable[[ToolContext, Any], Awaitable[ToolResult]]:
    """Return the function of a tool that runs code with a program's backend."""

    async def run(context: ToolContext, given: Any) -> ToolResult:
        cancel = Cancellation()

        def blocking() -> dict[str, Any]:
            with call_limits(context.deadline, cancel):
                return tool.run(backend, given, context.deadline)

        found = await context.in_thread(blocking, on_cancel=cancel.cancel)
        if "error" in found:
            return error(str(found["error"]), "sandbox")
        timed_out = found.get("timed_out") is True
        return ToolResult(found, is_error=timed_out, code="timeout" if timed_out else "")

    return run


class ExecutionMiddleware(Middleware):
    """Offers `execute` and `execute_python`; for the sandbox-only profile, `execute_in_sandbox`.

    Vel never runs commands outside a sandbox, so without one there are no such tools. Only if a
    program's `backend` runs commands, agents that can change files have tools that call it.
    """

    name = "execution"
    profiles = frozenset({"full", "sandbox_only"})

    def __init__(self, backend: AdaptedBackend | None = None) -> None:
        self._backend = backend

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if not spec.sandbox:
            return self._tools_of_backend(spec)
        if spec.profile == "sandbox_only":
            return [
                Tool(
                    "execute_in_sandbox",
                    "Run a bash command in the sandbox and get its output. Use it for all work "
                    "with files, code and skills. timeout_seconds: 120 by default, 600 at most.",
                    ExecuteInSandboxInput,
                    execute_in_sandbox,
                    Effect.WRITE,
                    time_limit=120.0,
                )
            ]
        functions: dict[str, Callable[[ToolContext, Any], Awaitable[ToolResult]]] = {
            "execute": execute,
            "execute_python": execute_python,
        }
        return [_tool(tool, functions[tool.name]) for tool in IN_SANDBOX]

    def _tools_of_backend(self, spec: AgentSpec) -> list[Tool[Any]]:
        if self._backend is None or spec.read_only:
            return []
        tools = BESIDE_FILES if self._backend.supports_python else BESIDE_FILES[:1]
        return [_tool(tool, _runs_beside_files(self._backend, tool)) for tool in tools]

    def prompt(self, context: PromptContext) -> str:
        if not context.spec.sandbox and context.runs_commands:
            return (
                "## Execution\n"
                "Commands run on the machine with the files; each call is a new process. Compute "
                "with code rather than in your head, and check results before you rely on them."
            )
        if "execute_in_sandbox" in context.tool_names:
            return (
                "## Sandbox\n"
                "You work in a persistent sandbox through `execute_in_sandbox`; each call is a new "
                f"bash process. {network_sentence(context.spec)}{_toolbox(context)}\n\n"
                f"```\n{layout(context.spec)}\n```\n\n"
                "All work with files goes through commands (`ls`, `cat`, `python3`, "
                "here-documents). Look into /sandbox/user_uploads for the user's files"
                + (_ANSWER if context.spec.read_only else _DELIVER)
            )
        if "execute" in context.tool_names or "execute_python" in context.tool_names:
            return (
                "## Execution\n"
                "Commands and Python run in a sandbox over the same files"
                f"{', and can change none' if context.spec.read_only else ''}; each call is a new "
                f"process, and nothing keeps running after it. {network_sentence(context.spec)}"
                f"{_toolbox(context)} Compute with code rather than in your head, and check "
                "results before you rely on them."
            )
        return ""


def _tool(tool: CommandTool, run: Callable[[ToolContext, Any], Awaitable[ToolResult]]) -> Tool[Any]:
    return Tool(
        tool.name,
        tool.description,
        tool.input_model,
        run,
        Effect.WRITE,
        time_limit=tool.time_limit,
    )


def _toolbox(context: PromptContext) -> str:
    """Return the names of the toolbox's Python packages; empty if this host does not have it."""
    if not context.spec.toolbox:
        return ""
    try:
        packages = find_toolbox(DataSettings.now().toolboxes, context.spec.toolbox).packages
    except SandboxError:
        return ""
    more = ", … (`pip list`)" if len(packages) > _PACKAGES_NAMED else ""
    return f" Python has {', '.join(packages[:_PACKAGES_NAMED])}{more}."


_MOST_NAMED = 30
_MOST_LINES = 10
_THROUGH = "through the HTTP proxy that the environment variables name"


def network_sentence(spec: AgentSpec) -> str:
    """Return a sentence for the prompt about the network that commands can reach."""
    if spec.network == "full":
        return f"Commands reach only public internet addresses {_THROUGH}."
    if spec.network == "none" or not spec.allowed_hosts:
        return "There is no network."
    named = ", ".join(spec.allowed_hosts[:_MOST_NAMED])
    more = len(spec.allowed_hosts) - _MOST_NAMED
    also = f" and {more} more" if more > 0 else ""
    return f"Commands reach only these hosts, {_THROUGH}: {named}{also}."


def with_refusals(result: ExecutionResult) -> ExecutionResult:
    """Return the result with a line in stderr for each refused destination, for the model."""
    refused = [row for row in result.connections if not row.allowed]
    if not refused:
        return result
    lines = [
        f"[network: refused {f'{row.host}:{row.port}' if row.host else 'a request'}: {row.reason}]"
        for row in refused[:_MOST_LINES]
    ]
    if len(refused) > _MOST_LINES:
        lines.append(f"[network: {len(refused) - _MOST_LINES} more destinations were refused]")
    before = (
        result.stderr
        if result.stderr.endswith("\n") or not result.stderr
        else (f"{result.stderr}\n")
    )
    return replace(result, stderr=before + "\n".join(lines) + "\n")


def connection_events(call_id: str, result: ExecutionResult) -> list[EventDraft]:
    """Return one event for each destination of a command, with the number of connections."""
    return [SandboxConnection(call_id=call_id, **asdict(row)) for row in result.connections]
