"""Toolboxes without pip: published as a build does it, with one file for an environment."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.toolbox import ENVIRONMENT, MANIFEST
from sandbox.toolbox_contents import measure
from sandbox.toolbox_python import python_facts
from sandbox.toolbox_store import open_store


def put_toolbox(base: Path, name: str = "data", mark: str = "first", **changed: object) -> Path:
    """A generation as a build publishes it, with one file in it; its environment."""
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
