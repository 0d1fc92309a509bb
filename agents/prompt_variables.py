"""Variables in an agent's prompt, such as `{{date}}`, `{{user.name}}` and `{{context.NAME}}`.

This is not a template language: no logic, no attributes, one pass from left to right, and values
are not expanded again. Only the exact form without spaces is a variable, and `{{{{date}}` produces
`{{date}}`. Other braces do not change, because prompts contain examples of template languages.

Values are untrusted: they become one line of visible characters that can neither start a section of
the prompt nor imitate a tag or a note of Vel.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from agents.hidden_text import HIDDEN_RANGES

Value: TypeAlias = str | int | float | bool

NAMES = (
    "date",
    "time_zone",
    "user.name",
    "user.first_name",
    "thread.id",
    "thread.title",
    "agent.name",
)
"""All names except those of the caller, which start with `context.`."""
CONTEXT = "context."
VALUE_CHARACTERS = 200
CONTEXT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

_FORM = re.compile(r"\{\{(\{\{)?([a-z_]{1,32}(?:\.[A-Za-z0-9_]{1,64})?)\}\}")
_NEARLY = re.compile(r"\{\{ {0,4}([A-Za-z0-9_.-]{1,64}) {0,4}\}\}")
_OUR_NAMESPACES = ("user.", "thread.", "agent.", CONTEXT)
_REPLACED = str.maketrans({"[": "(", "]": ")", "<": "‹", ">": "›"})
_BEGINS_BLOCK = frozenset("#=-*+`~")
_MAY_PRECEDE_BLOCK = " \t>-*+.)0123456789"
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def names_in(prompt: str) -> frozenset[str]:
    """Return the variables in `prompt`."""
    return frozenset(name for escaped, name in _ours(prompt) if not escaped and _is_known(name))


def unknown_names(prompt: str) -> list[str]:
    """Return unknown names in Vel's namespaces, such as `user.nmae`."""
    found = (name for escaped, name in _ours(prompt) if not escaped and not _is_known(name))
    return list(dict.fromkeys(found))


def problem_of(prompt: str) -> str:
    """Return the error for an unknown variable in `prompt`; empty without one."""
    unknown = unknown_names(prompt)
    if not unknown:
        return ""
    name = unknown[0]
    return (
        f"there is no variable {{{{{name}}}}}; known are date, time_zone, user.name, "
        "user.first_name, thread.id, thread.title, agent.name and context.NAME. For the "
        f"text itself write {{{{{{{{{name}}}}}."
    )


def left_as_text(prompt: str) -> list[str]:
    """Return text that looks like a variable but is not, such as `{{ date }}` or `{{foo}}`."""
    if "{{" not in prompt:
        return []
    found = (match[0] for match in _NEARLY.finditer(prompt))
    return list(dict.fromkeys(text for text in found if not any(_ours(text))))


def escaped(text: str) -> str:
    """Escape all variables, so that the prompt contains `text` unchanged."""

    def again(match: re.Match[str]) -> str:
        return "{{" + match[0] if _is_ours(match[2]) else match[0]

    return _FORM.sub(again, text)


def expand(prompt: str, values: Mapping[str, Value]) -> str:
    """Return `prompt` with the values of its variables. Raises `KeyError` for a missing value."""
    if "{{" not in prompt:
        return prompt
    pieces: list[str] = []
    end = 0
    begins_line = True
    for match in _FORM.finditer(prompt):
        between = prompt[end : match.start()]
        last_line = between.rpartition("\n")
        begins_line = (begins_line or bool(last_line[1])) and not last_line[2].strip(
            _MAY_PRECEDE_BLOCK
        )
        text = _replacement(match, values, begins_line=begins_line)
        pieces += (between, text)
        begins_line = begins_line and not text
        end = match.end()
    return "".join((*pieces, prompt[end:]))


def plain(text: str) -> str:
    """Return `text` on one line, without invisible characters, and with `[]<>` replaced."""
    seen = "".join(" " if char.isspace() else char for char in text if not _is_hidden(char))
    return " ".join(seen.split()).translate(_REPLACED)


def shortened(text: str) -> str:
    """Return `plain` text of at most `VALUE_CHARACTERS`."""
    line = plain(text)
    if len(line) > VALUE_CHARACTERS:
        line = f"{line[: VALUE_CHARACTERS - 1].rstrip()}…"
    return line


def _ours(prompt: str) -> Iterator[tuple[bool, str]]:
    if "{{" in prompt:
        for match in _FORM.finditer(prompt):
            if _is_ours(match[2]):
                yield bool(match[1]), match[2]


def _is_ours(name: str) -> bool:
    return name in NAMES or name.startswith(_OUR_NAMESPACES)


def _is_known(name: str) -> bool:
    if name.startswith(CONTEXT):
        return CONTEXT_NAME.fullmatch(name, len(CONTEXT)) is not None
    return name in NAMES


def _replacement(match: re.Match[str], values: Mapping[str, Value], *, begins_line: bool) -> str:
    name = match[2]
    if match[1] and _is_ours(name):
        return match[0][2:]
    if match[1] or not _is_known(name):
        return match[0]
    value = values[name]
    if not isinstance(value, str):
        return json.dumps(value)
    # Headings, fences and lists only occur at the start of a line.
    return "\\" + value if begins_line and value[:1] in _BEGINS_BLOCK and value else value


def _is_hidden(char: str) -> bool:
    if char.isspace():
        return False
    code = ord(char)
    return unicodedata.category(char) in _INVISIBLE or any(
        first <= code <= last for first, last in HIDDEN_RANGES
    )
