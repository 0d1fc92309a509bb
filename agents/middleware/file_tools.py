"""The six file tools on a backend, for agents and for programs. Needs no Django."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, Field

from sandbox.backends.protocol import FileBackend, Result

_PATH = AliasChoices("path", "file_path")


class LsInput(BaseModel):
    path: str = Field(default=".", validation_alias=_PATH)


class ReadFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=100, ge=1, le=10_000)
    line_offset: int = 0


class WriteFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    content: str


class EditFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    old_text: str = Field(validation_alias=AliasChoices("old_text", "old_string"), min_length=1)
    new_text: str = Field(validation_alias=AliasChoices("new_text", "new_string"))
    replace_all: bool = False


class GlobInput(BaseModel):
    pattern: str
    path: str | None = Field(default=None, validation_alias=_PATH)


class GrepInput(BaseModel):
    pattern: str
    path: str = Field(default=".", validation_alias=_PATH)
    include: str | None = Field(default=None, validation_alias=AliasChoices("include", "glob"))
    ignore_case: bool = False


@dataclass(frozen=True)
class FileTool:
    """One file tool. `call` calls the tool on a backend, with a validated input."""

    name: str
    description: str
    input_model: type[Any]
    effect: Literal["read", "write"]
    call: Callable[[FileBackend, Any], Result]
    time_limit: float = 30.0


FILE_TOOLS: tuple[FileTool, ...] = (
    FileTool(
        "ls",
        "List a directory.",
        LsInput,
        "read",
        lambda files, given: files.ls(given.path),
    ),
    FileTool(
        "read_file",
        "Read a text file with line numbers. While has_more, continue at offset (lines to skip), "
        "in a cut line at line_offset (characters).",
        ReadFileInput,
        "read",
        lambda files, given: files.read_file(
            given.path, given.offset, given.limit, given.line_offset
        ),
    ),
    FileTool(
        "write_file",
        "Create a file, or replace it whole.",
        WriteFileInput,
        "write",
        lambda files, given: files.write_file(given.path, given.content),
    ),
    FileTool(
        "edit_file",
        "Replace old_text in a file. It must match exactly (without the line numbers) and be "
        "unique, unless replace_all is true.",
        EditFileInput,
        "write",
        lambda files, given: files.edit_file(
            given.path, given.old_text, given.new_text, given.replace_all
        ),
    ),
    FileTool(
        "glob",
        "Find files by name, such as **/*.md.",
        GlobInput,
        "read",
        lambda files, given: files.glob(given.pattern, given.path),
    ),
    FileTool(
        "grep",
        "Search files for a regular expression; include narrows by name.",
        GrepInput,
        "read",
        lambda files, given: files.grep(
            given.pattern, given.path, given.include, given.ignore_case
        ),
        time_limit=60.0,
    ),
)
