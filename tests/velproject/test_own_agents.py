"""Vel together with another distribution that has a package `agents`, such as openai-agents."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.site import ROOT
from tests.support.wheels import NO_INDEX, make_wheel

pytestmark = pytest.mark.timeout(600)

OTHER = {
    "agents/__init__.py": "from .agent import Agent\n",
    "agents/agent.py": "class Agent: pass\n",
    "agents/mcp/__init__.py": "",
}
WHY = "another distribution, such as openai-agents, has a package with this name"
START = "import sys; from velproject.cli.main import main; main(sys.argv[1:])"
MANAGE = (
    "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'velproject.settings'; "
    "from django.core.management import execute_from_command_line; "
    "execute_from_command_line(['manage.py', *sys.argv[1:]])"
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheel of Vel, and one of another distribution with the same package."""
    directory = tmp_path_factory.mktemp("wheels")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    vel = directory / built.stdout.split()[-1]
    return {"vel": vel, "other": make_wheel(directory, "other_agents", OTHER)}


@pytest.fixture(scope="module")
def with_vel(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Path:
    """Return the directory of an environment in which Vel is installed."""
    directory = tmp_path_factory.mktemp("with-vel")
    Environment(directory).install(wheels["vel"])
    return directory / "env"


class Environment:
    """A directory with wheels that pip has installed. It precedes this environment's packages."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.data.mkdir()
        self.packages = directory / "env" / "lib" / "packages"

    def install(self, wheel: Path) -> None:
        # With --prefix pip overwrites files as in an environment. With --target it would not.
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--ignore-installed", "--no-deps"),
                *("--no-compile", "--quiet", "--disable-pip-version-check"),
                *("--prefix", str(self.directory / "env"), str(wheel)),
            ],
            env={"PATH": "/usr/bin:/bin", **NO_INDEX},
            check=True,
        )
        (self.packages,) = (self.directory / "env").glob("lib/python3*/site-packages")

    def copy(self, environment: Path) -> None:
        """Start with a copy of another environment."""
        shutil.copytree(environment, self.directory / "env")
        (self.packages,) = (self.directory / "env").glob("lib/python3*/site-packages")

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = [str(self.packages), sysconfig.get_path("purelib")]
        return subprocess.run(
            [sys.executable, "-P", "-S", "-c", code, *arguments],
            cwd=self.directory,
            env={
                "PYTHONPATH": ":".join(path),
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.directory),
                "LC_ALL": "C.UTF-8",
                "VEL_DATA_DIR": str(self.data),
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


def refuses(environment: Environment) -> list[str]:
    """Return the one line of output of each command, which must not start."""
    lines = []
    for code, *arguments in (
        (START, "--help"),
        (START, "up", "--port", "0"),
        (MANAGE, "check"),
        ("import velproject.asgi",),
    ):
        done = environment.run(code, *arguments)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert WHY in done.stderr
        assert "virtual environment" in done.stderr
        lines.append(done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
    script = environment.run("from vel import create_deep_agent")
    assert WHY in script.stderr
    return lines


@pytest.mark.slow
def test_without_another_distribution_it_starts(environment: Environment, with_vel: Path) -> None:
    environment.copy(with_vel)
    done = environment.run(START, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: vel" in done.stdout
    done = environment.run(MANAGE, "check", "--tag", "models")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("order", [("vel", "other"), ("other", "vel")], ids="-then-".join)
def test_next_to_another_distribution_it_refuses_to_start_with_a_reason(
    environment: Environment, wheels: dict[str, Path], with_vel: Path, order: tuple[str, str]
) -> None:
    if order[0] == "vel":
        environment.copy(with_vel)
    else:
        environment.install(wheels[order[0]])
    environment.install(wheels[order[1]])
    theirs = environment.run("from agents import Agent")
    assert (theirs.returncode == 0) == (order[-1] == "other")  # the second one overwrote the first
    for line in refuses(environment):
        assert ("is not Vel's" if order[-1] == "other" else "agent.py") in line


@pytest.mark.slow
def test_files_removed_by_another_distribution_are_noticed(
    environment: Environment, with_vel: Path
) -> None:
    environment.copy(with_vel)
    (environment.packages / "agents" / "__init__.py").unlink()
    for line in refuses(environment):
        assert "damaged" in line
