"""Commands in a sandbox as a component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.middleware.command_tools import BESIDE_FILES, IN_SANDBOX, CommandTool
from agents.middleware.input_check import fitting_input
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware, value_of
from agents.sdk.config import COMMAND_SECONDS, DEFAULT_WORKSPACE, DeepAgentConfig, DefaultDirectory
from agents.sdk.errors import SetupError
from sandbox.backends.sandboxed import SandboxFilesystemBackend
from sandbox.policy import MAX_TIMEOUT

_NAME = "SandboxMiddleware"


class SandboxMiddleware(BuiltInMiddleware):
    """The tools execute and execute_python in a sandbox over `working_dir` (default ./workspace).

    With `network`, commands can reach the internet. `timeout` is the limit of a command in seconds.

    >>> sandbox = SandboxMiddleware("./work", timeout=60)
    >>> sandbox.execute("echo hello")["stdout"]
    'hello\\n'
    >>> agent = create_deep_agent(middleware=[sandbox])
    """

    name = "sandbox"
    leave_out = "sandbox=False"

    def __init__(
        self,
        working_dir: str | Path | None = None,
        network: bool = False,
        timeout: int = COMMAND_SECONDS,
    ) -> None:
        self.working_dir = working_dir
        self.network = network
        arguments.check_paths(self, ("working_dir",))
        arguments.check_flags(self, ("network",))
        arguments.check_number("timeout", timeout, 1, int(MAX_TIMEOUT))
        self.timeout = timeout

    @cached_property
    def backend(self) -> SandboxFilesystemBackend:
        """Return the sandbox for use without an agent. It is created at the first command."""
        directory = self.working_dir or DEFAULT_WORKSPACE
        return SandboxFilesystemBackend(directory, self.network, self.timeout)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        return replace(
            config,
            sandbox_working_dir=working_directory(config, self.working_dir, _NAME),
            sandbox_network=value_of(
                "sandbox_network", config.sandbox_network, self.network, False, _NAME
            ),
            sandbox_timeout=value_of(
                "sandbox_timeout", config.sandbox_timeout, self.timeout, COMMAND_SECONDS, _NAME
            ),
        )

    def check(self, config: DeepAgentConfig) -> None:
        if not config.sandbox_enabled:
            raise SetupError(
                "sandbox=False (sandbox_enabled), or a FilesystemMiddleware without a sandbox, "
                f"contradicts the {_NAME}: leave one out."
            )

    def get_tools(self) -> Sequence[ToolSpec]:
        return [_spec(tool, getattr(self, tool.name)) for tool in IN_SANDBOX]

    def execute(self, command: str, timeout: float | None = None) -> dict[str, Any]:
        """Run a bash command in the sandbox.

        `timeout` is in seconds; None means the `timeout` of the component. Returns stdout, stderr,
        exit_code and success, or only `error` if the command did not run. Raises
        `SandboxUnavailable` on a machine without a sandbox.
        """
        return _run(IN_SANDBOX[0], self.backend, command, timeout)

    def execute_python(self, code: str, timeout: float | None = None) -> dict[str, Any]:
        """Run Python 3 code in the sandbox as `execute` runs commands. Print what you want to see.

        The default of `timeout` is 60 s, unless the component has another `timeout` than 30 s.
        """
        return _run(IN_SANDBOX[1], self.backend, code, timeout)

    def get_system_prompt_segment(self) -> str:
        return (
            "## Execution\nCommands and Python run in a sandbox; each call is a new process. "
            "Compute with code rather than in your head, and check results before you rely on them."
        )


def create_execution_tools(backend: Any) -> list[ToolSpec]:
    """Return the tools execute and execute_python, which run code with a backend.

    The backend is a `SandboxFilesystemBackend`, or an object of yours with `execute(command,
    timeout)` and perhaps `execute_python(code, timeout)`, each with its tool. An agent with this
    backend in a `FilesystemMiddleware` has these tools itself. Raises `SetupError`.

    >>> from vel import SandboxFilesystemBackend, create_execution_tools
    >>> execute, execute_python = create_execution_tools(SandboxFilesystemBackend("./work"))
    >>> execute(command="echo hello")["stdout"]
    'hello\\n'
    """
    if not callable(getattr(backend, "execute", None)) or isinstance(backend, type):
        raise arguments.wrong("backend", "a backend that runs commands", backend)
    is_vels = isinstance(backend, SandboxFilesystemBackend)
    tools = IN_SANDBOX if is_vels else BESIDE_FILES
    return [
        _spec(tool, partial(_run, tool, backend))
        for tool in tools
        if callable(getattr(backend, tool.name, None))
    ]


def _spec(tool: CommandTool, run: Any) -> ToolSpec:
    def handler(timeout: float | None = None, **source: str) -> dict[str, Any]:
        found: dict[str, Any] = run(source.get(tool.source, ""), timeout)
        return found

    return ToolSpec(
        tool.name,
        tool.description,
        handler,
        tool.input_model,
        effect="write",
        timeout=MAX_TIMEOUT,
    )


def _run(tool: CommandTool, backend: Any, source: str, timeout: float | None) -> dict[str, Any]:
    given = fitting_input(tool.name, tool.input_model, {tool.source: source, "timeout": timeout})
    if isinstance(given, str):
        return {"error": given}
    return tool.run(backend, given, given.timeout or _limit_of(backend))


def _limit_of(backend: Any) -> float | None:
    """Return the limit in seconds that was set for a sandbox, or None for that of each tool."""
    if not isinstance(backend, SandboxFilesystemBackend):
        return None
    seconds = backend.sandbox.timeout
    return seconds if seconds != COMMAND_SECONDS else None


def working_directory(
    config: DeepAgentConfig, own: str | Path | None, name: str
) -> str | Path | None:
    """Return the working directory of the agent: `own`, or else that of `config`.

    `own` is the directory of the middleware `name`. Raises `SetupError` if both are given and
    differ.
    """
    given = config.sandbox_working_dir
    if own is None:
        return given
    directory = Path(own).expanduser().resolve()
    is_default = given is None or isinstance(given, DefaultDirectory)
    if not is_default and Path(str(given)).expanduser().resolve() != directory:
        raise SetupError(
            f"sandbox_working_dir={str(given)!r} contradicts the directory {directory} of the "
            f"{name}: leave one out."
        )
    return str(directory)
