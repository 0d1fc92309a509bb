"""Write the catalogs of the pages' texts: `make translations`. It needs GNU gettext.

New texts get an empty translation in `velproject/locale/`. After you have filled them in, run it
again: it also compiles the catalogs. `check` only reports whether the catalogs have
exactly the texts of the code.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.commands import makemessages
from django.core.management.utils import find_command

from agents.agent_files.shape import Rows, file_class
from agents.doors.agent_form.labels import CONTEXT as OPTIONS
from agents.doors.agent_form.labels import english_label
from agents.features.agent_editor.form import SHARING
from agents.kernel.options import FormHelp, Labels, option_classes, option_fields
from agents.kernel.relations import OwnRows, relations
from agents.page_templates import PAGE_LOCALE
from docs_tools.catalog import Key, read_catalog
from velproject.row_names import CONTEXT as ROWS
from velproject.row_names import derived_names

ROOT = Path(__file__).resolve().parents[1]
LOCALE = PAGE_LOCALE
DERIVED = ROOT / "velproject/derived_texts_for_gettext.py"
"""A temporary file with the names of rows and the texts of options, which no code marks."""
WITHOUT_PAGES = (
    ".*",
    "benchmarks",
    "deploy",
    "docs",
    "docs_tools",
    "examples",
    "frontend",
    "release_tools",
    "site",
    "skills_app/builtin",
    "tests",
    "vendor",
)


class Extraction(makemessages.Command):
    """Django's command, without guesses for new texts."""

    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]


class Comparison(makemessages.Command):
    """Compares the texts of the code with the catalogs and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.differences: list[str] = []

    def write_po_file(self, potfile: str, locale: str) -> None:
        catalog = LOCALE / locale / "LC_MESSAGES" / f"{self.domain}.po"
        used, known = set(read_catalog(Path(potfile))), set(read_catalog(catalog))
        self.differences += [f"missing: {_shown(key)}" for key in sorted(used - known)]
        self.differences += [f"not used: {_shown(key)}" for key in sorted(known - used)]


def _shown(key: Key) -> str:
    context, text = key
    return f"{text!r} ({context})" if context else repr(text)


def options() -> Iterator[str]:
    """Yield the texts of the form of an agent: labels, help, choices and titles."""
    yield from ("Agent", "Approval", SHARING)
    yield from (kind.title or kind.__name__ for kind in option_classes())
    for relation in relations():
        yield relation.title
        yield relation.help_text
        if isinstance(relation, OwnRows):
            yield relation.name.removesuffix("s")
    yield from _texts_of(file_class().model_json_schema())
    for field in (*option_fields().values(), *Rows.model_fields.values()):
        for item in field.metadata:
            if isinstance(item, Labels):
                yield from item.by_value.values()
            elif isinstance(item, FormHelp):
                yield item.text


def _texts_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for name, part in schema.get("properties", {}).items():
            yield english_label(name)
            if part.get("description"):
                yield part["description"]
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from _texts_of(part)


def run(command: makemessages.Command, domain: str) -> None:
    """Run `command` for the texts of one domain."""
    texts = [*((ROWS, name) for name in derived_names), *((OPTIONS, text) for text in options())]
    calls = [f"pgettext({context!r}, {text!r})\n" for context, text in sorted({*texts})]
    DERIVED.write_text("from django.utils.translation import pgettext\n" + "".join(calls))
    os.chdir(ROOT)  # the command searches the current directory
    try:
        call_command(
            command,
            domain=domain,
            locale=[place.name for place in LOCALE.iterdir() if place.is_dir()],
            ignore_patterns=list(WITHOUT_PAGES),
            no_location=True,
            no_wrap=True,
            no_obsolete=True,
            verbosity=0,
        )
    finally:
        DERIVED.unlink()


def check() -> int:
    """Print each difference between the code and the catalogs, and return the exit code."""
    if find_command("xgettext") is None:
        print("The catalogs are not compared with the code: GNU gettext is not installed.")
        return 0
    code = 0
    for domain in ("django", "djangojs"):
        comparison = Comparison()
        run(comparison, domain)
        for line in comparison.differences:
            print(f"{domain}.po: {line}")
            code = 1
    if code:
        print("Run `make translations` and translate the new texts.")
    return code


def write() -> int:
    """Write and compile the catalogs."""
    for domain in ("django", "djangojs"):
        run(Extraction(), domain)
        for catalog in LOCALE.glob(f"*/LC_MESSAGES/{domain}.po"):
            compiled = catalog.with_suffix(".mo")
            subprocess.run(["msgfmt", "--check", "-o", compiled, catalog], check=True)
    return 0
