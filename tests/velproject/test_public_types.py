"""Type checkers see the public names as a program does."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import vel
from tests.agents.sdk import typed_program
from tests.support.hang import HANG

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


@pytest.mark.slow
def test_a_program_passes_strict_type_checks(tmp_path: Path) -> None:
    source = Path(typed_program.__file__).read_text("utf-8")
    (tmp_path / "good.py").write_text(source, "utf-8")
    (tmp_path / "bad.py").write_text(
        "from vel import Nonsense, create_deep_agent\ncreate_deep_agent(sandbox='no')\n", "utf-8"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file=", "--cache-dir", str(tmp_path / "cache"), "good.py", "bad.py"),
        ],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    told = [line.partition(": ")[0] for line in done.stdout.splitlines()]
    assert told[:2] == ["bad.py:1", "bad.py:2"], done.stdout + done.stderr
    assert len(told) == 3, done.stdout
