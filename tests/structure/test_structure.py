"""The code keeps the limits below. baselines.toml has the current exceptions.

A baseline may only decrease. If a test asks for a lower one, change the file in the same commit.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).parents[2]
BASELINES = "tests/structure/baselines.toml"
PACKAGES = (
    "velproject",
    "agents",
    "skills_app",
    "memory",
    "text_scanner",
    "language_model",
    "sandbox",
)
MOST_FILES = 25


@cache
def baseline(name: str) -> Any:
    return tomllib.loads((ROOT / BASELINES).read_text())[name]


@cache
def sources() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules by path, without migrations and scripts of skills."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_bytes())
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts and "builtin" not in path.relative_to(ROOT).parts[:2]
    }


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return all imports, including those for type checking and those inside functions."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def compare(name: str, found: dict[str, int], advice: str, limit: int = 0) -> None:
    """Fail with advice if a number differs from its baseline, or exceeds the limit without one."""
    known = baseline(name)
    for key in sorted(found.keys() | known.keys()):
        now, then = found.get(key, 0), known.get(key, 0)
        if now > then:
            pytest.fail(f"{key}: {now} {name.replace('_', ' ')}, at most {then or limit}. {advice}")
        if now < then:
            line = f'set "{key}" = {now}' if now else f'remove "{key}"'
            pytest.fail(f"Fewer {name.replace('_', ' ')}: {line} in {BASELINES}, [{name}].")


def imports_inside_functions(tree: ast.AST, inside: bool = False) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(tree):
        if inside and isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imports_inside_functions(node, inside or function)


def vendor_branches(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the comparisons with `connection.vendor`, and values that are looked up by it."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                parts: list[ast.expr] = [node.left, *node.comparators]
            case ast.Subscript():
                parts = [node.slice]
            case ast.Match():
                parts = [node.subject]
            case ast.Call(func=ast.Attribute(attr="get")):
                parts = node.args
            case _:
                continue
        if any(isinstance(part, ast.Attribute) and part.attr == "vendor" for part in parts):
            yield node


def circles(graph: grimp.ImportGraph) -> set[frozenset[str]]:
    """Return the sets of modules that import each other, directly or through others."""
    found = set()
    for module in graph.modules:
        above = graph.find_upstream_modules(module)
        below = graph.find_downstream_modules(module)
        if both := above & below - {module}:
            found.add(frozenset(both | {module}))
    return found


def imports_between(graph: grimp.ImportGraph, modules: Set[str]) -> list[str]:
    return [
        f"{importer}:{detail['line_number']} imports {imported}"
        for importer in sorted(modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer) & modules)
        for detail in graph.get_import_details(importer=importer, imported=imported)
    ]


def test_no_package_gets_more_imports_inside_functions() -> None:
    found = Counter[str]()
    for path, tree in sources().items():
        found[path.split("/")[0]] += sum(1 for _ in imports_inside_functions(tree))
    compare(
        "imports_inside_functions",
        +found,
        "Import at the top of the module. If a circle prevents this, move the definition that both "
        "modules need into the lower one. If most processes never need it, and a measurement says "
        "what they save, use agents.kernel.lazy_modules.",
    )


def test_no_folder_gets_more_files_than_people_can_survey() -> None:
    found = Counter(str(Path(path).parent) for path in sources())
    compare(
        "files_in_folders",
        {folder: count for folder, count in found.items() if count > MOST_FILES},
        f"A folder has at most {MOST_FILES} Python files: put the module into a package that "
        "belongs to one feature.",
        MOST_FILES,
    )


def test_no_package_gets_more_branches_on_the_database() -> None:
    found = Counter[str]()
    for path, tree in sources().items():
        if path not in baseline("database_files"):
            found[path.split("/")[0]] += sum(1 for _ in vendor_branches(tree))
    compare(
        "branches_on_the_database",
        +found,
        f"Put the difference between SQLite and PostgreSQL into one of the files in {BASELINES}, "
        "database_files, and call it.",
    )


def test_no_modules_import_each_other(graph: grimp.ImportGraph) -> None:
    for circle in circles(graph):
        pytest.fail(
            "An import circle. Move the definition that both modules need into the lower one, or "
            "into a separate module:\n" + "\n".join(imports_between(graph, circle))
        )


def test_tar_files_are_extracted_only_in_ways_that_python_3_11_2_knows() -> None:
    found = [
        str(path.relative_to(ROOT))
        for top in (*PACKAGES, "tests", "release_tools", "docs_tools")
        for path in ROOT.joinpath(top).rglob("*.py")
        if path.name not in ("tar_files.py", "test_structure.py")
        and "extractall" in (text := path.read_text())
        and "filter=" in text
    ]
    assert found == [], "Debian's Python 3.11.2 has no filters: use tests/support/tar_files.py."
