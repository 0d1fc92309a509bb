"""Type checkers see the public names as a program does."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path

import pytest

import vel
from tests.agents.sdk import typed_program
from tests.support.type_checks import type_checks

ROOT = Path(__file__).parents[2]


def test_the_stub_has_the_names_and_modules_of_the_package() -> None:
    tree = ast.parse((ROOT / "vel" / "__init__.pyi").read_text("utf-8"))
    found = {
        name.asname: (node.module, name.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert found == {name: (module, name) for name, module in vel._NAMES.items()}
    packages = {"vel", *(module.partition(".")[0] for module in vel._NAMES.values())}
    assert all(files(package).joinpath("py.typed").is_file() for package in packages)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the checks, which share a cache."""
    return tmp_path_factory.mktemp("types")


@pytest.mark.slow
def test_a_program_passes_strict_type_checks(place: Path) -> None:
    source = Path(typed_program.__file__).read_text("utf-8")
    (place / "good.py").write_text(source, "utf-8")
    (place / "bad.py").write_text(
        "from vel import Nonsense, create_deep_agent\ncreate_deep_agent(sandbox='no')\n", "utf-8"
    )
    done = type_checks(place, "good.py", "bad.py")
    told = [line.partition(": ")[0] for line in done.stdout.splitlines()]
    assert told[:2] == ["bad.py:1", "bad.py:2"], done.stdout + done.stderr
    assert len(told) == 3, done.stdout


@pytest.mark.slow
def test_the_examples_pass_strict_type_checks(place: Path) -> None:
    files = sorted((ROOT / "examples").glob("*.py"))
    names = [str(file) for file in files if file.stem != "rest_team"]  # it needs a client
    done = type_checks(place, *names)
    assert done.returncode == 0, done.stdout + done.stderr
