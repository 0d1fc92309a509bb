"""Two builds of a commit are identical, and a built wheel can be installed and used.

These tests install the packages of requirements/release.txt and of the wheel from an index.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from release_tools.build import pinned_packages
from tests.chaos.conftest import directory
from tests.support.previous import git

__all__ = ["directory"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
OWN = ("PYTHON", "DJANGO_", "VEL_", "DATABASE_URL", "VIRTUAL_ENV")


def environment(**more: str) -> dict[str, str]:
    """Return the environment without the variables of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return {**kept, **more}


def run(*words: str | Path, cwd: Path, umask: int = 0o022, **more: str) -> str:
    """Run a program to its end, and return its output. An error shows the whole output."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=umask,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@dataclass(frozen=True)
class Builder:
    """An environment with the tools of a release, and a directory for clones."""

    directory: Path
    python: Path

    def build(self, place: str, umask: int, **more: str) -> Path:
        """Clone HEAD into `place`, build there, and return the directory with the files."""
        clone = self.directory / place
        safe = ("-c", f"safe.directory={ROOT}", "-c", f"safe.directory={ROOT}/.git")
        # A bundle instead of a clone of the path: the checkout may belong to another account.
        bundle = self.directory / f"{clone.name}.bundle"
        run("git", *safe, "-C", ROOT, "bundle", "create", bundle, "HEAD", cwd=self.directory)
        clone.parent.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "--quiet", bundle, clone, cwd=self.directory, umask=umask)
        run(
            *(self.python, "-m", "release_tools", "--output", clone / "dist"),
            *("--licences-of", sys.executable),
            cwd=clone,
            umask=umask,
            **more,
        )
        return clone / "dist"


@pytest.fixture(scope="module")
def builder() -> Iterator[Builder]:
    if git("rev-parse", "HEAD") is None:
        pytest.skip("needs the git history")
    with tempfile.TemporaryDirectory(prefix="vel-build-", dir="/var/tmp") as name:
        directory = Path(name)
        run(sys.executable, "-m", "venv", directory / "tools", cwd=directory)
        python = directory / "tools/bin/python"
        requirements = ROOT / "requirements/release.txt"
        run(python, "-m", "pip", "install", "--require-hashes", "-r", requirements, cwd=directory)
        yield Builder(directory, python)


@pytest.fixture(scope="module")
def dist(builder: Builder) -> Path:
    return builder.build("first", 0o022, TZ="UTC", PYTHONHASHSEED="1")


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def contents(dist: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in dist.iterdir()}


def test_two_builds_in_other_places_with_another_umask_and_time_are_identical(
    builder: Builder, dist: Path
) -> None:
    other = builder.build(
        "an other/place", 0o077, TZ="Asia/Tokyo", PYTHONHASHSEED="2", LC_ALL="C.UTF-8"
    )
    assert contents(other) == contents(dist)
    assert len(contents(dist)) == 5


def test_the_checksums_are_those_of_the_files(dist: Path) -> None:
    listed = dict(
        reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines()
    )
    assert listed == {n: value for n, value in contents(dist).items() if n != "SHA256SUMS"}


def test_the_sbom_lists_each_pinned_package_with_its_hashes(dist: Path) -> None:
    (path,) = dist.glob("*.cdx.json")
    sbom = json.loads(path.read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    assert sbom["metadata"]["component"]["name"] == "vel"
    pinned = pinned_packages((ROOT / "requirements/run.txt").read_text())
    assert sorted(one["name"] for one in sbom["components"]) == sorted(pinned)
    django = next(one for one in sbom["components"] if one["name"] == "django")
    assert django["purl"].startswith("pkg:pypi/django@5.2")
    assert django["externalReferences"][0]["hashes"]


def test_the_packages_contain_no_files_of_the_checkout_that_are_not_in_git(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    tracked = set((git("ls-files") or b"").decode().splitlines())
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert names - tracked == {"PKG-INFO"}


def test_the_wheel_has_the_code_and_the_templates_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.startswith("vel-")} == {
        *("vel", "velproject", "agents", "skills_app", "memory", "text_scanner"),
        *("language_model", "sandbox"),
    }
    assert any(name.startswith("velproject/templates/") for name in names)


def try_it(vel: Path, data: Path) -> None:
    """Use an installed command: its version, a run of the offline model, and the upgrade check."""
    place = {"VEL_DATA_DIR": str(data)}
    assert run(vel, "--version", cwd=data, **place).startswith("vel ")
    answer = run(
        *(vel, "--provider", "scripted", "--model", "echo", "--no-sandbox", "hello"),
        cwd=data,
        **place,
    )
    assert "You said:" in answer
    run(vel, "upgrade", "--check", cwd=data, **place)


def test_uv_tool_install_gives_a_working_command(
    wheel: Path, tmp_path: Path, directory: Path
) -> None:
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    uv = Path(sys.executable).parent / "uv"
    run(uv, "tool", "install", "--python", sys.executable, wheel, cwd=tmp_path, **places)
    try_it(tmp_path / "bin/vel", directory)


def test_pipx_install_gives_a_working_command(wheel: Path, tmp_path: Path, directory: Path) -> None:
    places = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    uv = Path(sys.executable).parent / "uv"
    run(uv, "tool", "run", "pipx", "install", wheel, cwd=tmp_path, **places)
    try_it(tmp_path / "bin/vel", directory)
