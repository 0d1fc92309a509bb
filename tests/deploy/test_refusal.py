"""In a container that prevents the sandbox, Vel runs no command and names the remedy.

`unshare` makes what the default flags of containers make: no user namespaces, or a masked /proc.
Only for root are the programs of the system still trusted there: they belong to the mapped account.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_tools.blocks import ROOT

pytestmark = [pytest.mark.bubblewrap, pytest.mark.root]

MASKED = "mount -t tmpfs none /proc/fs"
"""Container runtimes hide parts of /proc in this way."""
NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces"

_PROGRAM = """
import sys
from sandbox.create import create_sandbox
from sandbox.errors import SandboxUnavailable
try:
    print(create_sandbox(sys.argv[1]).execute("echo ran | tee ran.txt").stdout)
except SandboxUnavailable as error:
    sys.exit(str(error))
"""


def in_container(setup: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary account in new namespaces, after `setup` with capabilities."""
    outside = ["unshare", "--user", "--mount", "--map-user=1000", "--map-group=1000", "--keep-caps"]
    inside = f'{setup} && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"'
    return subprocess.run(
        [*outside, "sh", "-c", inside, "sh", *command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def execute(setup: str, directory: Path) -> subprocess.CompletedProcess[str]:
    directory.mkdir()
    return in_container(setup, sys.executable, "-c", _PROGRAM, str(directory))


def test_the_command_runs_where_the_container_allows_the_sandbox(tmp_path: Path) -> None:
    done = execute("true", tmp_path / "work")
    assert done.stdout == "ran\n\n", done.stderr
    assert (tmp_path / "work/ran.txt").exists()


@pytest.mark.parametrize("setup", [MASKED, NO_NAMESPACES], ids=["masked", "no namespaces"])
def test_nothing_runs_without_a_sandbox(tmp_path: Path, setup: str) -> None:
    done = execute(setup, tmp_path / "work")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("This host cannot run a sandbox, so nothing was run.")
    assert list((tmp_path / "work").iterdir()) == []


def test_the_error_names_the_flags_for_docker_and_podman(tmp_path: Path) -> None:
    error = execute(MASKED, tmp_path / "work").stderr
    page = (ROOT / "docs/operations/containers.md").read_text()
    for flag in ("systempaths=unconfined", "'unmask=/proc/*'", "apparmor=unconfined"):
        assert f"--security-opt {flag}" in error
        assert f"--security-opt {flag}" in page
    assert "deploy/seccomp.json" in error
    assert "docs/operations/containers.md" in error


def test_a_program_that_only_looks_like_bubblewrap_is_not_trusted(tmp_path: Path) -> None:
    """Somebody who wants commands to "just work" could put such a program on the PATH."""
    fake = tmp_path / "bin/bwrap"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9.9.9 && exit\n'
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    fake.chmod(0o755)
    path = f"export PATH={fake.parent}:$PATH"
    assert shutil.which("bwrap", path=str(fake.parent)) == str(fake)
    done = execute(f"{MASKED} && {path}", tmp_path / "work")
    assert done.returncode == 1
    assert done.stdout == ""
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.slow
def test_the_doctor_reports_the_missing_sandbox(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    data = f"export VEL_DATA_DIR={tmp_path}/data"
    done = in_container(f"{MASKED} && {data}", sys.executable, "-m", "velproject.cli", "doctor")
    assert done.returncode == 1
    assert "✗ sandbox " in done.stdout
    assert "docs/operations/containers.md" in done.stdout
