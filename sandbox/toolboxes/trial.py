"""Import a new toolbox's packages once, in a sandbox: their code never runs outside a sandbox."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Limits, Mount, SandboxPolicy
from sandbox.toolboxes.toolbox import FONT_CACHE, PYTHON_IN_IT, TARGET, VARIABLES
from sandbox.uids import uid_for

_SECONDS = 120.0
_FONT_CACHE_BYTES = 4_000_000
_PROGRAM = """
import importlib, json, os, pathlib, sys
failed, fonts = {}, {}
for name in json.loads(sys.stdin.read()):
    try:
        importlib.import_module(name)
        if name == "matplotlib":
            importlib.import_module("matplotlib.font_manager")
            for file in pathlib.Path(os.environ["MPLCONFIGDIR"]).glob("fontlist-*.json"):
                fonts[file.name] = file.read_text()
    except BaseException as error:
        failed[name] = f"{type(error).__name__}: {error}"[:200]
print("\\n" + json.dumps([failed, fonts]))
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """`notes` are lines for the operator. `font_caches` are matplotlib's files, by name."""

    notes: list[str] = field(default_factory=list)
    font_caches: dict[str, str] = field(default_factory=dict)

    def keep_font_caches(self, environment: Path) -> None:
        """Copy them to the directory that `Toolbox.mounts` uses."""
        if self.font_caches:
            directory = environment / FONT_CACHE
            directory.mkdir(parents=True)
            for name, content in self.font_caches.items():
                (directory / name).write_text(content)


def try_in_sandbox(environment: Path, modules: list[str]) -> Trial:
    """Import `modules` under the default limits. Failed imports only become notes.

    Raises `SandboxSetupError` if commands could not reach the environment.
    """
    policy = SandboxPolicy(
        mounts=(Mount(environment, TARGET),),
        working_dir="/tmp",  # noqa: S108 - the sandbox's own
        timeout=_SECONDS,
        limits=Limits(output=_FONT_CACHE_BYTES),
        environment=VARIABLES,
        uid=uid_for(0) if os.geteuid() == 0 else None,
        python=PYTHON_IN_IT,
    )
    try:
        sandbox = BubblewrapSandbox(policy)
    except SandboxUnavailable:
        return Trial(["Not tested: this host cannot run a sandbox (vel doctor shows the reason)."])
    result = sandbox.start_python(_PROGRAM, stdin=json.dumps(modules).encode()).wait()
    try:
        failed, fonts = json.loads(result.stdout.splitlines()[-1])
        notes = [f"In the sandbox {name} cannot be imported: {why}" for name, why in failed.items()]
        caches = {name: text for name, text in fonts.items() if _is_font_cache(name, text)}
    except (ValueError, LookupError, TypeError, AttributeError):
        end = " ".join(result.stderr.split())[-300:]
        return Trial([f"The trial in the sandbox ended with {result.exit_code}: {end}"])
    return Trial(notes, caches)


def _is_font_cache(name: str, text: str) -> bool:
    plain = os.path.basename(name) == name and name.startswith("fontlist-")
    return plain and isinstance(json.loads(text), dict)
