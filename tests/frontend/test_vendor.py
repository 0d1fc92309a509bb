"""The packages that browsers load are those of the lock file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.hang import HANG
from tests.support.npm import packages

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "frontend"
VENDOR = ROOT / "agents/static/agents/vendor"


def locked() -> dict[str, str]:
    """Return the version of each package in the lock file."""
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    found = {}
    for path, package in lock["packages"].items():
        if path:
            found[path.removeprefix("node_modules/")] = package["version"]
    return found


def test_each_module_names_the_locked_versions_of_its_packages() -> None:
    versions = locked()
    for module in VENDOR.glob("*.js"):
        named = re.match(r"/\* (.+): see licences\.txt", module.read_text())
        assert named, module
        for package in named[1].split(", "):
            name, version = package.rsplit(" ", 1)
            assert versions[name] == version, (module, package)


def test_each_source_has_a_module() -> None:
    assert {path.name for path in SOURCE.glob("src/*.js")} == {
        path.name for path in VENDOR.glob("*.js")
    }


def test_each_dependency_has_its_licence() -> None:
    text = (VENDOR / "licences.txt").read_text()
    wanted = json.loads((SOURCE / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        assert re.search(rf"^{re.escape(name)} {re.escape(version)}$", text, re.MULTILINE), name


def test_the_lock_file_names_hashes_and_no_host() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if path:
            assert package["integrity"].startswith("sha512-"), path
            assert "resolved" not in package, path


@pytest.mark.slow
@pytest.mark.node
def test_building_again_gives_the_same_files(tmp_path: Path) -> None:
    place = packages(SOURCE)
    shutil.copy(SOURCE / "build.mjs", place / "build.mjs")
    shutil.copytree(SOURCE / "src", place / "src", dirs_exist_ok=True)
    subprocess.run(
        ["node", "build.mjs", str(tmp_path / "out")], cwd=place, check=True, timeout=HANG
    )
    built = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert built == {path.name: path.read_bytes() for path in VENDOR.iterdir()}
