"""Fields for lists and mappings of nested values, such as the rules of a policy.

The value of such a field is JSON text, as for `JsonText`. Its widget shows the value as rows of
inputs, which derive from the class of a row, and one empty row. It also accepts the JSON text
itself, under the name of the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agents.doors.admin.json_input import JsonText
from agents.doors.agent_form.labels import label_of, option_text
from agents.doors.agent_form.listed import listed
from agents.doors.agent_form.suggestions import suggested
from agents.hidden_text import escaped_text, unescaped_text
from agents.kernel.options import Suggest, labels_of, without_none
from agents.models import Agent

MOST_ROWS = 500
MOST_LEVELS = 3
LONG = 2_000
"""A text that may have more characters has an input of several lines."""
Kind = Literal["text", "long", "number", "choice", "checks", "flag", "names", "own_names"]
_MISSING = object()


@dataclass(frozen=True)
class Cell:
    """One input of a row. `key` is the part of its name after the name of the row."""

    key: str
    path: tuple[str, ...]
    kind: Kind
    label: str
    help_text: str
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None
    suggests: str = ""


@dataclass(frozen=True)
class Group:
    """The inputs of a nested value."""

    label: str
    help_text: str
    cells: tuple[Cell, ...]


@dataclass
class ShownCell:
    """An input with its value."""

    cell: Cell
    name: str
    id: str
    value: Any
    list_id: str = ""
    is_given: bool = False

    @property
    def choices(self) -> list[tuple[str, str, bool]]:
        chosen = self.value if isinstance(self.value, list) else [self.value]
        known = [value for value, _ in self.cell.choices]
        unknown = [(value, value) for value in chosen if value and value not in known]
        return [(value, label, value in chosen) for value, label in [*self.cell.choices, *unknown]]


@dataclass
class ShownRow:
    """A row. `is_new` is the empty one."""

    name: str
    number: int
    is_new: bool
    cells: list[ShownCell] = field(default_factory=list)
    groups: list[tuple[Group, list[ShownCell], bool]] = field(default_factory=list)


def inputs_of(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Cell | Group]:
    """Yield the inputs of the fields of `model`. A nested value is a group."""
    for name, each in model.model_fields.items():
        kind, optional = without_none(each.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            nested = tuple(
                cell for cell in inputs_of(kind, (*path, name)) if isinstance(cell, Cell)
            )
            yield Group(label_of(name), option_text(each.description or ""), nested)
        else:
            yield _cell(name, each, kind, optional=optional, path=(*path, name))


def _cell(name: str, each: FieldInfo, kind: Any, *, optional: bool, path: tuple[str, ...]) -> Cell:
    shape: Kind = "text"
    choices: list[tuple[str, str]] = []
    default = _MISSING if each.is_required() else _plain(each.get_default())
    if kind is bool:
        shape = "choice" if optional else "flag"
        choices = [("true", gettext("yes")), ("false", gettext("no"))] if optional else []
    elif kind in (int, float):
        shape = "number"
    elif get_origin(kind) is Literal:
        shape = "choice"
        choices = [(str(value), option_text(label)) for value, label in labels_of(each).items()]
    elif get_origin(kind) is tuple:
        item = get_args(kind)[0]
        if get_origin(item) is Literal:
            shape = "checks"
            choices = [(str(value), str(value)) for value in get_args(item)]
        else:
            shape = "own_names" if optional else "names"
    elif _is_long(each):
        shape = "long"
    if shape == "choice" and (optional or each.is_required()):
        choices.insert(0, ("", gettext("as the agent") if optional else "---------"))
    suggests = next((item.names for item in each.metadata if isinstance(item, Suggest)), "")
    return Cell(
        key="-".join(path),
        path=path,
        kind=shape,
        label=label_of(name),
        help_text=option_text(each.description or ""),
        choices=tuple(choices),
        default=default,
        suggests=suggests,
    )


def _is_long(each: FieldInfo) -> bool:
    """Return whether a text may be long: it has no pattern and no small limit."""
    if any(getattr(item, "pattern", None) for item in each.metadata):
        return False
    limits = [item.max_length for item in each.metadata if hasattr(item, "max_length")]
    return not limits or min(limits) > LONG


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


class RowsWidget(forms.Widget):
    """Rows of inputs for a list of values of the class `model`."""

    template_name = "agents/form/rows.html"
    is_mapping = False

    class Media:
        css = {"all": ["agents/web/agent_form.css"]}
        js = [forms.Script("agents/web/agent_form.js", type="module")]

    def __init__(self, model: type[BaseModel], noun: str, attrs: Any = None) -> None:
        super().__init__(attrs)
        self.noun = noun
        self.agent: Agent | None = None
        self.inputs = self._inputs(model)

    def _inputs(self, model: type[BaseModel]) -> list[Cell | Group]:
        return list(inputs_of(model))

    @property
    def cells(self) -> Iterator[Cell]:
        for each in self.inputs:
            yield from each.cells if isinstance(each, Group) else (each,)

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""  # each input has its own label

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-rows" not in data

    # From the form

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if name in data or f"{name}-rows" not in data:
            return data.get(name)
        written = data.get(f"{name}-rows", "")
        is_number = written.isascii() and written.isdecimal() and len(written) < 10
        count = int(written) if is_number else MOST_ROWS + 1
        if count > MOST_ROWS:
            # No JSON: the field refuses it.
            return gettext("A form can have %(most)s rows.") % {"most": MOST_ROWS}
        found: list[tuple[float, int, dict[str, Any]]] = []
        for at in range(count):
            row = f"{name}-{at}"
            if f"{row}-remove" in data:
                continue
            values = self._row_from(data, row)
            if values is not None:
                found.append((_position(data.get(f"{row}-position", ""), at), at, values))
        rows = [values for _, _, values in sorted(found, key=lambda each: each[:2])]
        return json.dumps(self.value_of(rows), ensure_ascii=False) if rows else ""

    def _row_from(self, data: Any, row: str) -> dict[str, Any] | None:
        """Return the values of a row; None if the person has written nothing into it."""
        values: dict[str, Any] = {}
        is_empty = True
        for cell in self.cells:
            value = _cell_from(cell, data, f"{row}-{cell.key}")
            if value is _MISSING:
                continue
            if value == cell.default:
                continue
            if cell.kind not in ("checks", "flag", "choice") and value not in (None, "", []):
                is_empty = False
            place = values
            for part in cell.path[:-1]:
                place = place.setdefault(part, {})
            place[cell.path[-1]] = value
        return None if is_empty else values

    def value_of(self, rows: list[dict[str, Any]]) -> Any:
        """Return the value of the field for its rows."""
        return rows

    def without_defaults(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored row as `_row_from` returns it."""
        found: dict[str, Any] = {}
        for cell in self.cells:
            value = _at(row, cell.path)
            if value is _MISSING or value == cell.default:
                continue
            place = found
            for part in cell.path[:-1]:
                place = place.setdefault(part, {})
            place[cell.path[-1]] = value
        return found

    # To the form

    def rows_of(self, value: Any) -> list[dict[str, Any]] | None:
        """Return the rows of a value; None if they cannot show it."""
        if value in (None, ""):
            return []
        known = {cell.path for cell in self.cells}
        if not isinstance(value, list) or len(value) >= MOST_ROWS:
            return None
        is_shown = all(isinstance(row, dict) and set(_paths(row)) <= known for row in value)
        return value if is_shown else None

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        parsed: Any = value
        if isinstance(value, str) and value:
            try:
                parsed = json.loads(value)
            except (ValueError, RecursionError):
                parsed = _MISSING
        rows = None if parsed is _MISSING else self.rows_of(parsed)
        if rows is None:
            context["text"] = value if isinstance(value, str) else json.dumps(value, indent=2)
            return context
        base = context["widget"]["attrs"].get("id") or f"id_{name}"
        shown = [
            self._shown(row, f"{name}-{at}", f"{base}-{at}", base, at + 1)
            for at, row in enumerate([*rows, {}])
        ]
        shown[-1].is_new = True
        sources = {cell.suggests for cell in self.cells if cell.suggests}
        return {
            **context,
            "rows": shown,
            "noun": self.noun,
            "is_ordered": not self.is_mapping,
            "lists": [
                (f"{base}-{source}", suggested(source, self.agent)) for source in sorted(sources)
            ],
        }

    def _shown(
        self, row: Mapping[str, Any], name: str, id_: str, base: str, number: int
    ) -> ShownRow:
        def show(cell: Cell) -> ShownCell:
            value = _at(row, cell.path)
            if value is _MISSING:
                value = None if cell.default is _MISSING else cell.default
            list_id = f"{base}-{cell.suggests}" if cell.suggests else ""
            return ShownCell(
                cell=cell,
                name=f"{name}-{cell.key}",
                id=f"{id_}-{cell.key}",
                value=_shown_value(cell, value),
                list_id=list_id,
                is_given=value is not None,
            )

        found = ShownRow(name, number, is_new=False)
        for each in self.inputs:
            if isinstance(each, Cell):
                found.cells.append(show(each))
            else:
                cells = [show(cell) for cell in each.cells]
                first = each.cells[0].path[0]
                found.groups.append((each, cells, bool(row.get(first))))
        return found


def _at(row: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        row = row.get(part, _MISSING) if isinstance(row, Mapping) else _MISSING
    return row


def _position(text: str, at: int) -> float:
    try:
        found = float(text)
    except ValueError:
        return at + 1.0
    return found if math.isfinite(found) else at + 1.0


def _cell_from(cell: Cell, data: Any, name: str) -> Any:
    if cell.kind == "flag":
        return name in data
    if cell.kind == "checks":
        known = [value for value, _ in cell.choices]
        chosen = listed(data, name)
        unknown = [value for value in chosen if value not in known]
        return [value for value in known if value in chosen] + unknown
    text = unescaped_text(str(data.get(name, "")).replace("\r\n", "\n"))
    if cell.kind in ("names", "own_names"):
        names = [line.strip() for line in text.split("\n") if line.strip()]
        if cell.kind == "own_names" and not names and f"{name}-some" not in data:
            return None
        return names
    if cell.kind == "choice":
        return _chosen(cell, text)
    if cell.kind == "number":
        return _number(text.strip()) if text.strip() else cell.default
    if cell.kind == "text":
        text = text.strip()
    return text if text else cell.default


def _chosen(cell: Cell, text: str) -> Any:
    if text == "":
        return cell.default
    if {value for value, _ in cell.choices} & {"true", "false"}:
        return {"true": True, "false": False}.get(text, text)
    # The choices of a Literal are texts or numbers.
    return int(text) if text.isdecimal() and len(text) < 10 else text


def _number(text: str) -> Any:
    """Return the number, or the text, for which the check of the value reports an error."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        found = float(text)
    except ValueError:
        return text
    return found if abs(found) < 1e300 else text


def _shown_value(cell: Cell, value: Any) -> Any:
    if cell.kind == "flag":
        return bool(value)
    if cell.kind == "checks":
        return [str(each) for each in value] if isinstance(value, list) else []
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if cell.kind in ("names", "own_names") and isinstance(value, list):
        return "\n".join(escaped_text(str(each)) for each in value)
    return escaped_text(value) if isinstance(value, str) else str(value)


def _paths(row: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and value and len(path) < MOST_LEVELS:
            yield from _paths(value, (*path, name))
        elif not isinstance(value, Mapping) or value:
            yield (*path, name)


class RowsField(JsonText):
    """A list of values of the class `model`."""

    def __init__(
        self,
        model: type[BaseModel],
        *,
        noun: str = "",
        empty: Any = None,
        agent: Agent | None = None,
        **options: Any,
    ) -> None:
        widget = self.rows(model, noun or gettext("entry"))
        widget.agent = agent
        super().__init__(empty=[] if empty is None else empty, widget=widget, **options)

    def rows(self, model: type[BaseModel], noun: str) -> RowsWidget:
        return RowsWidget(model, noun)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != self.as_entered(initial))
        except ValidationError:
            return True

    def as_entered(self, value: Any) -> Any:
        """Return a stored value as its rows would give it: without the defaults of a row."""
        widget: Any = self.widget
        rows = widget.rows_of(json.loads(json.dumps(value))) if value else []
        if rows is None:
            return value
        return widget.value_of([widget.without_defaults(row) for row in rows]) or self.empty


class MapWidget(RowsWidget):
    """Rows for a mapping of tools to true (ask), false (never ask) or the terms of the request."""

    is_mapping = True

    def _inputs(self, model: type[BaseModel]) -> list[Cell | Group]:
        words = gettext("A name, as the agent calls it.")
        asks = (
            ("ask", gettext("a person must approve")),
            ("never", gettext("runs without approval")),
        )
        terms = tuple(cell for cell in inputs_of(model, ("terms",)) if isinstance(cell, Cell))
        return [
            Cell("tool", ("tool",), "text", gettext("Tool"), words, default=None, suggests="tools"),
            Cell("asks", ("asks",), "choice", gettext("Calls"), "", choices=asks, default="ask"),
            Group(gettext("Terms"), gettext("The terms of the request."), terms),
        ]

    def rows_of(self, value: Any) -> list[dict[str, Any]] | None:
        if value in (None, ""):
            return []
        pairs = list(value.items()) if isinstance(value, dict) else value
        if not _are_pairs(pairs):
            return None
        rows: list[dict[str, Any]] = []
        for tool, rule in pairs:
            row: dict[str, Any] = {"tool": tool}
            if rule is False:
                row["asks"] = "never"
            elif isinstance(rule, dict):
                row["terms"] = rule
            elif rule is not True:
                return None
            rows.append(row)
        return super().rows_of(rows)

    def value_of(self, rows: list[dict[str, Any]]) -> Any:
        pairs = [
            (
                row.get("tool") or "",
                False if row.get("asks") == "never" else row.get("terms") or True,
            )
            for row in rows
        ]
        found = dict(pairs)
        return found if len(found) == len(pairs) else [list(pair) for pair in pairs]


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[0], str)
        for each in value
    )


class MapField(RowsField):
    """A mapping of tools to a boolean or to a value of the class `model`."""

    def __init__(self, model: type[BaseModel], **options: Any) -> None:
        super().__init__(model, noun=gettext("tool"), empty={}, **options)

    def rows(self, model: type[BaseModel], noun: str) -> RowsWidget:
        return MapWidget(model, noun)

    def to_python(self, value: Any) -> Any:
        found = super().to_python(value)
        if found and _are_pairs(found):
            names = [name for name, _ in found]
            twice = next((name for name in names if names.count(name) > 1), names[0])
            raise ValidationError(gettext("%(name)s is named twice. Keep one.") % {"name": twice})
        return found
