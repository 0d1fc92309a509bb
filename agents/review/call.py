"""A tool call as a `Reading`.

Inputs are taken as the tools take them: the first of a parameter's names counts, and what a tool
does not know is ignored when it runs. So a `cwd` that `execute` ignores is not shown as its
directory: it stands among the inputs that have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agents.review.diff import diff_section
from agents.review.fields import fields_section
from agents.review.imports import imports_notes, imports_sections
from agents.review.json_text import text_of
from agents.review.parts import (
    NOT_LOOKED_UP,
    CommandSection,
    Fact,
    Note,
    Review,
    Section,
    Unreadable,
    cut_notes,
    name_in,
    one_line,
)
from agents.review.room import Room
from agents.review.spans import lines_of
from agents.review.sql import sql_section
from sandbox.backends.editing import replace_text
from sandbox.backends.limits import FileLimits
from sandbox.errors import InvalidRequest
from sandbox.importable import Importable
from sandbox.paths import WORKING_DIR

_TITLE_PATH = 160
NOTHING_IMPORTED = Importable()
_UNUSED = "Other inputs, which this tool does not use"
_BOOLEAN = TypeAdapter(bool)

PATH = ("path", "file_path")
OLD_TEXT = ("old_text", "old_string")
NEW_TEXT = ("new_text", "new_string")
_TIME_LIMIT: dict[str, tuple[str, ...]] = {
    "execute": ("timeout",),
    "execute_python": ("timeout",),
    "execute_in_sandbox": ("timeout_seconds", "timeout"),
}
_SECONDS = {"execute": 30.0, "execute_python": 60.0, "execute_in_sandbox": 120.0}


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds a call. `before` is the content of the file it names, None for no file.

    `time_limit` is the agent's own in seconds, None for the tool's; `network` is a sentence.
    `refusal` says why the call would fail whatever it holds, empty where nothing is known.
    `imports` are the files that Python code can import.
    """

    before: str | Unreadable | None = NOT_LOOKED_UP
    time_limit: float | None = None
    network: str = ""
    refusal: str = ""
    imports: Importable | Unreadable = NOTHING_IMPORTED


def call_review(
    tool: str,
    tool_input: Mapping[str, Any],
    before: str | Unreadable | None = NOT_LOOKED_UP,
    *,
    time_limit: float | None = None,
    network: str = "",
    refusal: str = "",
    imports: Importable | Unreadable = NOTHING_IMPORTED,
) -> Review:
    """What the call would do. Every key of `tool_input` stands in one of the sections.

    An input that does not fit its tool is shown as fields. See `Around` for the rest.
    """
    around = Around(before, time_limit, network, refusal, imports)
    given = _Given(tool_input)
    known = _READERS.get(tool)
    review = known(tool, given, around) if known else None
    if review is None:
        title = f"Call {one_line(tool, _TITLE_PATH)}"
        return Review(title, (fields_section("Inputs", tool_input),))
    title, sections = review
    if given:
        sections = [*sections, fields_section(_UNUSED, given)]
    return Review(title, tuple(sections))


class _Given(Mapping[str, Any]):
    """An input of which each value is taken once, and as a mapping what nobody took.

    It copies nothing: an input may have a million names.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._taken: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name in self._taken:
            raise KeyError(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._values if name not in self._taken)

    def __reversed__(self) -> Iterator[str]:
        names = reversed(cast("dict[str, Any]", self._values))
        return (name for name in names if name not in self._taken)

    def __len__(self) -> int:
        return len(self._values) - len(self._taken)

    def name(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if name in self), None)

    def take(self, names: tuple[str, ...]) -> Any:
        name = self.name(names)
        return None if name is None else self._pop(name)

    def texts(self, *parameters: tuple[str, ...]) -> list[str] | None:
        """All of these parameters; nothing is taken unless each is there and is text."""
        found = [self.name(names) for names in parameters]
        if not all(name is not None and isinstance(self[name], str) for name in found):
            return None
        return [self._pop(str(name)) for name in found]

    def put_back(self) -> None:
        """As if nothing had been taken."""
        self._taken.clear()

    def _pop(self, name: str) -> Any:
        value = self[name]
        self._taken.add(name)
        return value


Read = tuple[str, list[Section]] | None
_Reader = Callable[[str, _Given, Around], Read]


def _command(tool: str, given: _Given, around: Around) -> Read:
    is_python = tool == "execute_python"
    taken = given.texts(("code",) if is_python else ("command",))
    if taken is None:
        return None
    room = Room()
    asked = given.take(_TIME_LIMIT[tool])
    if asked is None:
        limit = f"{around.time_limit or _SECONDS[tool]:g} s"
    else:
        limit = f"{name_in(room, text_of(asked))} s, as the agent asks"
    facts = [Fact("Directory", WORKING_DIR), Fact("Time limit", limit)]
    if around.network:
        facts.append(Fact("Network", one_line(around.network)))
    language = "python" if is_python else "bash"
    title = "Run Python" if is_python else "Run a command"
    notes = (*_notes(around), *imports_notes(around.imports))
    lines = lines_of(taken[0], room)
    command = CommandSection(language, lines, tuple(facts), (*notes, *cut_notes(room)))
    return title, [command, *imports_sections(around.imports)]


def _sql(tool: str, given: _Given, around: Around) -> Read:
    taken = given.texts(("query", "sql", "statement"))
    if taken is None:
        return None
    taken_name = given.texts(("connection", "database", "connection_name"))
    connection = taken_name[0] if taken_name else ""
    title = f"Query the database {one_line(connection, _TITLE_PATH)}".rstrip()
    return title, [sql_section(connection, taken[0])]


def _write(tool: str, given: _Given, around: Around) -> Read:
    taken = given.texts(PATH, ("content",))
    if taken is None:
        return None
    path, content = taken
    notes = _notes(around)
    name = one_line(path, _TITLE_PATH)
    if isinstance(around.before, Unreadable):
        notes += (Note(f"Only the new content is shown. {around.before.reason}", "warning"),)
        return f"Write {name}", [diff_section(path, "", content, notes=notes, excerpt=True)]
    verb = "Create" if around.before is None else "Replace"
    return f"{verb} {name}", [diff_section(path, around.before, content, notes=notes)]


def _edit(tool: str, given: _Given, around: Around) -> Read:
    taken = given.texts(PATH, OLD_TEXT, NEW_TEXT)
    everywhere = _boolean(given.take(("replace_all",)))
    if taken is None or everywhere is None:
        given.put_back()
        return None
    path, old, new = taken
    title = f"Edit {one_line(path, _TITLE_PATH)}"
    notes = _notes(around)
    if everywhere:
        notes += (Note("Every place with the old text is replaced."),)
    match around.before:
        case Unreadable(reason):
            notes += (Note(f"Only the texts to replace are shown. {reason}", "warning"),)
        case None:
            notes += (_failing("there is no such file."),)
        case str(before):
            most = FileLimits().edit
            try:
                edit = replace_text(before, old, new, replace_all=everywhere, max_length=most)
            except InvalidRequest as error:
                notes += (_failing(error.problem),)
            else:
                if edit.replacements > 1:
                    notes += (Note(f"{edit.replacements} places are replaced."),)
                return title, [diff_section(path, before, edit.text, notes=notes)]
    return title, [diff_section(path, old, new, notes=notes, excerpt=True)]


def _boolean(value: Any) -> bool | None:
    """As the tool reads it ("yes" is true); None for what it would refuse."""
    if value is None:
        return False
    try:
        return _BOOLEAN.validate_python(value)
    except ValidationError:
        return None


def _notes(around: Around) -> tuple[Note, ...]:
    return (_failing(around.refusal),) if around.refusal else ()


def _failing(problem: str) -> Note:
    return Note(f"This call would fail: {one_line(problem)}", "warning")


_READERS: dict[str, _Reader] = {
    "execute": _command,
    "execute_in_sandbox": _command,
    "execute_python": _command,
    "execute_sql": _sql,
    "write_file": _write,
    "edit_file": _edit,
}
