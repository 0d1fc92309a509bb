"""Form fields for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from agents.structured_output.levels import MOST_LEVELS, nests_too_deep


def parse_json(text: str) -> Any:
    """Return the value of `text`. Raises `ValidationError`, for a syntax error with its position.

    Also rejects values that nest too deeply or that some databases cannot store: infinite numbers,
    NUL and lone surrogates.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = gettext("This is not JSON: %(problem)s at line %(line)s, column %(column)s.")
        values = {"problem": error.msg, "line": error.lineno, "column": error.colno}
        raise ValidationError(problem % values) from None
    except RecursionError:
        raise ValidationError(gettext("The JSON is nested too deeply.")) from None
    except ValueError as error:  # an integer with thousands of digits
        problem = gettext("The JSON contains a number that is too long: %(problem)s.")
        raise ValidationError(problem % {"problem": error}) from None
    if nests_too_deep(value):
        problem = gettext("The JSON nests deeper than %(most)s levels.")
        raise ValidationError(problem % {"most": MOST_LEVELS})
    _check_storable(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValidationError(gettext("%(name)s is not JSON.") % {"name": name})


def _check_storable(value: object) -> None:
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.keys()
            rest += item.values()
        elif isinstance(item, list):
            rest += item
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValidationError(gettext("The JSON contains a number that is too large."))
        elif isinstance(item, str) and any(
            char == "\x00" or "\ud800" <= char <= "\udfff" for char in item
        ):
            raise ValidationError(
                gettext("The JSON contains a NUL or half of a character. Remove it.")
            )


class JsonText(forms.CharField):
    """A field for JSON. An empty text is `empty`, and `empty` is shown as an empty text.

    `check` gets the value and returns it, or raises `ValidationError`.
    """

    widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "vel-json"})

    def __init__(
        self, *, empty: Any, check: Callable[[Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(required=False, **kwargs)
        self.empty = empty
        self.check = check

    def clean(self, value: Any) -> Any:
        """Return the value, as returned by `check`."""
        found = super().clean(value)
        return self.check(found) if self.check else found

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value  # the submitted text, shown again with its error
        # The form of a new row has None here.
        return (
            "" if value in (None, self.empty) else json.dumps(value, ensure_ascii=False, indent=2)
        )

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        return parse_json(text) if text else self.empty

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True

    def run_validators(self, value: Any) -> None:
        """Do nothing: the validators of `CharField` do not apply to the parsed value."""
