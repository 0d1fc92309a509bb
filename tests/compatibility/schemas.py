"""Find the breaking differences between two JSON schemas.

A schema of values that Vel *accepts* (requests, agent files) breaks if it accepts less. A schema of
values that Vel *gives* (responses, events) breaks if a program that knows the old schema can no
longer read the values: fields that are missing or of another type. New fields and new values of an
enumeration are allowed there, and the documentation asks programs to accept them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Schema = dict[str, Any]
Direction = Literal["accepts", "gives"]

_LOWER_LIMITS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER_LIMITS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = ("pattern", "format", "multipleOf")
_WIDER = {"integer": {"number"}}
"""A type, and the types that include its values."""


@dataclass(frozen=True, order=True, slots=True)
class Break:
    """A breaking change. `subject` is its name in CHANGELOG.md, for example `GET /runs limit`."""

    subject: str
    change: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.change}"


class Comparison:
    """Compares parts of an old and a new document, whose references it follows."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[str, str, str]] = set()

    def compare(
        self, old: Schema, new: Schema, subject: str, direction: Direction
    ) -> Iterator[Break]:
        """Yield the breaks. A definition that both name is compared once, under its own name."""
        old_name, old = follow(self._old, old)
        new_name, new = follow(self._new, new)
        if old_name and new_name:
            pair = (old_name, new_name, direction)
            if pair in self._seen:
                return
            self._seen.add(pair)
            subject = old_name
        old_parts, new_parts = alternatives(old), alternatives(new)
        if len(old_parts) == len(new_parts) == 1:
            yield from self._one(old_parts[0], new_parts[0], subject, direction)
        elif direction == "accepts":
            for part in old_parts:
                yield from self._best(
                    [(part, one) for one in new_parts], subject, direction, named(part)
                )
        else:
            for part in new_parts:
                yield from self._best(
                    [(one, part) for one in old_parts], subject, direction, named(part)
                )

    def _best(
        self, pairs: list[tuple[Schema, Schema]], subject: str, direction: Direction, kind: str
    ) -> Iterator[Break]:
        """Yield nothing if one pair fits, and otherwise the breaks of the most similar pair."""
        tried: list[tuple[bool, int, list[Break]]] = []
        for old, new in pairs:
            fresh = Comparison(self._old, self._new)
            fresh._seen = set(self._seen)
            found = list(fresh.compare(old, new, subject, direction))
            if not found:
                return
            tried.append((self._type(old, new), len(found), found))
        other, _, found = min(tried, key=lambda one: one[:2])
        if other:
            verb = "no longer accepted" if direction == "accepts" else "new"
            yield Break(subject, f"the type {kind} is {verb}")
        else:
            yield from found

    def _type(self, old: Schema, new: Schema) -> bool:
        return follow(self._old, old)[1].get("type") != follow(self._new, new)[1].get("type")

    def _one(self, old: Schema, new: Schema, subject: str, direction: Direction) -> Iterator[Break]:
        if "$ref" in old or "$ref" in new:
            yield from self.compare(old, new, subject, direction)
            return
        inner, outer = (old, new) if direction == "accepts" else (new, old)
        if not _fits(inner.get("type"), outer.get("type")):
            yield Break(subject, f"type {named(old)} became {named(new)}")
            return
        if direction == "accepts":
            yield from _narrowed(old, new, subject)
        yield from self._fields(old, new, subject, direction)
        for key in ("items", "additionalProperties"):
            before, after = old.get(key), new.get(key)
            if isinstance(before, dict) and isinstance(after, dict):
                mark = "[]" if key == "items" else ".*"
                yield from self.compare(before, after, f"{subject}{mark}", direction)

    def _fields(
        self, old: Schema, new: Schema, subject: str, direction: Direction
    ) -> Iterator[Break]:
        before, after = old.get("properties", {}), new.get("properties", {})
        required, now_required = set(old.get("required", ())), set(new.get("required", ()))
        for name, schema in before.items():
            field = f"{subject}.{name}"
            if name not in after:
                yield Break(field, "removed")
                continue
            if direction == "gives" and name in required - now_required:
                yield Break(field, "no longer always present")
            yield from self.compare(schema, after[name], field, direction)
        if direction == "accepts":
            for name in sorted(now_required - required):
                yield Break(f"{subject}.{name}", "now required")
            if old.get("additionalProperties", True) is not False and (
                new.get("additionalProperties", True) is False
            ):
                yield Break(subject, "other fields are no longer accepted")


def follow(document: Schema, schema: Schema) -> tuple[str, Schema]:
    """Return the name and the content of the definition that a reference names.

    The name is empty for a schema without a reference. A chain of references has its last name.
    """
    name = ""
    while "$ref" in schema:
        reference = schema["$ref"]
        schema = document
        for part in reference.removeprefix("#/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            schema = schema[name]
    return name, schema


def alternatives(schema: Schema) -> list[Schema]:
    """Return the alternatives of a schema: of `anyOf`, of `oneOf`, and of a list of types."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [part for one in schema[key] for part in alternatives(one)]
    kind = schema.get("type")
    if isinstance(kind, list):
        return [{**schema, "type": one} for one in kind]
    return [schema]


def named(schema: Schema) -> str:
    """Return a name of the type for people."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    return str(schema.get("type", "any"))


def _fits(inner: str | None, outer: str | None) -> bool:
    """Return whether each value of the type `inner` is of the type `outer`. None is every type."""
    return outer is None or inner == outer or outer in _WIDER.get(inner or "", ())


def _values(schema: Schema) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _narrowed(old: Schema, new: Schema, subject: str) -> Iterator[Break]:
    before, after = _values(old), _values(new)
    if after is not None:
        if before is None:
            yield Break(subject, f"only {json.dumps(after, ensure_ascii=False)} are accepted now")
        else:
            for value in before:
                # JSON distinguishes true from 1, Python does not.
                if json.dumps(value) not in map(json.dumps, after):
                    shown = json.dumps(value, ensure_ascii=False)
                    yield Break(subject, f"the value {shown} is no longer accepted")
    for keys, sign in ((_LOWER_LIMITS, 1), (_UPPER_LIMITS, -1)):
        for key in keys:
            limit, was = new.get(key), old.get(key)
            # A lower limit of 0 for a length is none.
            if limit is None or (was is None and limit == 0 and key in _LOWER_LIMITS[2:]):
                continue
            if was is None or sign * limit > sign * was:
                yield Break(subject, f"{key} became {limit}, it was {was}")
    for key in _EXACT:
        if key in new and new[key] != old.get(key):
            yield Break(subject, f"{key} became {new[key]}, it was {old.get(key)}")
    if new.get("uniqueItems") and not old.get("uniqueItems"):
        yield Break(subject, "items must be unique now")
