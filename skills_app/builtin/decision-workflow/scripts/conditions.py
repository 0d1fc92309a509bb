"""Parse and evaluate the conditions of a policy.

An example is `amount >= 500 and category in (travel, training)`. `and` joins comparisons; for `or`
write two rules. `<`, `<=`, `>` and `>=` compare only numbers. `=` and `!=` compare numbers as
numbers and everything else as text, regardless of case.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from outcome import UNREADABLE, Stop

_PART = re.compile(
    r"\s*(?P<field>[A-Za-z_][\w.]*)\s*(?:"
    r"(?P<operator><=|>=|!=|<|>|=)\s*(?P<value>[^<>=!]+?)"
    r"|\s+(?P<member>not in|in)\s*\((?P<values>[^()]*)\)"
    r"|\s+(?P<presence>is missing|is present))\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?(\d{1,15}|\d{1,3}(,\d{3}){1,4})(\.\d{1,9})?")


_LEAST, _MOST = 1e-9, 10**15
"""The limits of a number's absolute value. Larger numbers are typing errors."""

_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols of Unicode that display as a space."""


class Unclear(Exception):
    """The request lacks a value that a condition needs. Somebody must ask the requester."""


@dataclass(frozen=True)
class Comparison:
    field: str
    operator: str
    values: tuple[str, ...]

    def holds(self, request: dict[str, Any]) -> bool:
        """Return whether the comparison is true for `request`.

        Raises `Unclear` if the field is missing, or if the operator needs two numbers and has
        others.
        """
        present, value = look_up(request, self.field)
        if self.operator in ("is missing", "is present"):
            return present == (self.operator == "is present")
        if not present:
            raise Unclear(f"{self.field} is missing")
        if self.operator in ("in", "not in"):
            found = any(_same(value, each) for each in self.values)
            return found == (self.operator == "in")
        if self.operator in ("=", "!="):
            return _same(value, self.values[0]) == (self.operator == "=")
        left, right = as_number(value), as_number(self.values[0])
        if left is None:
            raise Unclear(f"{self.field} is {value!r}, which is not a number")
        if right is None:
            raise Unclear(f"the policy compares {self.field} with {self.values[0]!r}")
        return {
            "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
        }[self.operator]  # fmt: skip


def parse(text: str) -> tuple[Comparison, ...]:
    """Return the comparisons of a condition, none for `always`. Raises `Stop` for invalid text."""
    if text.strip().lower() == "always":
        return ()
    comparisons = []
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        found = _PART.fullmatch(part)
        if not found:
            raise Stop(
                f"The policy's condition {part!r} is not understood. Write field < 500, "
                "field = word, field in (a, b), field is missing, or always; join with and.",
                UNREADABLE,
            )
        if found["operator"]:
            made = Comparison(found["field"], found["operator"], (_bare(found["value"]),))
        elif found["member"]:
            values = tuple(_bare(each) for each in found["values"].split(","))
            made = Comparison(found["field"], found["member"].lower(), values)
        else:
            made = Comparison(found["field"], found["presence"].lower(), ())
        comparisons.append(made)
    return tuple(comparisons)


def look_up(request: dict[str, Any], field: str) -> tuple[bool, Any]:
    """Return (whether the field exists, its value). The field `a.b` is the field `b` in `a`.

    A value without content counts as missing: null, a blank text, or a list or object of these.
    """
    value: Any = request
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return False, None
        value = value[part]
    return _says_something(value), value


def _says_something(value: Any) -> bool:
    """Return whether `value` has content. Blank texts, and lists or objects of them, have none."""
    if isinstance(value, str):
        return any(
            unicodedata.category(letter)[0] not in "ZCM" and letter not in _BLANK_LETTERS
            for letter in value
        )
    if isinstance(value, (list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return any(map(_says_something, inner))
    return value is not None


def as_number(value: Any) -> float | None:
    """Return `value` as a number, None if it is not one. "1,250.00" is a number.

    Ambiguous texts such as "1.250,00" or "1,5" give None, because a wrong guess would approve a
    request. So do booleans, and numbers from 10^15 on or closer to 0 than 10^-9.
    """
    if isinstance(value, str):
        plain = value.strip().lstrip("$€£").strip()
        return float(plain.replace(",", "")) if _NUMBER.fullmatch(plain) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if value == 0 or _LEAST <= abs(value) < _MOST else None


def _same(value: Any, text: str) -> bool:
    left, right = as_number(value), as_number(text)
    if left is not None and right is not None:
        return left == right
    return str(value).strip().casefold() == text.casefold()


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
