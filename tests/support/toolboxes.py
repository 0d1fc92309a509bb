"""Toolboxes for tests: with packages, built once; and without pip, with one file each."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.demo.task import TOOLBOX, TOOLBOX_PACKAGES
from sandbox.toolboxes.build import ToolboxRequest, create_toolbox
from sandbox.toolboxes.contents import measure
from sandbox.toolboxes.environment import PipFailed
from sandbox.toolboxes.store import open_store
from sandbox.toolboxes.toolbox import ENVIRONMENT, MANIFEST, python_facts
from tests.support.shared import alone, shared_directory

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vel-tests" / "toolboxes"
SANDBOX = Path(__file__).resolve().parents[2] / "sandbox"


def data_with(request: ToolboxRequest) -> Path:
    """Return a data directory of this process with a toolbox that all processes of the run share.

    A build takes up to 10 s: one process builds it, and the others wait. Later runs copy it from a
    cache until the code that builds toolboxes changes. Skips the test if no package index is
    available.
    """
    shared = shared_directory() / "toolboxes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_RETRIES", os.environ.get("PIP_RETRIES", "1"))
        with alone(f"toolbox-{request.name}"):
            try:
                _build_or_copy(shared / request.name, request)
            except PipFailed as error:
                packages = ", ".join(request.requirements)
                pytest.skip(f"needs a package index for {packages}: {error.output[-300:]}")
    data = Path(os.environ["VEL_DATA_DIR"]) / f"with-{request.name}"
    if not data.exists():
        data.mkdir(mode=0o711)
        (data / "toolboxes").symlink_to(shared / request.name)
    return data


def _build_or_copy(base: Path, request: ToolboxRequest) -> None:
    """Put the toolbox in `base`, if it is not there."""
    if (base / request.name).exists():
        return
    builder = [path.read_bytes() for path in sorted((SANDBOX / "toolboxes").glob("*.py"))]
    parts = [repr((request, python_facts())).encode(), *builder]
    kept = CACHE / hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{kept}.lock", "w") as lock:
        # Several test runs may need the same toolbox.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            _copy(kept, base)
        else:
            # Not in the cache: sandboxes of root cannot enter a home directory.
            create_toolbox(base, request)
            _copy(base, kept)


def _copy(source: Path, target: Path) -> None:
    incomplete = target.with_name(f"{target.name}.new")
    shutil.rmtree(incomplete, ignore_errors=True)
    incomplete.parent.mkdir(parents=True, exist_ok=True)
    # shutil.copytree takes twice the CPU time for thousands of files.
    subprocess.run(["cp", "-pPR", source, incomplete], check=True)
    incomplete.rename(target)


def data_with_packages() -> Path:
    """Return one with the demo's toolbox, which also has the packages of the built-in skills."""
    return data_with(ToolboxRequest(TOOLBOX, (*TOOLBOX_PACKAGES, "pypdf")))


def put_toolbox(base: Path, name: str = "data", mark: str = "first", **changed: object) -> Path:
    """Create a generation as a build publishes it, with one file. Return its environment."""
    facts = python_facts()
    with open_store(base) as store, store.staging() as staged:
        environment = staged / ENVIRONMENT
        environment.mkdir(mode=0o755)
        (environment / "mark").write_text(mark)
        (environment / "mark").chmod(0o644)
        digest, size = measure(environment)
        manifest = {
            "requirements": [mark],
            "packages": [mark],
            "font_caches": [],
            "distributions": [{"name": mark, "version": "1.0"}],
            "python": facts.version,
            "abi": facts.abi,
            "built_at": "",
            "digest": digest,
            "size": size,
            **changed,
        }
        (staged / MANIFEST).write_text(json.dumps(manifest))
        (staged / MANIFEST).chmod(0o644)
        generation = store.publish(name, staged)
    return base / name / generation / ENVIRONMENT
