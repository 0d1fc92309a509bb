"""docs/contributing/features.md shows the files of the example feature without differences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/contributing/features.md"
SOURCE = Path(__file__).parent / "glossary"
BLOCKS = dict(
    re.findall(r"```python\n# vel_glossary/(\S+)\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
)


def test_the_page_shows_each_module() -> None:
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    assert BLOCKS.keys() == modules


@pytest.mark.parametrize("name", BLOCKS)
def test_a_module_is_as_on_the_page(name: str) -> None:
    assert BLOCKS[name] == (SOURCE / name).read_text()


def test_the_template_is_as_on_the_page() -> None:
    assert (SOURCE / "templates/vel_glossary/terms.html").read_text() in PAGE.read_text()
