"""The order in which a skill and its requirements are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class UnmetRequirement(Exception):
    """A required skill is missing, or a skill requires, in a circle, itself."""


def in_order(name: str, required: Mapping[str, Iterable[str]]) -> list[str]:
    """Return `name` after all its requirements, each once. `required` has all existing skills.

    Takes time in proportion to the requirements, without recursion: chains may be long. Raises
    `UnmetRequirement`.
    """
    order: dict[str, None] = {}
    path: dict[str, None] = {name: None}
    left = [(name, iter(_of(name, "", required)))]
    while left:
        here, below_it = left[-1]
        below = next(below_it, None)
        if below is None:
            order[here] = None
            del path[here]
            left.pop()
        elif below in path:
            names = list(path)
            circle = " → ".join([*names[names.index(below) :], below])
            raise UnmetRequirement(f"Skills that require each other in a circle: {circle}.")
        elif below not in order:
            path[below] = None
            left.append((below, iter(_of(below, here, required))))
    return list(order)


def _of(name: str, asker: str, required: Mapping[str, Iterable[str]]) -> Iterable[str]:
    if name not in required:
        raise UnmetRequirement(f"{asker} requires the skill {name}, which this agent has not.")
    return required[name]
