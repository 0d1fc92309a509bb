"""Every command and every program in the instructions works when it is run unchanged."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.skills_app.builtin.desk import BUILTIN, NAMES, Desk
from tests.skills_app.builtin.samples import fill

pytestmark = pytest.mark.bubblewrap

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"# needs: (\w+)\n")
QUERY = "python3 /sandbox/skills/data-query/scripts/query_sqlite.py /sandbox/user_uploads/shop.db"


@dataclass(frozen=True)
class Example:
    document: str
    language: str
    source: str

    @property
    def needs(self) -> str:
        """Return the package that the example requires, or "" for the system's Python."""
        found = _NEEDS.match(self.source)
        return found[1] if found else ""


def examples_of(name: str) -> list[Example]:
    """Return the examples of SKILL.md, then those of the references, each from top to bottom."""
    documents = [BUILTIN / name / "SKILL.md", *sorted((BUILTIN / name / "references").glob("*.md"))]
    return [
        Example(document.name, language, source)
        for document in documents
        for language, source in _FENCE.findall(document.read_text())
    ]


def run(desk: Desk, example: Example) -> None:
    if example.language == "bash":
        result = desk.run("set -e\n" + example.source)
    elif example.language == "python":
        result = desk.box.execute_python(example.source)
    else:
        result = desk.run(f"{QUERY} run {shlex.quote(example.source)}")
    assert result.exit_code == 0, (example, result.stdout[-2000:], result.stderr)
    assert result.stdout or result.stderr or "cp " in example.source or "cat >" in example.source


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_work_with_the_systems_python(name: str, desk: Desk, tmp_path: Path) -> None:
    fill(desk, tmp_path)
    examples = examples_of(name)
    assert {example.language for example in examples} <= {"bash", "python", "sql"}
    plain = [example for example in examples if not example.needs]
    assert len(plain) >= 4
    for example in plain:
        run(desk, example)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_that_need_a_package_work_with_it(
    name: str, equipped_desk: Desk, tmp_path: Path
) -> None:
    needing = [example for example in examples_of(name) if example.needs]
    if name in ("csv-analytics", "data-query", "pdf-processing"):
        assert needing
    fill(equipped_desk, tmp_path)
    for example in needing:
        run(equipped_desk, example)


def test_no_example_names_a_file_that_is_not_the_users(tmp_path: Path) -> None:
    """Examples use only paths of the sandbox's areas."""
    for name in NAMES:
        for example in examples_of(name):
            for path in re.findall(r"(?<![\w/.:])/[a-z][\w/.-]+", example.source):
                assert path.startswith("/sandbox/"), (name, path)
