"""Only the code of the approval request runs, with any files in the working directory."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.backends import WorkspaceBackend
from sandbox.create import create_sandbox
from sandbox.importable import importable_files
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.paths import WORKING_DIR
from sandbox.workspace import Workspace
from tests.sandbox.places import workspace_in

pytestmark = pytest.mark.bubblewrap

REPORT = "with open('/sandbox/outputs/ran', 'a') as ran: ran.write({name!r} + '\\n')\n"
SHELL_REPORT = "echo {name} >> /sandbox/outputs/ran\n"

MODULES = (
    *("sitecustomize.py", "usercustomize.py", "encodings/__init__.py", "codecs.py", "os.py"),
    *("json.py", "json/__init__.py", "random.py", "pickle.py", "threading.py", "linecache.py"),
    # Optional modules of the standard library.
    *("msvcrt.py", "_winapi.py", "org/python/core.py", "nt.py", "winreg.py"),
    *("helper.py", "other.py", "package/__init__.py", "package/part.py", "numpy.py"),
    *("execute_python.py", "own_modules_start.py", "typing.py", "apport_python_hook.py"),
)
SETTINGS = {
    "anything.pth": "import sys; open('/sandbox/outputs/ran', 'a').write('anything.pth')",
    "pyvenv.cfg": "home = /sandbox/workspace\n",
    ".local/lib/python3.11/site-packages/usercustomize.py": REPORT.format(name="user site"),
    ".pythonrc": REPORT.format(name=".pythonrc"),
    "matplotlibrc": "backend: module://helper\n",
    "pip.conf": "[global]\nindex-url = https://example.org\n",
}
CODES = (
    "print(2 + 2)",
    "import json, random, pickle, copy, subprocess\nprint(2 + 2)",
    "import asyncio, ssl, uuid, tempfile, platform, zipfile, ctypes.util\nprint(2 + 2)",
    "import helper\nprint(2 + 2)",
    "from package import part\nimport pickle\nprint(2 + 2)",
    "import sys\nsys.path.insert(0, '.')\nimport json, pickle, helper\nprint(2 + 2)",
    "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.format_exc()\n"
    "print(2 + 2)",
    "try:\n    import numpy\nexcept ImportError:\n    pass\nprint(2 + 2)",
    "def double(x):\n    return 2 * x\n\n\nif __name__ == '__main__':\n"
    "    import multiprocessing\n"
    "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    "        print(pool.apply(double, [2]))",
)
NEEDED = {3: "helper.py", 4: "package/part.py", 5: "helper.py"}
"""Files that the code with this number needs."""

SHELL_FILES = (
    *(".bashrc", ".bash_profile", ".profile", ".bash_login", ".inputrc", ".env", ".npmrc"),
    *("python3", "ls", "git", "node", "echo", "env", "cat"),
)
COMMANDS = (
    "ls > /dev/null; echo done",
    "python3 -c 'print(\"done\")'",
    "python3 /sandbox/skills/counting/scripts/count.py",
    f"echo done # {'long' * 40_000}",
)


def plant(workspace: Workspace, name: str, content: str, mode: int = 0o644) -> None:
    directory = workspace.directories["workspace"]
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    for made in (path, *path.parents):
        if made == directory:
            break
        os.chown(made, workspace.uid, workspace.gid)


def emptied(place: Path) -> Workspace:
    workspace = workspace_in(place)
    shutil.rmtree(workspace.root)
    return workspace_in(place)


def files_that_ran(workspace: Workspace) -> set[str]:
    report = workspace.directories["outputs"] / "ran"
    return set(report.read_text().splitlines()) if report.exists() else set()


several = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@several
@given(st.sampled_from(range(len(CODES))), st.sets(st.sampled_from([*MODULES, *SETTINGS])))
def test_python_runs_only_displayed_files(place: Path, number: int, names: set[str]) -> None:
    workspace = emptied(place)
    for name in {*names, *filter(None, [NEEDED.get(number)])}:
        plant(workspace, name, SETTINGS.get(name, REPORT.format(name=name)))
    shown = importable_files(CODES[number], WorkspaceBackend(workspace.root), WORKING_DIR)
    result = BubblewrapSandbox(workspace.policy(timeout=60)).execute_python(CODES[number])
    assert (result.stdout, result.exit_code) == ("4\n", 0), result.stderr
    paths = {file.path.removeprefix(f"{WORKING_DIR}/") for file in shown.files}
    assert files_that_ran(workspace) <= paths


@pytest.mark.parametrize("name", [*MODULES[:17], *SETTINGS])
def test_a_planted_file_does_not_run_before_or_within_the_code(place: Path, name: str) -> None:
    workspace = workspace_in(place)
    plant(workspace, name, SETTINGS.get(name, REPORT.format(name=name)))
    result = BubblewrapSandbox(workspace.policy(timeout=60)).execute_python(CODES[1])
    assert (result.stdout, result.exit_code) == ("4\n", 0), result.stderr
    assert files_that_ran(workspace) == set()


@pytest.mark.parametrize("name", ["org/python/core.py", "msvcrt.py", "json.py", "sitecustomize.py"])
def test_a_planted_file_does_not_run_in_a_worker(place: Path, name: str) -> None:
    workspace = workspace_in(place)
    plant(workspace, name, REPORT.format(name=name))
    result = BubblewrapSandbox(workspace.policy(timeout=60)).execute_python(CODES[-1])
    assert (result.stdout, result.exit_code) == ("4\n", 0), result.stderr
    assert files_that_ran(workspace) == set()


@several
@given(st.sampled_from(COMMANDS), st.sets(st.sampled_from(SHELL_FILES), min_size=5))
def test_a_command_runs_nothing_that_it_does_not_name(
    place: Path, command: str, names: set[str]
) -> None:
    workspace = emptied(place)
    for name in names:
        content = SHELL_REPORT.format(name=name)
        plant(workspace, name, f"#!/bin/bash\n{content}", 0o755)
    for name in ("sitecustomize.py", "usercustomize.py", "encodings/__init__.py", "json.py"):
        plant(workspace, name, REPORT.format(name=name))
    skills = place / "skills/counting/scripts"
    skills.mkdir(parents=True, exist_ok=True)
    (skills / "count.py").write_text("import json, words\nprint(words.WORD)\n")
    (skills / "words.py").write_text("WORD = 'done'\n")
    with_skills = replace(workspace, skills=place / "skills")
    result = BubblewrapSandbox(with_skills.policy(timeout=60)).execute(command)
    assert (result.stdout, result.exit_code) == ("done\n", 0), result.stderr
    assert files_that_ran(workspace) == set()


def test_compiled_code_of_a_module_is_not_used(place: Path, box: BubblewrapSandbox) -> None:
    """Its behaviour could differ from the source that the person sees."""
    plant(workspace_in(place), "mine.py", "print('as shown')\n")
    made = box.execute(
        "echo \"print('hidden')\" > /tmp/mine.py && python3 -c '"
        'import py_compile as p; p.compile("/tmp/mine.py", "__pycache__/mine.cpython-311.pyc", '
        "invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)' && "
        "tag=$(python3 -c 'import sys; print(sys.implementation.cache_tag)') && "
        "cp __pycache__/mine.cpython-311.pyc mine_alone.pyc && "
        "mv -n __pycache__/mine.cpython-311.pyc __pycache__/mine.$tag.pyc; ls __pycache__"
    )
    assert made.success, made.stderr
    assert box.execute("python3 -c 'import mine'").stdout == "hidden\n"
    assert box.execute_python("import mine").stdout == "as shown\n"
    assert "ModuleNotFoundError" in box.execute_python("import mine_alone").stderr


def test_modules_that_another_module_names_are_found(place: Path, box: BubblewrapSandbox) -> None:
    workspace = workspace_in(place)
    plant(workspace, "first.py", "import second\n")
    plant(workspace, "second/__init__.py", "from . import part\n")
    plant(workspace, "second/part.py", "import third\n")
    plant(workspace, "third.py", "print('found')\n")
    plant(workspace, "unnamed.py", "print('found')\n")
    assert box.execute_python("import first").stdout == "found\n"
    assert box.execute_python("__import__('thi' 'rd')").exit_code == 1
    assert box.execute_python("import importlib\nimportlib.import_module('third')").success
    shown = importable_files("import first", WorkspaceBackend(workspace.root), WORKING_DIR)
    assert [file.path.removeprefix(f"{WORKING_DIR}/") for file in shown.files] == [
        "first.py",
        "second/__init__.py",
        "second/part.py",
        "third.py",
    ]


def test_a_module_that_the_code_writes_can_be_imported(box: BubblewrapSandbox) -> None:
    code = "open('made.py', 'w').write('print(1)')\nimport made"
    assert box.execute_python(code).stdout == "1\n"


def test_a_worker_finds_modules_of_the_workspace(place: Path, box: BubblewrapSandbox) -> None:
    plant(workspace_in(place), "mine.py", "def double(x):\n    return 2 * x\n")
    code = (
        "import mine\nimport multiprocessing\n\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(mine.double, [2]))"
    )
    result = box.execute_python(code)
    assert result.stdout == "4\n", result.stderr


def test_programs_that_the_code_starts_find_files_in_their_directory(
    place: Path, box: BubblewrapSandbox
) -> None:
    workspace = workspace_in(place)
    plant(workspace, "tool/run.py", "import beside\n")
    plant(workspace, "tool/beside.py", "print('beside')\n")
    code = "import subprocess, sys\nsubprocess.run([sys.executable, 'tool/run.py'], check=True)"
    assert box.execute_python(code).stdout == "beside\n"


def test_a_directory_of_the_caller_has_the_same_rules(place: Path) -> None:
    directory = place / "project"
    box = create_sandbox(str(directory))
    (directory / "sitecustomize.py").write_text("print('hidden')")
    (directory / "msvcrt.py").write_text("print('hidden')")
    (directory / "mine.py").write_text("print('mine')")
    assert box.execute_python("import subprocess, mine").stdout == "mine\n"
