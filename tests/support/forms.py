"""The data that a browser without scripts sends for a form of a page."""

from __future__ import annotations

from html.parser import HTMLParser

Data = dict[str, list[str]]


class _Reader(HTMLParser):
    """Collects the fields of the forms of a page, except those in disabled fieldsets.

    A field outside of its form names it with the attribute `form`.
    """

    def __init__(self, *, with_disabled: bool) -> None:
        super().__init__()
        self._with_disabled = with_disabled
        self.forms: dict[str, Data] = {}
        self._form: Data | None = None
        self._owner = ""
        self._fieldsets: list[bool] = []
        self._select = ""
        self._options: list[tuple[str, bool]] = []
        self._area = ""
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in ("input", "select", "textarea"):
            self._owner = found.get("form", "")
        if tag == "form":
            self._form = self.forms.setdefault(found.get("id", ""), {})
        elif tag == "fieldset":
            self._fieldsets.append("disabled" in found and not self._with_disabled)
        elif tag == "input" and "name" in found:
            kind = found.get("type", "text")
            if kind not in ("checkbox", "radio") or "checked" in found:
                self._add(found["name"], found.get("value", "on" if kind == "checkbox" else ""))
        elif tag == "select":
            self._select, self._options = found.get("name", ""), []
        elif tag == "option" and self._select:
            self._options.append((found.get("value", ""), "selected" in found))
        elif tag == "textarea":
            self._area, self._text = found.get("name", ""), ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "fieldset":
            self._fieldsets.pop()
        elif tag == "select" and self._select:
            chosen = [value for value, is_chosen in self._options if is_chosen]
            if chosen or self._options:
                self._add(self._select, (chosen or [self._options[0][0]])[-1])
            self._select = ""
        elif tag == "textarea" and self._area:
            text = self._text.replace("\r\n", "\n").removeprefix("\n")
            self._add(self._area, text.replace("\n", "\r\n"))
            self._area = ""

    def _add(self, name: str, value: str) -> None:
        form = self.forms.setdefault(self._owner, {}) if self._owner else self._form
        if form is not None and not any(self._fieldsets):
            form.setdefault(name, []).append(value)


def form_data(page: str, form_id: str, *, with_disabled: bool = False) -> Data:
    """Return the fields of the form with this id, each with its values, as a browser sends them.

    `with_disabled`: also the fields in disabled fieldsets, which a script may enable.
    """
    reader = _Reader(with_disabled=with_disabled)
    reader.feed(page)
    return reader.forms[form_id]
