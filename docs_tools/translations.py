"""Write the catalogs of the pages' texts: `make translations`. It needs GNU gettext.

New texts get an empty translation in `velproject/locale/`. After you have filled them in, run it
again: it also compiles the catalogs. With `--check`, it only reports whether the catalogs have
exactly the texts of the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import django
from django.core.management import call_command
from django.core.management.commands import makemessages
from django.core.management.utils import find_command

from docs_tools.catalog import Key, read_catalog
from velproject.row_names import CONTEXT, derived_names

ROOT = Path(__file__).resolve().parents[1]
LOCALE = ROOT / "velproject/locale"
ROW_NAMES = ROOT / "velproject/row_names_for_gettext.py"
"""A temporary file with the names of models and fields, which no code has as texts."""
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


def run(command: makemessages.Command, domain: str) -> None:
    """Run `command` for the texts of one domain."""
    calls = [f"pgettext({CONTEXT!r}, {name!r})\n" for name in sorted(derived_names)]
    ROW_NAMES.write_text("from django.utils.translation import pgettext\n" + "".join(calls))
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
        ROW_NAMES.unlink()


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


if __name__ == "__main__":
    os.chdir(ROOT)
    django.setup()
    sys.exit(check() if "--check" in sys.argv else write())
