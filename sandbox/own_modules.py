"""The start files of `execute_python`: the code of the approval request runs, and no other."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.util import MAGIC_NUMBER, source_hash
from marshal import dumps
from pathlib import Path

from sandbox import own_modules_start
from sandbox.namespace import InjectedFile

RESERVED = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
"""Modules that are never taken from a directory that commands can write."""

OPTIONS = ("-s",)
"""For the interpreter: ignore the home directory. Option -I would ignore PYTHONPATH too."""

_START = Path(own_modules_start.__file__).read_text(encoding="utf-8")
_NOT_CHECKED = (1).to_bytes(4, "little")
"""A flag of compiled code: Python does not compare it with the source (PEP 552)."""


@lru_cache(maxsize=64)
def start_files(
    place: str, code: str, working_dir: str, writable: tuple[str, ...]
) -> tuple[InjectedFile, ...]:
    """Return the files of the directory `place`, which PYTHONPATH must name.

    `code` is the file with the code, `writable` are the directories that it can write; all paths
    are those of the sandbox.
    """
    names = " ".join(["", *sorted(RESERVED), ""])
    call = f"\n\ninstall({code!r}, {working_dir!r}, {writable!r}, {names!r})\n"
    source, name = (_START + call).encode(), "sitecustomize"
    target = f"{place}/{name}.py"
    # Python of another version ignores this file and compiles the source.
    compiled = MAGIC_NUMBER + _NOT_CHECKED + source_hash(source)
    compiled += dumps(compile(source, target, "exec", dont_inherit=True))
    cache = f"{place}/__pycache__/{name}.{sys.implementation.cache_tag}.pyc"
    return InjectedFile(target, source), InjectedFile(cache, compiled)
