"""The translations of the pages are complete and compiled.

`make lint` also compares them with the texts of the code.
"""

from __future__ import annotations

import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings

from agents.page_templates import PAGE_LOCALE
from docs_tools.catalog import read_catalog

CATALOGS = sorted(PAGE_LOCALE.glob("*/LC_MESSAGES/*.po"))
PARTS = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|\{\{.*?\}\}|</?\w+[^>]*>|&\w+;|`[^`]*`")
"""Placeholders, tags and code, which a translation must keep."""

each_catalog = pytest.mark.parametrize(
    "catalog", CATALOGS, ids=lambda path: "/".join(path.parts[-3:])
)


def test_each_language_of_the_settings_has_both_catalogs() -> None:
    languages = {code for code, _ in settings.LANGUAGES} - {settings.LANGUAGE_CODE}
    wanted = {(language, name) for language in languages for name in ("django", "djangojs")}
    assert {(path.parts[-3], path.stem) for path in CATALOGS} == wanted


@each_catalog
def test_each_text_is_translated(catalog: Path) -> None:
    found = read_catalog(catalog)
    assert found
    for key, message in found.items():
        assert not message.is_fuzzy, key
        assert all(message.translations), key


@each_catalog
def test_translations_keep_placeholders_and_tags(catalog: Path) -> None:
    for key, message in read_catalog(catalog).items():
        allowed = [sorted(PARTS.findall(text)) for text in message.texts]
        for translation in message.translations:
            assert sorted(PARTS.findall(translation)) in allowed, key


@each_catalog
def test_the_compiled_catalog_is_current(catalog: Path) -> None:
    with catalog.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    expected = {}
    for (context, text), message in read_catalog(catalog).items():
        key = f"{context}\x04{text}" if context else text
        if len(message.texts) == 1:
            expected[key] = message.translations[0]
        else:
            expected |= {(key, form): each for form, each in enumerate(message.translations)}
    assert {key: value for key, value in compiled.items() if key} == expected
