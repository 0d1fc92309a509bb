"""docs/settings.md agrees with the declarations of the settings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from agents.kernel.settings import FeatureSettings, installed
from velproject.server_settings import ServerSettings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """Import the module docs/settings_page.py, which is not in a package."""
    spec = importlib.util.spec_from_file_location("settings_page", DOCS / "settings_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_declarations(generator: ModuleType) -> None:
    text = (DOCS / "settings.md").read_text()
    assert generator.page(text, [ServerSettings, *installed()]) == text, "run: make settings-page"


def test_a_setting_without_a_docstring_is_an_error(generator: ModuleType) -> None:
    class Mute(FeatureSettings):
        """Mute"""

        FIRST: int = 1
        """A docstring."""
        SECOND: int = 2

    with pytest.raises(ValueError, match=r"Mute\.SECOND has no docstring"):
        generator.section(Mute)
