"""The commands of the installed features, as their `apps.py` declares them.

Their configs are read as text: importing them imports Django, for which `vel --help` would wait.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from agents.features import FEATURES
from velproject.cli.lazy_group import Table


def table() -> Table:
    """Return the commands. A feature that cannot be read is named on standard error."""
    found: dict[str, dict[str, str]] = {}
    for path in _installed():
        try:
            found |= {f"{path}.cli": commands for commands in _commands_of(path)}
        except (ImportError, OSError, SyntaxError, ValueError) as error:
            print(f"vel: the commands of {path} are left out: {error}.", file=sys.stderr)
    return found


def _installed() -> list[str]:
    """Return the features as `agents.features.installed` does, which reports wrong names."""
    disabled = _names("VEL_DISABLED_FEATURES")
    own = [path for path in FEATURES if path.rpartition(".")[2] not in disabled]
    return [*own, *_names("VEL_APPS")]


def _names(variable: str) -> list[str]:
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


def _commands_of(path: str) -> Iterator[dict[str, str]]:
    """Yield the value of `commands` in each class of the feature's `apps.py`."""
    spec = find_spec(f"{path}.apps")
    if spec is None or spec.origin is None:
        raise ImportError(f"{path}.apps does not exist")
    for node in ast.walk(ast.parse(Path(spec.origin).read_bytes())):
        for name, value in _assigned(node):
            if name == "commands":
                yield dict(ast.literal_eval(value))


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for item in node.body if isinstance(node, ast.ClassDef) else ():
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
