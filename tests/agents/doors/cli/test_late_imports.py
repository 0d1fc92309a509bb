"""Imports that wait for Django's set-up, in an interpreter without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agents.doors.cli.late_imports import late_imports
from tests.velproject.command import DEADLINE, ROOT

START = """
from agents.doors.cli.late_imports import finish_imports, late_imports
import builtins, sys
usual = builtins.__import__
"""


def run(code: str, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", START + code],
        env={"PYTHONPATH": f"{ROOT}:{place}"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def printed(code: str, place: Path) -> str:
    done = run(code, place)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_name_is_imported_when_the_imports_are_finished(tmp_path: Path) -> None:
    code = """
with late_imports:
    from colorsys import hsv_to_rgb as convert
    from xml.dom import minidom
assert builtins.__import__ is usual
print("colorsys" in sys.modules, "xml.dom" in sys.modules)
finish_imports("__main__")
import colorsys, xml.dom.minidom
print(convert is colorsys.hsv_to_rgb, minidom is xml.dom.minidom)
"""
    assert printed(code, tmp_path) == "False False\nTrue True\n"


def test_the_late_imports_of_an_imported_module_are_finished_too(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "from agents.doors.cli.late_imports import late_imports\n"
        "with late_imports:\n"
        "    from two import double\n"
        "    from colorsys import hsv_to_rgb\n"
        "def value():\n    return double(4), hsv_to_rgb(0, 0, 1)\n"
    )
    (tmp_path / "two.py").write_text(
        "from agents.doors.cli.late_imports import late_imports\n"
        "with late_imports:\n"
        "    from one import value\n"
        "    from operator import mul\n"
        "def double(x):\n    return mul(2, x)\n"
    )
    code = """
import one, two
finish_imports("two")
print(two.double(1), one.value())
"""
    assert printed(code, tmp_path) == "2 (8, (1, 1, 1))\n"


@pytest.mark.parametrize("use", ["name()", "name.attribute"])
def test_a_name_used_too_early_names_the_solution(tmp_path: Path, use: str) -> None:
    done = run(f"with late_imports:\n    from colorsys import hsv_to_rgb as name\n{use}", tmp_path)
    assert "RuntimeError: hsv_to_rgb of colorsys is a late import" in done.stderr
    assert "use it only inside a command's function" in done.stderr


@pytest.mark.parametrize("line", ["import colorsys", "from . import colorsys"])
def test_only_names_of_modules_with_full_paths_are_imported_late(tmp_path: Path, line: str) -> None:
    done = run(f"with late_imports:\n    {line}", tmp_path)
    assert "ImportError: Write `from " in done.stderr


def test_the_error_of_a_late_import_is_the_usual_one(tmp_path: Path) -> None:
    start = "with late_imports:\n    "
    end = '\nfinish_imports("__main__")'
    assert "No module named 'nothing'" in run(f"{start}from nothing import a{end}", tmp_path).stderr
    done = run(f"{start}from colorsys import nothing{end}", tmp_path)
    assert "cannot import name 'nothing' from 'colorsys'" in done.stderr


def test_once_django_is_set_up_the_imports_are_not_late() -> None:
    with late_imports:
        from colorsys import hsv_to_rgb
    assert hsv_to_rgb(0, 0, 1) == (1, 1, 1)
