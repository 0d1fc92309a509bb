"""Read the head of a SKILL.md: the YAML between its first two `---` lines.

Values are strings, lists and maps. Anchors, aliases, tags and duplicate keys are refused: a few
hundred bytes of aliases are enough to hang a reader that expands them. Depth and number of values
are checked on the parser's events, before any value is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import yaml
from frontmatter.default_handlers import YAMLHandler

from skills_app.library.problems import InvalidSkill
from skills_app.settings import SkillSettings

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

MAX_DEPTH = 16
MAX_VALUES = 1_500
"""The maximum number of names and texts in a head. The longest public head has 160."""
_MAX_TOLD = 300
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def split_skill(text: str) -> tuple[str, str]:
    """Return (the YAML between the `---` lines, the body) of the SKILL.md `text`, both unchanged.

    Raises `InvalidSkill` if `text` has no head or the head is too long.
    """
    limit = SkillSettings.now().HEAD_BYTES
    if not re.match(r"\ufeff?---[ \t]*\r?\n", text):
        raise InvalidSkill(
            "A skill starts with a head: a line ---, then name: and description:, a line ---, "
            "then the instructions. The file must start with its YAML frontmatter."
        )
    found = _HEAD.match(text)
    if found is None:
        raise InvalidSkill(
            "The head is not properly closed: put a line --- between the fields and the "
            "instructions."
        )
    if len(found[1].encode(errors="surrogatepass")) > limit:
        raise InvalidSkill(f"The head is longer than {limit:,} bytes: shorten it.")
    return found[1], text[found.end() :]


class SkillHandler(YAMLHandler):
    """Let python-frontmatter read these heads: `loads(text, handler=SkillHandler())`.

    `parse` and `loads` of python-frontmatter strip the body. `read_skill` keeps every byte of it.
    """

    def split(self, text: str) -> tuple[str, str]:
        return split_skill(text)

    def load(self, fm: str) -> Value:  # type: ignore[override]  # any YAML
        return _document(fm)


_HANDLER = SkillHandler()


def read_skill(text: str) -> tuple[dict[str, Value], str]:
    """Return (the fields of the head, the body) of the SKILL.md `text`. Raises `InvalidSkill`."""
    head, body = _HANDLER.split(text)
    fields = _HANDLER.load(head)
    if fields == "":
        fields = {}
    if not isinstance(fields, dict):
        raise InvalidSkill("The head must be a YAML mapping: lines of `field: value`.")
    return fields, body


class Unquoted(str):
    """The text of a value without quotes that YAML reads as a number, a truth value or null."""

    __slots__ = ()


_RESOLVER = yaml.resolver.Resolver()
_TEXT = "tag:yaml.org,2002:str"


def _scalar(event: yaml.ScalarEvent) -> str:
    tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, (event.implicit[0], False))
    return event.value if not event.implicit[0] or tag == _TEXT else Unquoted(event.value)


class _Dumper(yaml.SafeDumper):
    """Writes `Unquoted` as a text, so in quotes."""


_Dumper.add_representer(Unquoted, yaml.SafeDumper.represent_str)


class _Map:
    """A map during parsing. `key` is the key that has no value yet."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.key: str | None = None

    def add(self, value: Value) -> None:
        if self.key is None:
            if not isinstance(value, str):
                raise InvalidSkill("The head has a list or a map as a field's name: write text.")
            if value in self.values:
                raise InvalidSkill(f"The head has {value} more than once: keep one of them.")
            self.key = value
        else:
            self.values[self.key] = value
            self.key = None


class _List:
    def __init__(self) -> None:
        self.values: list[Value] = []

    def add(self, value: Value) -> None:
        self.values.append(value)


def events_of(head: str) -> Iterator[yaml.Event]:
    """Yield the YAML parser's events for `head`. Raises `InvalidSkill` for invalid YAML."""
    try:
        yield from yaml.parse(head, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        told = " ".join(str(error).split())[:_MAX_TOLD]
        raise InvalidSkill(
            f"The head is invalid YAML: {told}. Put texts that contain YAML syntax, such as a "
            "colon with a space, in quotes."
        ) from None


def _document(head: str) -> Value:
    """Return the value of the only YAML document in `head`, "" if there is none."""
    result: Value = ""
    opened: list[_Map | _List] = []
    documents = values = 0
    for event in events_of(head):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise InvalidSkill("The head contains more than one YAML document: keep one.")
        if isinstance(event, yaml.NodeEvent):
            _require_plain(event)
            values += 1
            if values > MAX_VALUES:
                raise InvalidSkill(f"The head has more than {MAX_VALUES:,} values: shorten it.")
        if isinstance(event, yaml.CollectionStartEvent):
            if len(opened) >= MAX_DEPTH:
                raise InvalidSkill(f"The head is nested deeper than {MAX_DEPTH} levels.")
            opened.append(_Map() if isinstance(event, yaml.MappingStartEvent) else _List())
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            done: Value = opened.pop().values
        elif isinstance(event, yaml.ScalarEvent):
            done = _scalar(event)
        else:
            continue
        if opened:
            opened[-1].add(done)
        else:
            result = done
    return result


def _require_plain(event: yaml.NodeEvent) -> None:
    if event.anchor:  # an alias has the anchor that it refers to
        raise InvalidSkill("The head uses YAML anchors or aliases: write the values out.")
    tag = getattr(event, "tag", None)
    if tag:
        raise InvalidSkill(f"The head uses the YAML tag {tag[:80]}: write plain values.")


def compose_skill(fields: dict[str, Value], body: str) -> str:
    """Return a SKILL.md with the given fields and body. `read_skill` reads the same fields back."""
    head = yaml.dump(fields, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{head}---\n\n{body.strip()}\n"


def recompose_skill(
    text: str,
    *,
    name: str | None = None,
    description: str | None = None,
    instructions: str | None = None,
) -> str:
    """Return the SKILL.md `text` with the given values replaced. All other fields stay.

    Raises `InvalidSkill` if `text` has no head.
    """
    fields, body = read_skill(text)
    given: dict[str, Value] = {}
    if name is not None:
        given["name"] = name
    if description is not None:
        given["description"] = description
    if given.items() <= fields.items():
        if instructions is None or instructions.strip() == body.strip():
            return text
        return f"{text[: len(text) - len(body)]}\n{instructions.strip()}\n"
    return compose_skill(fields | given, body if instructions is None else instructions)
