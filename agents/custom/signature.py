"""Make the model of a function's input from its type hints and its docstring."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from agents.custom.typed_dicts import usable_type
from sandbox.errors import SetupError

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class InvalidTool(SetupError, ValueError):
    """The definition of a tool is invalid."""


class _Input(BaseModel):
    model_config = ConfigDict(
        extra="forbid", protected_namespaces=(), arbitrary_types_allowed=False
    )


@dataclass(frozen=True, slots=True)
class Signature:
    """The input of a function. `model` is a pydantic class for it.

    `parameters` are the names that the language model fills, in order. `context` is the name of the
    parameter for a `ToolContext`; empty for none. `positional` are the names of all positional-only
    parameters.
    """

    model: type[BaseModel]
    parameters: tuple[str, ...]
    positional: tuple[str, ...]
    context: str


def misfit(name: str, error: ValidationError) -> str:
    """Return the text for the model about an input of a tool that does not fit."""
    problems = "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'input'}: {item['msg']}"
        for item in error.errors(include_url=False)[:5]
    )
    return f"The input of {name} does not fit: {problems}."


def read_signature(function: Callable[..., Any], name: str) -> Signature:
    """Return the input of `function`.

    Raises `InvalidTool` if it cannot be read: for types without a JSON schema, `*args` or
    `**kwargs`, and reserved names.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InvalidTool(
            f"The tool {name!r} has no readable signature: wrap it in a function of your own."
        ) from error
    hints = _hints(function, name)
    described = describe(function).parameters
    fields: dict[str, Any] = {}
    positional: list[str] = []
    context = ""
    for parameter in signature.parameters.values():
        _check_name(name, parameter)
        annotation = hints.get(parameter.name, parameter.annotation)
        if annotation is ToolContext:
            context = parameter.name
        else:
            fields[parameter.name] = _field(annotation, parameter, described)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
    try:
        model = create_model(f"{name}_input", __base__=_Input, **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        raise InvalidTool(
            f"The parameters of the tool {name!r} have no JSON schema: "
            f"{str(error).splitlines()[0]} Use types that JSON supports."
        ) from error
    return Signature(model, tuple(fields), tuple(positional), context)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(target, include_extras=True)
        return {parameter: usable_type(hint) for parameter, hint in hints.items()}
    except (NameError, TypeError) as error:
        raise InvalidTool(
            f"The type hints of the tool {name!r} cannot be read ({error}): define or import "
            "what they name at the top of the module."
        ) from error


def _check_name(tool: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in _VARIADIC:
        raise InvalidTool(
            f"The tool {tool!r} takes {parameter}. Give each parameter a name, so that the model "
            "can see it."
        )
    if parameter.name.startswith("_") or hasattr(BaseModel, parameter.name):
        raise InvalidTool(
            f"The parameter {parameter.name!r} of the tool {tool!r} has a reserved name. Choose "
            "another name."
        )


def _field(
    annotation: Any, parameter: inspect.Parameter, described: dict[str, str]
) -> tuple[Any, Any]:
    if annotation is inspect.Parameter.empty:
        annotation = Any
    text = described.get(parameter.name)
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        given = next((mark for mark in marks if isinstance(mark, FieldInfo)), None)
        words = next((mark for mark in marks if isinstance(mark, str)), None)
        if given is not None and given.description:
            text = None  # pydantic uses this description
        elif words is not None:
            text = words
        kept = tuple(mark for mark in marks if not isinstance(mark, str))
        annotation = Annotated[(kind, *kept)] if kept else kind
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        return annotation, default
    return annotation, Field(default, description=text) if text else Field(default)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The argument of a function that has a parameter annotated with this class.

    `user` is the person of the run, a row of the project's user model: a tool over your own data
    should check this person's permissions. `session_id` is the caller's name of the thread, or
    None; `agent` is a slug. `progress` shows more output of a running call to watchers, from any
    thread.

    >>> @tool
    ... def who(context: ToolContext) -> str:
    ...     "Return the session."
    ...     return context.session_id
    >>> agent = create_deep_agent(
    ...     scripted_model([{"tool_calls": [("who", {})]}, "Done."]), tools=[who], sandbox=False
    ... )
    >>> asyncio.run(agent.run("Who?"))
    'Done.'
    """

    user: Any
    run_id: str
    thread_id: str
    session_id: str | None
    agent: str
    call_id: str
    progress: Callable[[str], None] = field(repr=False, default=lambda text: None)


_SECTIONS = (
    "args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes|see also"
)
_GOOGLE = re.compile(rf"^({_SECTIONS}):\s*$", re.IGNORECASE)
_ARGUMENTS = re.compile(r"^(args|arguments|parameters|params):?\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_SPHINX = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(returns?|rtype|raises|type|yields?)\b")
_GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"^(\w+)\s*(?::.*)?$")


@dataclass(frozen=True, slots=True)
class Described:
    """`summary` is the text before the first section, `parameters` are texts by name."""

    summary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def describe(function: Callable[..., Any]) -> Described:
    """Read the docstring in the styles of Google, NumPy and Sphinx."""
    text = inspect.getdoc(function) or ""
    lines = text.splitlines()
    summary: list[str] = []
    found: dict[str, list[str]] = {}
    section = ""
    base: int | None = None
    name = ""
    for number, line in enumerate(lines):
        stripped = line.strip()
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.match(line) and section:
            continue
        is_numpy = bool(_UNDERLINE.match(following)) and bool(
            re.fullmatch(_SECTIONS, stripped, re.IGNORECASE)
        )
        if _GOOGLE.match(line) or is_numpy:
            is_list = bool(_ARGUMENTS.match(stripped))
            section = ("numpy" if is_numpy else "google") if is_list else "other"
            base, name = None, ""
            continue
        if (sphinx := _SPHINX.match(stripped)) is not None:
            section, name = "sphinx", sphinx[1]
            found[name] = [sphinx[2]]
            continue
        if _SPHINX_OTHER.match(stripped):
            section, name = "other", ""
            continue
        if not section:
            summary.append(line)
            continue
        if section == "other" or not stripped:
            continue
        indent = len(line) - len(line.lstrip())
        if section in ("google", "numpy"):
            base = indent if base is None else base
            pattern = _GOOGLE_ITEM if section == "google" else _NUMPY_ITEM
            item = pattern.match(stripped) if indent == base else None
            if item is not None:
                name = item[1]
                found[name] = [item[2]] if section == "google" else []
                continue
        if name:
            found[name].append(stripped)
    return Described(
        _joined(summary),
        {key: " ".join(part for part in parts if part) for key, parts in found.items()},
    )


def _joined(lines: Iterable[str]) -> str:
    """Return the paragraphs of a text, each as one line."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n".join(" ".join(part.split()) for part in paragraphs if part.strip())
