"""A tool call as a `Review`.

The review reads inputs as the tool does. If an input uses several names of a parameter, the first
of these names counts. Unknown names are ignored. For example, a `cwd` that `execute` ignores is not
shown as its directory, but in the list of unused inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from django.core.signals import setting_changed
from pydantic import TypeAdapter, ValidationError

from agents.kernel.features import collect
from agents.review.diff import diff_section
from agents.review.json_text import compact, text_of
from agents.review.parts import (
    NOT_LOOKED_UP,
    WHOLE_INPUT,
    CommandSection,
    Fact,
    Field,
    FieldsSection,
    Note,
    Review,
    Section,
    Unreadable,
    cut_notes,
    name_in,
    one_line,
)
from agents.review.room import CHARACTERS, LINES, Room, end_share
from agents.review.spans import lines_of
from sandbox.backends.editing import replace_text
from sandbox.backends.limits import FileLimits
from sandbox.errors import InvalidRequest
from sandbox.importable import Importable, ImportableFile
from sandbox.paths import WORKING_DIR

TITLE_PATH = 160
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
    """The context of a call. `before` is the content of the named file, None if it does not exist.

    `time_limit` is the agent's limit in seconds, None for the tool's default. `network` is a
    sentence. `refusal` is the reason why the call would fail with any input, or "". `imports` are
    the files that Python code can import.
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
    """Return a review of the call. Each key of `tool_input` is in one of the sections.

    An input that does not fit its tool is shown as fields. See `Around` for the other arguments.
    """
    around = Around(before, time_limit, network, refusal, imports)
    given = Given(tool_input)
    known = call_reviews().get(tool)
    review = known.read(tool, given, around) if known else None
    if review is None:
        title = f"Call {one_line(tool, TITLE_PATH)}"
        return Review(title, (fields_section("Inputs", tool_input),))
    title, sections = review
    if given:
        sections = [*sections, fields_section(_UNUSED, given)]
    return Review(title, tuple(sections))


class Given(Mapping[str, Any]):
    """An input from which each value can be taken once. As a mapping, it contains the other values.

    It copies nothing, because an input can have a million names.
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
        """Take all of these parameters. Returns None and takes none unless all are text."""
        found = [self.name(names) for names in parameters]
        if not all(name is not None and isinstance(self[name], str) for name in found):
            return None
        return [self._pop(str(name)) for name in found]

    def put_back(self) -> None:
        """Make all values available again."""
        self._taken.clear()

    def _pop(self, name: str) -> Any:
        value = self[name]
        self._taken.add(name)
        return value


Read = tuple[str, list[Section]] | None
"""A title and sections. None: the input does not fit its tool."""
Reader = Callable[[str, Given, Around], Read]


@dataclass(frozen=True, slots=True)
class CallReview:
    """The readable form of a tool's calls. A feature lists its own in `review.CALL_REVIEWS`."""

    tool: str
    read: Reader
    with_preview: Callable[[Review, Mapping[str, Any]], Review] | None = None
    """Adds the result of `Tool.trial`."""
    instead_of_input: bool = True
    """Whether the review is easier to read than the input, also after the call."""


def _command(tool: str, given: Given, around: Around) -> Read:
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


def _write(tool: str, given: Given, around: Around) -> Read:
    taken = given.texts(PATH, ("content",))
    if taken is None:
        return None
    path, content = taken
    notes = _notes(around)
    name = one_line(path, TITLE_PATH)
    if isinstance(around.before, Unreadable):
        notes += (Note(f"Only the new content is shown. {around.before.reason}", "warning"),)
        return f"Write {name}", [diff_section(path, "", content, notes=notes, excerpt=True)]
    verb = "Create" if around.before is None else "Replace"
    return f"{verb} {name}", [diff_section(path, around.before, content, notes=notes)]


def _edit(tool: str, given: Given, around: Around) -> Read:
    taken = given.texts(PATH, OLD_TEXT, NEW_TEXT)
    everywhere = _boolean(given.take(("replace_all",)))
    if taken is None or everywhere is None:
        given.put_back()
        return None
    path, old, new = taken
    title = f"Edit {one_line(path, TITLE_PATH)}"
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
    """Parse a boolean as the tool does ("yes" is true). None for an invalid value."""
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


_BUILT_IN = (
    CallReview("execute", _command, instead_of_input=False),
    CallReview("execute_in_sandbox", _command, instead_of_input=False),
    CallReview("execute_python", _command, instead_of_input=False),
    CallReview("write_file", _write),
    CallReview("edit_file", _edit),
)


@lru_cache(maxsize=1)
def call_reviews() -> Mapping[str, CallReview]:
    """Return the reviews of Vel and of the installed features, by tool."""
    of_features = [review for _, review in collect("review", "CALL_REVIEWS")]
    return {review.tool: review for review in (*_BUILT_IN, *of_features)}


def readable_tools() -> list[str]:
    """Return the tools for which a review, such as a diff, is easier to read than the input."""
    return sorted(name for name, each in call_reviews().items() if each.instead_of_input)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        call_reviews.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.review.call")


def with_preview(review: Review, tool: str, preview: Mapping[str, Any]) -> Review:
    """Add the result of the call's trial to `review`, in the tool's own form or as fields."""
    known = call_reviews().get(tool)
    if known is not None and known.with_preview is not None:
        return known.with_preview(review, preview)
    shown = fields_section("Effect of the call in a trial", preview)
    return Review(review.title, (*review.sections, shown), review.notes)


_TITLE = "Files of the workspace that this code can import"
_WHOLE_FILES = "The code can import all of it. Look at the files in the workspace."
_CHANGES_PATH = (
    "The code may change where Python looks for modules (sys.path). Modules of the working "
    "directory are shown here, those of other directories are not."
)


def imports_notes(imports: Importable | Unreadable) -> tuple[Note, ...]:
    """Return warnings about files that are not shown."""
    if isinstance(imports, Unreadable):
        return (Note(f"Files that the code imports are not shown. {imports.reason}", "warning"),)
    notes = []
    if imports.missing:
        problem = one_line(imports.missing)
        notes.append(
            Note(f"Not every file that the code can import is shown. {problem}", "warning")
        )
    if imports.changes_path:
        notes.append(Note(_CHANGES_PATH, "warning"))
    return tuple(notes)


def imports_sections(imports: Importable | Unreadable) -> tuple[FieldsSection, ...]:
    if isinstance(imports, Unreadable) or not imports.files:
        return ()
    room = Room()
    fields = fields_of([(file.path, _text(file)) for file in imports.files], room)
    return (FieldsSection(_TITLE, tuple(fields), cut_notes(room, _WHOLE_FILES)),)


def _text(file: ImportableFile) -> str:
    return f"[{file.reason}]" if file.text is None else file.text.removesuffix("\n")


FIELDS = 1_000
"""Of more fields, only the first and the last ones are shown."""
_LINE_COST = CHARACTERS // LINES


def fields_section(
    title: str, fields: Mapping[str, Any], *notes: Note, where: str = WHOLE_INPUT
) -> FieldsSection:
    """Return a section that shows `fields`, which `reversed` must accept, with `notes` below.

    If parts are omitted, another note gives their size. `where` is the next sentence of this note:
    it says how to see these parts.
    """
    room = Room()
    missing = max(len(fields) - FIELDS, 0)
    last = end_share(FIELDS) if missing else 0
    head = list(islice(fields, FIELDS - last))
    tail = list(islice(reversed(cast("dict[str, Any]", fields)), last))[::-1]
    shown = fields_of([(name, fields[name]) for name in (*head, *tail)], room)
    if missing:
        words = f"⋯ {missing:,} more {'input is' if missing == 1 else 'inputs are'} not shown ⋯"
        shown.insert(len(head), Field(words, ()))
        text = f"{missing:,} inputs between the first and the last ones are not shown. {where}"
        notes = (*notes, Note(text, "warning"))
    return FieldsSection(title, tuple(shown), (*notes, *cut_notes(room, where)))


def fields_of(pairs: list[tuple[str, Any]], room: Room) -> list[Field]:
    """Return a field for each pair. Small values get room first, so long ones cannot hide them."""
    names = [name_in(room, str(name)) for name, _ in pairs]
    texts = _texts([value for _, value in pairs])
    sizes = [len(text) + _LINE_COST * text.count("\n") for text in texts]
    shown: dict[int, Field] = {}
    for left, number in zip(
        range(len(pairs), 0, -1),
        sorted(range(len(pairs)), key=sizes.__getitem__),
        strict=True,
    ):
        share = room.part(left)
        shown[number] = Field(names[number], lines_of(texts[number], share))
        room.give_back(share)
    return [shown[number] for number in range(len(pairs))]


def _texts(values: list[Any]) -> list[str]:
    """Return the values as text. Indented JSON shares the room of one section, smallest first."""
    texts = [value if isinstance(value, str) else compact(value) for value in values]
    left = CHARACTERS
    for number in sorted(range(len(values)), key=lambda number: len(texts[number])):
        if isinstance(values[number], str) or len(texts[number]) > left:
            continue
        texts[number] = text_of(values[number], left)
        left -= len(texts[number])
    return texts
