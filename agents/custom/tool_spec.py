"""The definition of a tool by a developer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from pydantic import BaseModel

from agents.custom.signature import InvalidTool, Signature, describe, read_signature
from agents.kernel.lazy_modules import lazy_modules
from sandbox.policy import MAX_TIMEOUT

with lazy_modules:
    # Importing jsonschema takes 40 ms, and most tools use type hints.
    from agents.custom import json_schema


EffectName = Literal["read", "write", "external"]
EFFECTS = ("read", "write", "external")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PERMISSION = re.compile(r"\w+\.\w+")


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool that runs as a function of this process. Calling it calls the function.

    `input_schema` is a pydantic model or a JSON Schema of an object; None reads it from the
    handler's type hints. With a schema the handler gets its properties as keyword arguments.

    `effect` is the largest effect of a call: `read` (no change: it may run in parallel with others
    and again after a crash), `write` or `external` (the default: one at a time, and never repeated
    automatically). `requires_approval`: whether a call requires approval; None leaves that to the
    agent. `timeout` in seconds, 600 at most.

    `permission` is a Django permission, as "library.view_book": a call is refused unless the
    agent's person has it at that moment. `atomic` applies to tools of the settings that change
    data: a call's changes in the project's database are committed together, or rolled back if it
    raises or takes too long. Set it to False for a function that waits for other processes.

    >>> ToolSpec("double", "Double a number.", lambda number: number * 2, {"type": "object"}).effect
    'external'
    """

    name: str
    description: str
    handler: Callable[..., Any]
    input_schema: type[BaseModel] | Mapping[str, Any] | None = None
    effect: EffectName = "external"
    requires_approval: bool | None = None
    timeout: float = 30.0
    permission: str = ""
    atomic: bool = True
    signature: Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidTool(
                f"{self.name!r} is no name of a tool: use up to 64 letters, digits, _ and -."
            )
        if not callable(self.handler):
            raise InvalidTool(f"The handler of {self.name} cannot be called: give a function.")
        if self.effect not in EFFECTS:
            raise InvalidTool(f"effect={self.effect!r}: choose from {', '.join(EFFECTS)}.")
        is_number = isinstance(self.timeout, int | float) and not isinstance(self.timeout, bool)
        if not is_number or not 0 < self.timeout <= MAX_TIMEOUT:
            raise InvalidTool(f"timeout={self.timeout!r}: give seconds up to {MAX_TIMEOUT:g}.")
        if not (self.requires_approval is None or isinstance(self.requires_approval, bool)):
            raise InvalidTool(
                f"requires_approval={self.requires_approval!r}: give True, False or None."
            )
        if not isinstance(self.atomic, bool):
            raise InvalidTool(f"atomic={self.atomic!r}: give True or False.")
        if not isinstance(self.permission, str):
            raise InvalidTool(f"permission={self.permission!r}: write it as 'library.view_book'.")
        if self.permission and not _PERMISSION.fullmatch(self.permission):
            raise InvalidTool(f"permission={self.permission!r}: write it as 'library.view_book'.")
        if not isinstance(self.description, str) or not self.description.strip():
            raise InvalidTool(
                f"The tool {self.name} has no description: write a docstring, or give one."
            )
        object.__setattr__(self, "signature", self._read())

    def _read(self) -> Signature:
        given = self.input_schema
        if given is None:
            return read_signature(self.handler, self.name)
        if isinstance(given, type) and issubclass(given, BaseModel):
            model = given
        else:
            model = json_schema.model_of_schema(self.name, given)
        return Signature(model, tuple(model.model_fields), (), "")

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        *,
        effect: EffectName = "external",
        requires_approval: bool | None = None,
        timeout: float = 30.0,
        permission: str = "",
        atomic: bool = True,
    ) -> ToolSpec:
        """Return a tool that calls `function`.

        Its name and docstring are used unless `name` and `description` are given. The other
        arguments are fields of `ToolSpec`. If `function` is a `ToolSpec`, it is returned unchanged
        and the other arguments are ignored. Raises `InvalidTool`.
        """
        if isinstance(function, ToolSpec):
            return function
        if not callable(function):
            raise InvalidTool(f"function={function!r}: give a function.")
        own = name or str(getattr(function, "__name__", ""))
        text = description if description is not None else describe(function).summary
        if not isinstance(text, str):
            raise InvalidTool(f"description={text!r}: give a text.")
        return cls(
            name=own,
            description="\n".join(" ".join(line.split()) for line in text.strip().splitlines()),
            handler=function,
            effect=effect,
            requires_approval=requires_approval,
            timeout=timeout,
            permission=permission,
            atomic=atomic,
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.handler(*arguments, **named)


@overload
def tool(function: Callable[..., Any], /) -> ToolSpec: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: EffectName = "external",
    requires_approval: bool | None = None,
    timeout: float = 30.0,
    permission: str = "",
    atomic: bool = True,
) -> Callable[[Callable[..., Any]], ToolSpec]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool: `@tool`, or `@tool(effect="read", timeout=10)`.

    >>> @tool(effect="read")
    ... def double(number: int) -> int:
    ...     "Double a number."
    ...     return number * 2
    >>> double(21), double.name
    (42, 'double')
    >>> agent = create_deep_agent(tools=[double])
    """
    if function is not None:
        return ToolSpec.from_function(function, **options)
    return lambda found: ToolSpec.from_function(found, **options)
