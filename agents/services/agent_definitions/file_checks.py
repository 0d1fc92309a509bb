"""The problems of an agent's file, each with its line."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agents.agent_files.reading import BadFile, Document, FileProblem, Path, read_document
from agents.agent_files.shape import check_shape, file_fields, in_snake_case
from agents.kernel.options import option_classes, part_of, tolerated_options
from agents.providers.registry import PROVIDERS
from agents.spec import SubagentSpec

MOST_PROBLEMS = 50


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file. `data` has the names of `file_fields`; `origin` maps them to paths in the file."""

    document: Document
    data: dict[str, Any]
    origin: dict[Path, Path]

    def problem(self, path: Path, message: str) -> FileProblem:
        """Return a problem with its line. `path` consists of names of `file_fields`."""
        written = path
        for end in range(len(path), 0, -1):
            if path[:end] in self.origin:
                written = (*self.origin[path[:end]], *path[end:])
                break
        return self.document.problem(written, message)


def read_agent_file(text: str) -> ReadFile:
    """Return the checked file. Raises `BadFile` if it does not have the form of an agent's file."""
    document = read_document(text)
    data, origin = in_snake_case(document.data)
    file = ReadFile(document, data, origin)
    if errors := check_shape(data):
        told = [each for each in errors if not _is_of_other_kind(each)]
        problems = [file.problem(_path_of(each), _told(each)) for each in told[:MOST_PROBLEMS]]
        raise BadFile(_in_order(problems))
    return file


def check_names_in_file(
    file: ReadFile,
    present: dict[str, Any],
    *,
    known_tools: Collection[str],
    known_toolboxes: Collection[str],
) -> None:
    """Raise `BadFile` for unknown names of tools, providers and toolboxes.

    Patterns of tools are not checked. Names in `present`, the data of the agent's present file, are
    accepted.
    """
    data = file.data
    problems: list[FileProblem] = []

    def require(path: Path, name: str, known: Collection[str], what: str) -> None:
        if name not in known:
            message = f"{name!r} is no {what}{_near(name, known)}"
            problems.append(file.problem(path, message))

    named, offered = _tools_in(data)
    tools = {*known_tools, *(name for _, name in _tools_in(present)[0]), *offered}
    for path, name in named:
        if "*" not in name:
            require(path, name, tools, "tool")
    providers = {"", *PROVIDERS, present.get("provider", "")}
    require(("provider",), data.get("provider", ""), providers, "provider")
    toolboxes = {"", *known_toolboxes, present.get("toolbox", "")}
    require(("toolbox",), data.get("toolbox", ""), toolboxes, "toolbox of this host")
    providers |= {each.get("provider", "") for each in present.get("subagents", ())}
    for at, each in enumerate(data.get("subagents", ())):
        require(("subagents", at, "provider"), each.get("provider", ""), providers, "provider")
    if problems:
        raise BadFile(_in_order(problems[:MOST_PROBLEMS]))


def at_its_line(file: ReadFile, message: str) -> FileProblem:
    """Return a service's message, such as `approval_rules.2.when.command: …`, with its line."""
    location, _, reason = message.partition(": ")
    field, *parts = location.split(".")
    if not reason or field not in file_fields():
        return file.problem((), message)
    path: Path = (field, *(int(part) if part.isdecimal() else part for part in parts))
    if field == "subagents":  # these are identified by name, not by number
        name, _, rest = reason.partition(": ")
        names = [each["name"] for each in file.data.get("subagents", ())]
        inner = path[2:]
        if not parts and name in names:
            reason = rest
        name = parts[0] if parts else name
        if name in names:
            path = ("subagents", names.index(name), *inner)
    return file.problem(path, reason)


def _is_of_other_kind(error: Any) -> bool:
    """Return whether the error says that an object in `interrupt_on` is not a boolean.

    pydantic reports an error for each possible type. For an object, this one does not help.
    """
    loc = error["loc"]
    return loc[0] == "interrupt_on" and loc[2:3] == ("bool",) and isinstance(error["input"], dict)


def _path_of(error: Any) -> Path:
    loc: Path = error["loc"]
    return (*loc[:2], *loc[3:]) if loc[0] == "interrupt_on" else loc


def _told(error: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        of_subagent = error["loc"][0] == "subagents"
        fields = SubagentSpec.model_fields if of_subagent else file_fields()
        nested = len(error["loc"]) > (3 if of_subagent else 1)
        near = "" if nested else _near(str(error["loc"][-1]), fields)
        return f"there is no such field{near or '.'}"
    if kind == "missing":
        return "this must be given."
    value = error.get("input")
    displayed = f" (it is {value!r})" if isinstance(value, str | int | float | bool | None) else ""
    return f"{error['msg']}{displayed[:200]}."


def _near(name: str, known: Collection[str]) -> str:
    """Return the name that is probably meant, and the known names."""
    near = get_close_matches(name, [each for each in known if each], n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]}?" if near else "."
    return f"{meant} There are: {', '.join(sorted(each for each in known if each)) or 'none'}."


def _tools_in(data: dict[str, Any]) -> tuple[list[tuple[Path, str]], set[str]]:
    """Return the tools that checked data names, with their paths, and those that it provides."""
    definition = tolerated_options(data)
    named: list[tuple[Path, str]] = []
    offered: set[str] = set()
    for kind in option_classes():
        part = part_of(definition, kind)
        named += part.tool_names()
        offered |= set(part.offered_tools())
    for at, each in enumerate(data.get("subagents", ())):
        named += [
            (("subagents", at, "tools", n), name) for n, name in enumerate(each.get("tools") or ())
        ]
    return named, offered


def _in_order(problems: list[FileProblem]) -> list[FileProblem]:
    return sorted(problems, key=lambda problem: problem.line)
