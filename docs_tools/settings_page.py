"""The tables of docs/reference/settings.md, from the declarations of the settings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

from agents.kernel.settings import FeatureSettings, Setting, settings_of
from docs_tools.markdown import cell, replaced

_GIB = 1024**3


def page(old: str, classes: Iterable[type[FeatureSettings]]) -> str:
    """Return the page with new tables between its marks (`docs_tools.markdown`)."""
    return replaced(old, "\n".join(map(section, classes)))


def section(declared_in: type[FeatureSettings]) -> str:
    """Return the heading, the introduction and the table of one class."""
    heading, _, text = inspect.cleandoc(declared_in.__doc__ or "").partition("\n")
    meanings = docstrings(declared_in)
    rows = [row(setting, meanings[setting.name]) for setting in settings_of(declared_in)]
    table = ["| variable | default | |", "|---|---|---|", *rows, ""]
    introduction = [cell(text), ""] if text.strip() else []
    return "\n".join([f"### {heading}", "", *introduction, *table])


def row(setting: Setting, meaning: str) -> str:
    """Return the row of one setting."""
    own = f"{setting.declared_in.PREFIX}{setting.name}"
    names = ", ".join(f"`{name}`" for name in setting.variables)
    if setting.declared_in.DICTIONARY and not {own, setting.name} & {*setting.variables}:
        names = f"{names} (key `{setting.name}`)" if names else f"key `{setting.name}`"
    if setting.about.deprecated:
        meaning = f"**Deprecated.** {setting.about.deprecated} {meaning}"
    return f"| {names} | {default(setting)} | {cell(meaning)} |"


def default(setting: Setting) -> str:
    """Return the default with its unit."""
    if setting.about.default:
        text = setting.about.default
        return text if setting.default not in ("", ()) else f"empty: {text}"
    value: Any = setting.default
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        if setting.about.unit == "bytes" and value and value % _GIB == 0:
            return f"{value // _GIB} GiB"
        number = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        unit = setting.about.unit
        return f"{number} {unit.removesuffix('s') if value == 1 else unit}".rstrip()
    text = ",".join(value) if isinstance(value, tuple) else str(value or "")
    return f"`{text}`" if text else "empty"


def docstrings(declared_in: type[FeatureSettings]) -> dict[str, str]:
    """Return the text below each field of a class. Raises `ValueError` without one."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(declared_in))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[field.target.id] = meaning
                case _:
                    raise ValueError(f"{declared_in.__name__}.{field.target.id} has no docstring.")
    return found
