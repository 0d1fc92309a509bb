"""Reading the head of a SKILL.md.

The YAML is read as strings only, without aliases, tags or duplicate keys: a few hundred bytes of
aliases are enough to hang a reader that expands them.
"""

from __future__ import annotations

import re
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from skills_app.errors import InvalidSkill

MAX_HEAD_BYTES = 16_384
"""The longest head among 1,345 public skills has 2 kB."""
_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class _PlainLoader(yaml.BaseLoader):
    """Strings, lists and maps; nothing that refers, constructs or repeats."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidSkill("The head uses YAML anchors or aliases: write the values out.")
        if getattr(event, "tag", None):
            raise InvalidSkill(f"The head uses the YAML tag {event.tag}: write plain values.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise InvalidSkill(f"The head has {', '.join(twice)} more than once.")
        return super().construct_mapping(node, deep=deep)


class _PlainHandler(YAMLHandler):
    def load(self, fm: str, **kwargs: Any) -> Any:
        return yaml.load(fm, Loader=_PlainLoader)  # noqa: S506  # strings only, see above


def read_skill(text: str) -> tuple[dict[str, Any], str]:
    """(the head's fields, the body) of a SKILL.md. Raises `InvalidSkill`."""
    found = _HEAD.match(text)
    if found is None:
        raise InvalidSkill(
            "A skill begins with a head: a line ---, then name: and description:, a line ---, "
            "then the instructions."
        )
    if len(found[1].encode()) > MAX_HEAD_BYTES:
        raise InvalidSkill(f"The head is longer than {MAX_HEAD_BYTES:,} bytes.")
    try:
        fields, body = frontmatter.parse(text, handler=_PlainHandler())
    except yaml.YAMLError as error:
        raise InvalidSkill(f"The head is no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InvalidSkill("The head is nested too deeply.") from None
    if not isinstance(fields, dict):
        raise InvalidSkill("The head must be a list of `field: value` lines.")
    return fields, body
