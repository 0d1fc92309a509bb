"""Interpret the fields of a SKILL.md. All spellings that public skills use are accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from skills_app.library.carried import CARRIED, EXTRA, as_text, carried_extra, from_json
from skills_app.library.frontmatter import Unquoted, Value
from skills_app.library.normalise import normalise_name, read_name
from skills_app.library.package import SKILL_FILE, Head, errors_of
from skills_app.library.problems import TOO_LONG, Problem, error, warning
from skills_app.settings import SkillSettings

STANDARD = ("allowed-tools", "compatibility", "description", "license", "metadata", "name")
"""The fields of the specification. An export has no other fields at the top level."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")
_YES = frozenset({"", "true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})


def read_head(
    fields: Mapping[str, Value], *, fallback_name: str | None = None
) -> tuple[Head | None, list[Problem]]:
    """Return (the head with normalised values, all problems). The head is None after an error.

    `fallback_name` is the directory's name, for a head without a name.
    """
    reader = _Reader(fields)
    head = reader.read(fallback_name)
    return (None if errors_of(reader.problems) else head), reader.problems


class _Reader:
    """Reads one field after another.

    Each read field leaves `left`; the remaining ones are unknown.
    """

    def __init__(self, fields: Mapping[str, Value]) -> None:
        self.left = dict(fields)
        self.problems: list[Problem] = []
        self.extra: dict[str, str] = {}
        self.metadata: dict[str, Value] = {}
        self.limits = SkillSettings.now()

    def read(self, fallback_name: str | None) -> Head:
        self._tell_unexpected()
        self._take_metadata()
        head = Head(
            name=self._name(fallback_name),
            description=self._description(),
            license=self._text("license"),
            compatibility=self._within(
                "compatibility", self._text("compatibility"), self.limits.COMPATIBILITY_CHARACTERS
            ),
            allowed_tools=self._allowed_tools(),
            title=as_text(self._own("title") or "").strip(),
            version=self._plain("version"),
            author=self._plain("author"),
            tags=self._phrases("tags", self._own("tags", self.metadata.get("tags"))),
            triggers=self._triggers(),
            requires=self._requires(),
            tools_required=self._items("tools_required", self._own("tools_required")),
            priority=self._priority(),
            enabled=self._enabled(),
            extra=self._all_extra(),
            metadata={key: as_text(value) for key, value in self.metadata.items()},
        )
        self._require_printable(head)
        for what, count in (("metadata", len(head.metadata)), ("the head", len(head.extra))):
            if count > self.limits.METADATA_ITEMS:
                limit = self.limits.METADATA_ITEMS
                self._error("too_many", f"There are more than {limit} entries in {what}.")
        return head

    def _tell_unexpected(self) -> None:
        unexpected = sorted(set(self.left) - set(STANDARD))
        if unexpected:
            shown = ", ".join(ascii(name)[1:-1][:60] for name in unexpected[:20])
            self._warn(
                "unexpected_fields",
                f"Unexpected fields in frontmatter: {shown}. Only {', '.join(STANDARD)} are "
                "allowed: put others below metadata, as an export does.",
            )

    def _take_metadata(self) -> None:
        value = self.left.pop("metadata", {})
        if isinstance(value, dict):
            self.metadata = dict(value)
        elif value:
            self.extra["metadata"] = as_text(value)
            self._warn("metadata", "metadata must be a map of names to texts: it is ignored.")

    def _name(self, fallback: str | None) -> str:
        given = self.left.pop("name", "")
        if not isinstance(given, str):
            self._error("name", "Field 'name' must be a non-empty string.")
            return ""
        name, problems = read_name(given, fallback)
        self.problems += problems
        return name

    def _description(self) -> str:
        if "description" not in self.left:
            self._error(
                "description",
                "Missing required field in frontmatter: description. Describe the skill, and when "
                "to use it.",
            )
            return ""
        value = self.left.pop("description")
        if not isinstance(value, str) or not value.strip():
            self._error("description", "Field 'description' must be a non-empty string.")
            return ""
        return self._within("description", value.strip(), self.limits.DESCRIPTION_CHARACTERS)

    def _within(self, field: str, text: str, limit: int) -> str:
        """Return `text`, or only the sentences that fit in `limit` characters, with a warning.

        Public skills exceed the limit of the specification.
        """
        if len(text) <= limit:
            return text
        kept = first_sentences(text, limit)
        self._warn(
            TOO_LONG,
            f"{field.capitalize()} exceeds {limit} character limit ({len(text)} chars): shorten "
            f"it. Its first {len(kept)} characters are used.",
        )
        return kept

    def _text(self, field: str) -> str:
        return as_text(self.left.pop(field, "")).strip()

    def _plain(self, field: str) -> str:
        """Return the text of `field` from the top level, or else from `metadata`."""
        carried = as_text(self.metadata.pop(field, "")).strip()
        return self._text(field) or carried

    def _own(self, field: str, otherwise: Value | None = None) -> Value | None:
        """Return the value of `field`, which only Vel knows; `otherwise` if it is missing."""
        carried = self.metadata.pop(CARRIED[field], None)
        for spelling in (field, field.replace("_", "-")):
            if spelling in self.left:
                return self.left.pop(spelling)
        if carried is None:
            return otherwise
        value = from_json(carried)
        if value is None:
            self.extra[CARRIED[field]] = as_text(carried)
            self._warn(field, f"metadata.{CARRIED[field]} is not JSON: it is ignored.")
        return value

    def _phrases(self, field: str, value: Value | None) -> tuple[str, ...]:
        """Return the items of a field whose items may contain spaces."""
        return self._items(field, [*split_commas(value)] if isinstance(value, str) else value)

    def _triggers(self) -> tuple[str, ...]:
        value = self._own("triggers")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Unquoted) and item:
                self._warn(
                    "triggers",
                    f"The trigger {item[:80]} is not a text in YAML. It is used as the text "
                    f"'{item[:80]}': put it in quotes.",
                )
        return self._phrases("triggers", value)

    def _requires(self) -> tuple[str, ...]:
        """Return the names of the required skills, normalised."""
        names = map(normalise_name, self._items("requires", self._own("requires")))
        return tuple(dict.fromkeys(name for name in names if name))

    def _items(self, field: str, value: Value | None) -> tuple[str, ...]:
        if value is None:
            return ()
        given = split_words(value) if isinstance(value, str) else value
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            self._set_aside(field, value, "a list of texts")
            return ()
        stripped = (str(item).strip() for item in given)
        return self._counted(field, tuple(dict.fromkeys(item for item in stripped if item)))

    def _counted(self, field: str, items: tuple[str, ...]) -> tuple[str, ...]:
        if len(items) > self.limits.LIST_ITEMS:
            self._error(field, f"{field} has more than {self.limits.LIST_ITEMS} entries.")
        return items

    def _set_aside(self, field: str, value: Value, wanted: str) -> None:
        """Keep `value` as an unknown field, with a warning, because it is not `wanted`.

        Some packages use names of Vel's fields with another meaning.
        """
        self.extra[field] = as_text(value)
        self._warn(field, f"{field} is not {wanted}: it is kept, but not used.")

    def _allowed_tools(self) -> tuple[str, ...] | None:
        given = [
            self.left.pop(key) for key in ("allowed-tools", "allowed_tools") if key in self.left
        ]
        if not given:
            return None
        items: list[str] = []
        for item in given[0] if isinstance(given[0], list) else given[:1]:
            found = split_tools(item) if isinstance(item, str) else None
            if found is None:
                self._error(
                    "allowed-tools",
                    "allowed-tools must be names of tools, as in `Read Bash(git add:*)`, with "
                    "balanced parentheses.",
                )
                return None
            items += found
        return self._counted("allowed-tools", tuple(dict.fromkeys(items)))

    def _priority(self) -> int:
        value = self._own("priority")
        if value is None or value == "":
            return 0
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
            return int(value)
        self._set_aside("priority", value, "a whole number")
        return 0

    def _enabled(self) -> bool:
        value = self._text("enabled").lower()
        if value not in _YES | _NO:
            self._error("enabled", "enabled must be true or false.")
        return value not in _NO

    def _all_extra(self) -> dict[str, str]:
        """Return all unknown fields, including those of an earlier export."""
        carried = self.metadata.pop(EXTRA, None)
        if carried is not None:
            held = carried_extra(carried)
            if held is None:
                self.extra[EXTRA] = as_text(carried)
                self._warn("extra", f"metadata.{EXTRA} is not JSON of texts: it is ignored.")
            self.extra = {**(held or {}), **self.extra}
        return {**self.extra, **{key: as_text(value) for key, value in self.left.items()}}

    def _require_printable(self, head: Head) -> None:
        """Add an error if a text has characters that databases, terminals or UTF-8 refuse.

        They can only come from escapes in YAML or JSON.
        """
        if any(_UNPRINTABLE.search(text) for text in _texts(head.as_json())):
            self._error(
                "characters",
                "The head contains control characters or halves of characters: remove them.",
            )

    def _error(self, code: str, message: str) -> None:
        self.problems.append(error(code, message, SKILL_FILE))

    def _warn(self, code: str, message: str) -> None:
        self.problems.append(warning(code, message, SKILL_FILE))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


_SENTENCE_END = re.compile(r"[.!?]\s")


def first_sentences(text: str, limit: int) -> str:
    """Return the first sentences of `text` that fit in `limit` characters.

    `text` must be longer than that. If the sentences are less than half of `limit`, the result has
    words and an ellipsis instead.
    """
    beginning = text[: limit + 1]
    ends = [found.start() + 1 for found in _SENTENCE_END.finditer(beginning)]
    if ends and ends[-1] >= limit // 2:
        return text[: ends[-1]]
    words = text[: limit - 1]
    return f"{words.rpartition(' ')[0].rstrip() or words}…"


_SEPARATORS = re.compile(r"[,\s]")


def split_commas(text: str) -> list[str]:
    """Return the parts of `text` between commas and line ends."""
    return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]


def split_words(text: str) -> list[str]:
    """Return the parts of `text` between commas and white space."""
    return [part for part in re.split(r"[,\s]+", text) if part]


def split_tools(text: str) -> list[str] | None:
    """Return the patterns in a list of tools such as `Read, Bash(git add:*)`.

    Commas and white space separate patterns, except in parentheses. Returns None for an unmatched
    parenthesis.
    """
    items: list[str] = []
    begin = depth = 0
    for at, character in enumerate(text + " "):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and _SEPARATORS.match(character):
            items.append(text[begin:at])
            begin = at + 1
    return None if depth else [item for item in items if item]
