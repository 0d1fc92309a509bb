"""The generator of docs/reference/settings.md."""

from __future__ import annotations

import pytest

from agents.kernel.settings import FeatureSettings
from docs_tools import settings_page


def test_a_setting_without_a_docstring_is_an_error() -> None:
    class Mute(FeatureSettings):
        """Mute"""

        FIRST: int = 1
        """A docstring."""
        SECOND: int = 2

    with pytest.raises(ValueError, match=r"Mute\.SECOND has no docstring"):
        settings_page.section(Mute)
