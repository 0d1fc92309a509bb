"""The tools that run commands and Python, for agents and for programs. Needs no Django."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from sandbox.errors import SandboxError
from sandbox.policy import MAX_TIMEOUT

TIMEOUT = Field(default=None, gt=0, le=MAX_TIMEOUT)


class ExecuteInput(BaseModel):
    command: str = Field(min_length=1)
    timeout: float | None = TIMEOUT


class ExecutePythonInput(BaseModel):
    code: str = Field(min_length=1)
    timeout: float | None = TIMEOUT


@dataclass(frozen=True)
class CommandTool:
    """One tool that runs code. `source` is the name of the input's field with the code."""

    name: Literal["execute", "execute_python"]
    description: str
    input_model: type[Any]
    source: Literal["command", "code"]
    time_limit: float

    def run(self, backend: Any, given: Any, seconds: float | None = None) -> dict[str, Any]:
        """Run the code of a validated input with a backend.

        Returns `{"error": …}` if the code did not run. `seconds` is the time limit; None: that of
        the input, or the default.
        """
        limit = given.timeout if seconds is None else seconds
        try:
            found: dict[str, Any] = getattr(backend, self.name)(
                getattr(given, self.source), limit or self.time_limit
            )
        except SandboxError as error:
            return {"error": str(error)}
        return found


def command_tools(where: str) -> tuple[CommandTool, CommandTool]:
    """Return the two tools. `where` completes the description "Run a bash command …"."""
    return (
        CommandTool(
            "execute",
            f"Run a bash command {where}. timeout: seconds, 30 by default, 600 at most.",
            ExecuteInput,
            "command",
            30.0,
        ),
        CommandTool(
            "execute_python",
            f"Run Python 3 code {where}; print what you want to see. timeout: seconds, 60 by "
            "default, 600 at most.",
            ExecutePythonInput,
            "code",
            60.0,
        ),
    )


IN_SANDBOX = command_tools("in the sandbox")
BESIDE_FILES = command_tools("on the machine with the files")
