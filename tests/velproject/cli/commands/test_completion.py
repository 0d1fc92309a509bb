"""`vel completion`, in real shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.velproject.command import DEADLINE, ROOT, Vel

BASH = """
source completion.bash
declare -F _vel_completion > /dev/null || exit 9
complete -p vel > /dev/null || exit 8
COMP_WORDS=(vel "$@")
COMP_CWORD=$#
_vel_completion vel
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = "source completion.fish; complete -C (string join ' ' vel $argv)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a directory with `vel`."""
    program = tmp_path / "vel"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m velproject.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def completed(vel: Vel, path: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
    script = vel("completion", "bash")
    assert script.returncode == 0, script.stderr
    (path / "completion.bash").write_text(script.stdout)
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", *words],
        capture_output=True,
        text=True,
        env=vel.env(PATH=f"{path}:/usr/bin:/bin", PYTHONPATH=str(ROOT)),
        cwd=path,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("comp",), ["completion"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("runs", "sh"), ["show"]),
        (("approvals", "deci"), ["decide"]),
        (("--resu",), ["--resume"]),
        (("--no-sandbox", "--conti"), ["--continue"]),
        (("--provider", "scr"), ["scripted"]),
        (("nothing-like-it",), []),
    ],
)
def test_bash_completes_commands_options_and_values(
    vel: Vel, path: Path, words: tuple[str, ...], expected: list[str]
) -> None:
    assert completed(vel, path, *words) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_accepts_the_script(vel: Vel, path: Path) -> None:
    (path / "completion.zsh").write_text(vel("completion", "zsh").stdout)
    code = "autoload -U compinit; compinit -u -D; source completion.zsh; print $_comps[vel]"
    done = subprocess.run(
        ["zsh", "-f", "-c", code], capture_output=True, text=True, cwd=path, check=True
    )
    assert done.stdout == "_vel_completion\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands(vel: Vel, path: Path) -> None:
    (path / "completion.fish").write_text(vel("completion", "fish").stdout)
    done = subprocess.run(
        ["fish", "--no-config", "-c", FISH, "runs", "sh"],
        capture_output=True,
        text=True,
        env=vel.env(PATH=f"{path}:/usr/bin:/bin", PYTHONPATH=str(ROOT), HOME=str(path)),
        cwd=path,
        check=True,
    )
    assert done.stdout.startswith("show")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_scripts_that_ask_vel(vel: Vel, shell: str) -> None:
    done = vel("completion", shell)
    assert done.returncode == 0, done.stderr
    assert f"_VEL_COMPLETE={shell}_complete" in done.stdout


def test_another_shell_is_refused(vel: Vel) -> None:
    done = vel("completion", "csh")
    assert done.returncode == 2
    assert "bash" in done.stderr
