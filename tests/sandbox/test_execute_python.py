"""Python source as a command."""

from pathlib import Path

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox
from tests.sandbox.places import workspace_in

pytestmark = pytest.mark.bubblewrap


def test_python_runs_and_leaves_no_file_in_the_workspace(
    box: BubblewrapSandbox, place: Path
) -> None:
    result = box.execute_python("import os\nprint(os.getcwd(), sum(range(10)))")
    assert (result.stdout, result.exit_code) == ("/sandbox/workspace 45\n", 0)
    workspace = workspace_in(place).root
    assert [path for path in workspace.rglob("*") if not path.is_dir()] == []


def test_a_traceback_has_the_lines_of_the_source(box: BubblewrapSandbox) -> None:
    result = box.execute_python("def f():\n    return 1 / 0\n\n\nf()\n")
    assert result.exit_code == 1
    assert "line 5, in <module>\n    f()" in result.stderr
    assert "line 2, in f\n    return 1 / 0" in result.stderr
    assert "line 1" in box.execute_python("x = = 1").stderr


def test_modules_of_the_workspace_are_found_and_not_hidden(box: BubblewrapSandbox) -> None:
    box.execute("echo 'NAME = \"mine\"' | tee mine.py main.py code.py execute.py > /dev/null")
    result = box.execute_python("import mine, main, execute\nprint(mine.NAME, main.NAME)")
    assert result.stdout == "mine mine\n"


def test_exit_codes_and_input(box: BubblewrapSandbox) -> None:
    assert box.execute_python("raise SystemExit(7)").exit_code == 7
    assert "EOFError" in box.execute_python("input()").stderr
    assert box.start_python("print(input()[::-1])", stdin=b"abc\n").wait().stdout == "cba\n"


def test_output_before_the_time_limit_is_kept(box: BubblewrapSandbox) -> None:
    for seconds in (2, 10, 50):  # on a busy machine, Python starts late
        result = box.execute_python(
            "import time\nprint('step 1')\ntime.sleep(600)", timeout=seconds
        )
        assert result.timed_out
        if result.stdout:
            break
    assert result.stdout == "step 1\n"


def test_source_larger_than_an_argument(box: BubblewrapSandbox) -> None:
    source = "text = '''" + "é" * 300_000 + "'''\nprint(len(text))"
    assert box.execute_python(source).stdout == "300000\n"


def test_the_workers_of_multiprocessing_find_the_main_module(box: BubblewrapSandbox) -> None:
    source = """
import multiprocessing as mp

def square(x):
    return x * x

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with mp.get_context(method).Pool(2) as pool:
            print(pool.map(square, range(4)))
"""
    result = box.execute_python(source)
    assert result.stdout == "[0, 1, 4, 9]\n[0, 1, 4, 9]\n", result.stderr
