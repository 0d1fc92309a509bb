"""A workspace with the built-in skills, like an agent's."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import skills_app
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.result import ExecutionResult
from sandbox.toolboxes.toolbox import Toolbox
from sandbox.workspace import Workspace
from tests.sandbox.places import workspace_in

BUILTIN = Path(skills_app.__file__).parent / "builtin"
NAMES = sorted(path.parent.name for path in BUILTIN.glob("*/SKILL.md"))
UPLOADS = "/sandbox/user_uploads"


def copy_packages(place: Path) -> Path:
    """Copy the packages to a directory that the accounts of sandboxes can read."""
    skills = place / "skills"
    shutil.copytree(BUILTIN, skills, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (skills, *skills.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return skills


@dataclass(frozen=True)
class Desk:
    """Runs commands and Python in the sandbox. Files are uploaded and downloaded as bytes."""

    workspace: Workspace
    box: BubblewrapSandbox

    def upload(self, name: str, content: bytes | str) -> str:
        """Replace the file `name` in user_uploads and return its path in the sandbox."""
        file = self.workspace.directories["user_uploads"] / name
        file.unlink(missing_ok=True)  # only root can write to a file of mode 0444
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        os.chown(file, self.workspace.uid, self.workspace.gid)
        file.chmod(0o444)
        return f"{UPLOADS}/{name}"

    def run(self, command: str) -> ExecutionResult:
        return self.box.execute(command)

    def script(self, path: str, *arguments: str) -> ExecutionResult:
        """Run a script of a skill. `path` has the form `data-query/query_sqlite.py`."""
        skill, name = path.split("/")
        words = ["python3", f"/sandbox/skills/{skill}/scripts/{name}", *arguments]
        return self.box.execute(shlex.join(words))

    def json(self, path: str, *arguments: str, exit_code: int = 0) -> Any:
        result = self.script(path, *arguments)
        assert result.exit_code == exit_code, (result.exit_code, result.stdout, result.stderr)
        return json.loads(result.stdout)

    def output(self, name: str) -> str:
        return (self.workspace.directories["outputs"] / name).read_text()


def desk_in(place: Path, skills: Path, key: str, toolbox: Toolbox | None = None) -> Desk:
    workspace = replace(workspace_in(place, key), skills=skills)
    return Desk(workspace, BubblewrapSandbox(workspace.policy(timeout=90.0, toolbox=toolbox)))
