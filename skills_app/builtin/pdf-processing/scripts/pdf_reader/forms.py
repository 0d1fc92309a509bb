"""Read the fields of a form (AcroForm): names, kinds, values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pdf_reader.document import Document
from pdf_reader.errors import PdfError
from pdf_reader.syntax import Name, Reference, Stream
from pdf_reader.text_strings import as_text

MAX_FIELDS = 20_000
_READ_ONLY, _REQUIRED = 1, 2
_MULTILINE, _PASSWORD, _RADIO, _PUSH, _COMBO = 1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 17
_KINDS = {"Tx": "text", "Ch": "choice", "Btn": "button", "Sig": "signature"}


@dataclass(frozen=True)
class Field:
    """A field of a form.

    `name` includes the names of its parents: `address.street`. `value` is text, a list for several
    choices, True or False for a check box, and None if empty. `page` starts at 1 and is None if
    unknown.
    """

    name: str
    kind: str
    value: str | list[str] | bool | None
    default: str | list[str] | bool | None
    options: list[str]
    page: int | None
    label: str
    read_only: bool
    required: bool


def read_fields(document: Document) -> list[Field]:
    """Return all fields in the order of the form."""
    form = document.get(document.catalog, "AcroForm", {})
    pages = _page_of_widgets(document)
    found: list[Field] = []
    seen: set[int] = set()
    stack: list[tuple[Any, str, dict[str, Any]]] = [
        (each, "", {}) for each in reversed(_list(document.get(form, "Fields")))
    ]
    while stack:
        reference, above, inherited = stack.pop()
        if isinstance(reference, Reference):
            if reference.number in seen:
                continue
            seen.add(reference.number)
        node = document.resolve(reference)
        if not isinstance(node, dict):
            continue
        own = as_text(document.get(node, "T"))
        name = f"{above}.{own}" if above and own else above or own
        passed = {
            **inherited,
            **{key: node[key] for key in ("FT", "V", "DV", "Ff", "Opt") if key in node},
        }
        kids = _list(document.get(node, "Kids"))
        named = [kid for kid in kids if "T" in (document.resolve(kid) or {})]
        if named:
            stack.extend((kid, name, passed) for kid in reversed(kids))
            continue
        if len(found) >= MAX_FIELDS:
            raise PdfError(f"The form has more than {MAX_FIELDS:,} fields.")
        widgets = [(reference, node), *((kid, document.resolve(kid)) for kid in kids)]
        found.append(_field(document, name, {**node, **passed}, widgets, pages))
    return found


def has_xfa(document: Document) -> bool:
    """Return whether the file has an XFA form, which only Adobe's programs show."""
    return "XFA" in (document.get(document.catalog, "AcroForm", {}) or {})


def _field(
    document: Document,
    name: str,
    node: dict[str, Any],
    widgets: list[tuple[Any, Any]],
    pages: dict[int, int],
) -> Field:
    flags = document.get(node, "Ff", 0)
    flags = flags if isinstance(flags, int) else 0
    kind = _KINDS.get(str(document.get(node, "FT", "")), "unknown")
    options = [_option(document, each) for each in _list(document.get(node, "Opt"))]
    if kind == "button":
        kind = "push button" if flags & _PUSH else "radio" if flags & _RADIO else "checkbox"
        options = _states(document, [widget for _, widget in widgets]) or options
    elif kind == "choice":
        kind = "dropdown" if flags & _COMBO else "list"
    numbers = [reference.number for reference, _ in widgets if isinstance(reference, Reference)]
    return Field(
        name=name,
        kind=kind,
        value=_value(document, node, "V", kind),
        default=_value(document, node, "DV", kind),
        options=options,
        page=next((pages[number] for number in numbers if number in pages), None),
        label=as_text(document.get(node, "TU")),
        read_only=bool(flags & _READ_ONLY),
        required=bool(flags & _REQUIRED),
    )


def _value(document: Document, node: dict[str, Any], key: str, kind: str) -> Any:
    value = document.get(node, key)
    if kind == "checkbox":
        return None if value is None and key == "DV" else value not in (None, "Off", b"Off")
    if kind == "signature":
        return "signed" if isinstance(value, dict) else None
    if isinstance(value, list):
        return [as_text(document.resolve(each)) for each in value]
    if isinstance(value, Stream):
        try:
            return as_text(document.decoded(value))
        except PdfError:
            return None
    if value is None or value == "Off":
        return None
    return as_text(value) if isinstance(value, (bytes, Name)) else str(value)


def _option(document: Document, given: Any) -> str:
    given = document.resolve(given)
    if isinstance(given, list):
        return as_text(document.resolve(given[-1])) if given else ""
    return as_text(given)


def _states(document: Document, widgets: list[Any]) -> list[str]:
    """Return the values that a check box or a group of radio buttons can have.

    In the file they are the names of its appearances.
    """
    states: list[str] = []
    for widget in widgets:
        normal = document.get(document.get(widget, "AP", {}), "N", {})
        for state in normal if isinstance(normal, dict) else []:
            if state != "Off" and state not in states:
                states.append(state)
    return states


def _page_of_widgets(document: Document) -> dict[int, int]:
    pages: dict[int, int] = {}
    for number, page in enumerate(document.pages, 1):
        for widget in _list(document.get(page, "Annots")):
            if isinstance(widget, Reference):
                pages[widget.number] = number
    return pages


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
