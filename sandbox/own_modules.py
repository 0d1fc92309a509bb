"""The start files of `execute_python`: only the code of the approval request runs."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.util import MAGIC_NUMBER, source_hash
from marshal import dumps
from pathlib import Path

from sandbox import own_modules_start
from sandbox.policy import InjectedFile

RESERVED = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
"""Modules that are never imported from a directory that commands can write."""

OPTIONS = ("-s",)
"""Options for the interpreter: ignore the home directory. -I would also ignore PYTHONPATH."""

_START = Path(own_modules_start.__file__).read_text(encoding="utf-8")
_NOT_CHECKED = (1).to_bytes(4, "little")
"""A flag of compiled code: Python does not compare it with the source (PEP 552)."""


@lru_cache(maxsize=64)
def start_files(
    directory: str, code: str, working_dir: str, writable: tuple[str, ...]
) -> tuple[InjectedFile, ...]:
    """Return the files to put into `directory`, which must be in PYTHONPATH.

    `code` is the file with the code; `writable` are the directories that the code can write. All
    paths are paths inside the sandbox.
    """
    names = " ".join(["", *sorted(RESERVED), ""])
    call = f"\n\ninstall({code!r}, {working_dir!r}, {writable!r}, {names!r})\n"
    source, name = (_START + call).encode(), "sitecustomize"
    target = f"{directory}/{name}.py"
    # A Python of another version ignores this file and compiles the source.
    compiled = MAGIC_NUMBER + _NOT_CHECKED + source_hash(source)
    compiled += dumps(compile(source, target, "exec", dont_inherit=True))
    cache = f"{directory}/__pycache__/{name}.{sys.implementation.cache_tag}.pyc"
    return InjectedFile(target, source), InjectedFile(cache, compiled)
