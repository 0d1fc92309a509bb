"""Find the parts of a SKILL.md that strict readers of the specification do not accept.

The public reference validator reads only a part of YAML, and ends the head at the first `---`
anywhere in it. Vel accepts more, with a warning, but never writes it.
"""

from __future__ import annotations

import yaml

from skills_app.library.frontmatter import events_of, split_skill
from skills_app.library.package import SKILL_FILE
from skills_app.library.problems import InvalidSkill, Problem, warning


def strict_problems(text: str) -> list[Problem]:
    """Return the warnings for the SKILL.md `text`, [] if its head is unreadable."""
    try:
        head, _ = split_skill(text)
        events = list(events_of(head))
    except InvalidSkill:
        return []
    problems = []
    if text.startswith("\ufeff"):
        problems.append(_warn("bom", "It starts with a byte order mark instead of ---."))
    if "---" in head:
        problems.append(
            _warn("dashes", "The head contains ---, where other readers end it: write - -.")
        )
    if any(isinstance(e, yaml.CollectionStartEvent) and e.flow_style for e in events):
        problems.append(
            _warn("flow", "The head has lists or maps in [] or {}: write one entry per line.")
        )
    if any(isinstance(e, yaml.DocumentEndEvent) and e.explicit for e in events):
        problems.append(_warn("dots", "The head contains a line of three dots: remove it."))
    if any(character in head for character in "\x85\u2028\u2029"):
        problems.append(
            _warn("line_ends", "The head ends a line in a way that not all YAML readers know.")
        )
    if any(_is_merge(event) for event in events):
        problems.append(_warn("merge", "The head has a field <<, which other readers merge."))
    if _has_uneven_maps(events):
        problems.append(
            _warn("indentation", "The head indents one map more than another: indent all alike.")
        )
    return problems


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def _has_uneven_maps(events: list[yaml.Event]) -> bool:
    """Return whether entries of the same map contain maps with different indentation."""
    opened: list[set[int] | None] = []
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            if isinstance(event, yaml.MappingStartEvent):
                if opened and opened[-1] is not None and event.start_mark is not None:
                    opened[-1].add(event.start_mark.column)
                opened.append(set())
            else:
                opened.append(None)
        elif isinstance(event, yaml.CollectionEndEvent):
            columns = opened.pop()
            if columns is not None and len(columns) > 1:
                return True
    return False


def _warn(code: str, message: str) -> Problem:
    return warning(code, message, SKILL_FILE)
